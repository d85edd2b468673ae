package watchdog

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Heartbeat says which URLs tell somebody else that the watchdog is at work.
type Heartbeat struct {
	// URL is called while the watchdog and its sources are well.
	URL *url.URL
	// FailURL is called when they were not well for as long as Every. May be nil.
	FailURL *url.URL
	// Every is the time between two calls.
	Every time.Duration
}

const (
	defaultHeartbeat = time.Minute
	// readLately is how long ago something was read at most, while the sources are well: the
	// servers are checked every few seconds.
	readLately = 30 * time.Second
)

// heartbeatRetry is short: there is another call soon.
var heartbeatRetry = Retry{Tries: 3}

// pulse is what was called lately. The loop of the watchdog owns it, but for what calls tell.
type pulse struct {
	client *http.Client
	// well is when all was well last.
	well time.Time
	// next is when the next call is due.
	next time.Time
	// failed says that the last call was to FailURL.
	failed bool
	// answers has the result of a call under way: whether it was taken.
	answers chan error
	calling bool
	// lost says that the last call was not taken.
	lost  bool
	taken time.Time // when the last one was
}

func newPulse() *pulse {
	return &pulse{client: newClient(), well: time.Now(), answers: make(chan error, 1)}
}

// well reports whether the watchdog does its work: all sources answer, and were read lately.
func (w *Watchdog) well(current Now) bool {
	for _, alert := range current.Alerts {
		if alert.GetRule() == serverDown {
			return false
		}
	}
	return current.Known && current.Complete && time.Since(current.ReadTime) < readLately && w.store.answers()
}

// beat calls the URL that is due. A round that hangs calls none.
func (w *Watchdog) beat(ctx context.Context, well bool) {
	if w.Heartbeat == nil || ctx.Err() != nil {
		return
	}
	p, now := w.pulse, time.Now()
	w.beaten(ctx, now)
	if well {
		p.well = now
	}
	back := well && p.failed // Whoever was told of a failure is told at once that it has ended.
	if p.calling || now.Before(p.next) && !back {
		return
	}
	var address *url.URL
	switch {
	case well:
		address = w.Heartbeat.URL
	case now.Sub(p.well) >= w.Heartbeat.Every:
		address = w.Heartbeat.FailURL
	}
	if address == nil {
		return
	}
	p.calling, p.failed = true, !well
	if p.next = p.next.Add(w.Heartbeat.Every); p.next.Before(now) || back {
		p.next = now.Add(w.Heartbeat.Every)
	}
	w.sends.Go(func() {
		p.answers <- heartbeatRetry.withDefaults().do(ctx, func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
			if err != nil {
				return finalError{errNoURL}
			}
			return call(p.client, request)
		})
	})
}

// beaten notes the result of a call.
func (w *Watchdog) beaten(ctx context.Context, now time.Time) {
	p := w.pulse
	select {
	case err := <-p.answers:
		if p.calling = false; err != nil && !p.lost {
			w.Logger.WarnContext(ctx, "the heartbeat is not heard", "error", err)
		}
		if p.lost = err != nil; err == nil && !p.failed {
			p.taken = now
		}
	default:
	}
	if w.Metrics != nil && !p.taken.IsZero() {
		w.Metrics.Heartbeat(p.taken)
	}
}
