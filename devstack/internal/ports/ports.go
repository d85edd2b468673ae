// Package ports finds loopback ports for the servers before any of them
// starts: several of the servers end the process, or panic, when they find
// their port taken.
package ports

import (
	"errors"
	"fmt"
	"io"
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

// Reservation holds ports for the servers of this process until Done is called.
type Reservation struct {
	claims    *os.File
	listeners []net.Listener
	ports     []int
}

// Reserve finds a port for every want, in their order, without waiting: a stack
// that starts at the same time gets others, or is told that a port is taken.
func Reserve(wants []Want) (_ *Reservation, err error) {
	claims, err := openClaims()
	if err != nil {
		return nil, err
	}
	r := &Reservation{claims: claims, ports: make([]int, len(wants))}
	defer func() { r.release(err) }()
	// Given ports first, so that no free port takes one of them.
	for i, w := range wants {
		if w.Port == 0 {
			continue
		}
		if err = r.take(w.Port); err != nil {
			return nil, w.failed(err)
		}
		r.ports[i] = w.Port
	}
	for i, w := range wants {
		if w.Port != 0 {
			continue
		}
		if r.ports[i], err = r.pick(); err != nil {
			return nil, fmt.Errorf("%s: %w", w.Server, err)
		}
	}
	return r, nil
}

// Port returns the port of the i-th want.
func (r *Reservation) Port(i int) int { return r.ports[i] }

// Done gives the claims up, once the servers listen or when they never will.
func (r *Reservation) Done() { _ = r.claims.Close() }

// release frees the ports for the servers of this process, which start next.
// Other stacks find them claimed.
func (r *Reservation) release(failed error) {
	for _, l := range r.listeners {
		_ = l.Close()
	}
	if failed != nil {
		r.Done()
	}
}

// take claims a port on which nothing listens.
func (r *Reservation) take(port int) error {
	if err := r.claim(port); err != nil {
		return err
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(Host), Port: port})
	if err != nil {
		return err
	}
	r.listeners = append(r.listeners, l)
	return nil
}

// pick takes the next free port. The stacks of one user take turns: a port that a stack has given
// up, and that it may want back after its restart, comes last.
func (r *Reservation) pick() (int, error) {
	const tries = 500
	for range tries {
		port, err := r.next()
		if err != nil {
			return 0, err
		}
		if r.take(port) == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port among %d tried between %d and %d on %s", tries, firstFree, lastFree, Host)
}

// next is the port after the last one that a stack picked. The claims file holds its number; its
// first byte is locked meanwhile.
func (r *Reservation) next() (port int, err error) {
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: 0, Len: 1}
	if err := syscall.FcntlFlock(r.claims.Fd(), syscall.F_SETLKW, &lock); err != nil {
		return 0, fmt.Errorf("lock file of the ports %s: %w", r.claims.Name(), err)
	}
	defer func() {
		lock.Type = syscall.F_UNLCK
		err = errors.Join(err, syscall.FcntlFlock(r.claims.Fd(), syscall.F_SETLK, &lock))
	}()
	text := make([]byte, len(strconv.Itoa(lastFree)))
	n, err := r.claims.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	port, err = strconv.Atoi(string(text[:n]))
	if port++; err != nil || port < firstFree || port > lastFree {
		port = firstFree
	}
	_, err = r.claims.WriteAt([]byte(strconv.Itoa(port)), 0)
	return port, err
}

// claim locks the byte of the claims file that has the number of the port.
func (r *Reservation) claim(port int) error {
	err := syscall.FcntlFlock(r.claims.Fd(), syscall.F_SETLK, &syscall.Flock_t{
		Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1,
	})
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return syscall.EADDRINUSE // of a stack whose server does not listen yet
	}
	return err
}

// openClaims opens the file on which the stacks of one user claim ports. The
// kernel drops the claims of a process that ends.
func openClaims() (*os.File, error) {
	path := filepath.Join(os.TempDir(), "devstack-ports-"+strconv.Itoa(os.Getuid())+".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock file of the ports %s: %w", path, err)
	}
	return f, nil
}
