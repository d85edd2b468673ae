// Package ports finds loopback ports for the servers before any of them
// starts: several of the servers end the process, or panic, when they find
// their port taken.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Host is the only address the servers listen on.
const Host = "127.0.0.1"

// Want is a port that a server asks for.
type Want struct {
	Server string // "InfluxDB"
	Flag   string // "--influx-port"; empty for a port that only the server itself uses
	Port   int    // 0 picks a free one
}

func (w Want) failed(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d of %s is taken on %s: stop what listens there or choose another port, as in make dev DEV='-- %s %d'",
			w.Port, w.Server, Host, w.Flag, w.Port+1)
	}
	return fmt.Errorf("port %d of %s cannot be used: %w", w.Port, w.Server, err)
}

// Free ports come from below the range that the kernel takes the local ports
// of outgoing connections from. A port of that range can be gone again before
// its server listens, and a client that redials a server which is down can
// even connect to itself and so keep the port.
const (
	firstFree = 18000
	lastFree  = 31999
)

// Reservation holds ports for the servers of this process.
type Reservation struct {
	lock      *os.File
	listeners []net.Listener
	ports     []int
}

// Reserve finds a port for every want, in their order. Other processes that
// reserve ports wait until Done is called.
func Reserve(wants []Want) (*Reservation, error) {
	lock, err := lockHost()
	if err != nil {
		return nil, err
	}
	r := &Reservation{lock: lock}
	// Given ports first, so that no free port takes one of them.
	r.ports = make([]int, len(wants))
	for i, w := range wants {
		if w.Port == 0 {
			continue
		}
		if err := r.listen(w.Port); err != nil {
			r.Done()
			return nil, w.failed(err)
		}
		r.ports[i] = w.Port
	}
	for i, w := range wants {
		if w.Port != 0 {
			continue
		}
		if r.ports[i], err = r.pick(); err != nil {
			r.Done()
			return nil, fmt.Errorf("%s: %w", w.Server, err)
		}
	}
	return r, nil
}

// Port returns the port of the i-th want.
func (r *Reservation) Port(i int) int { return r.ports[i] }

// Address returns host:port of the i-th want.
func (r *Reservation) Address(i int) string {
	return net.JoinHostPort(Host, strconv.Itoa(r.ports[i]))
}

// Release frees the ports for the servers of this process, which start next.
func (r *Reservation) Release() {
	for _, l := range r.listeners {
		_ = l.Close()
	}
	r.listeners = nil
}

// Done ends the reservation, once the servers listen or when they never will.
func (r *Reservation) Done() {
	r.Release()
	_ = r.lock.Close()
}

func (r *Reservation) listen(port int) error {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(Host), Port: port})
	if err != nil {
		return err
	}
	r.listeners = append(r.listeners, l)
	return nil
}

func (r *Reservation) pick() (int, error) {
	const tries = 500
	for range tries {
		port := firstFree + rand.IntN(lastFree-firstFree+1)
		if r.listen(port) == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port among %d tried between %d and %d on %s", tries, firstFree, lastFree, Host)
}

// lockHost makes the stacks of one user start one after the other as far as
// the choice of their ports goes. The lock is gone with the process.
func lockHost() (*os.File, error) {
	path := filepath.Join(os.TempDir(), "devstack-ports-"+strconv.Itoa(os.Getuid())+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file of the ports %s: %w", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock file of the ports %s: %w", path, err)
	}
	return f, nil
}
