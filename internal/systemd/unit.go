// Package systemd tells the systemd that started a process that it serves, that it is alive,
// and that it stops. Where none did, it does nothing.
package systemd

import (
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Unit is this process in the eyes of systemd.
type Unit struct {
	logger *slog.Logger
	alive  func() bool
	close  chan struct{}
	closed chan struct{}
}

// Serving says that the process serves. If the unit has WatchdogSec, systemd then hears twice
// in that time that the process is alive, as long as alive says so, until Close.
func Serving(alive func() bool, logger *slog.Logger) *Unit {
	u := &Unit{logger: logger, alive: alive, close: make(chan struct{}), closed: make(chan struct{})}
	u.tell(daemon.SdNotifyReady)
	patience, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		logger.Warn("systemd is not told that this process is alive", "error", err)
	}
	if patience <= 0 {
		close(u.closed)
		return u
	}
	go u.watch(patience / 2)
	return u
}

// Stopping says that the process was asked to stop. It may take a while yet.
func (u *Unit) Stopping() { u.tell(daemon.SdNotifyStopping) }

// Close ends what Serving began.
func (u *Unit) Close() {
	close(u.close)
	<-u.closed
}

func (u *Unit) watch(every time.Duration) {
	defer close(u.closed)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for was := true; ; {
		is := u.alive()
		if is {
			u.tell(daemon.SdNotifyWatchdog)
		}
		if was && !is {
			u.logger.Error("systemd is to restart this process: it is not alive, as /livez says")
		}
		was = is
		select {
		case <-tick.C:
		case <-u.close:
			return
		}
	}
}

func (u *Unit) tell(what string) {
	if _, err := daemon.SdNotify(false, what); err != nil {
		u.logger.Warn("systemd was not told", "what", what, "error", err)
	}
}
