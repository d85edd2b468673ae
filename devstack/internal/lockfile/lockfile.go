// Package lockfile lets one process at a time hold a file. The lock is the
// kernel's and is gone with the process; the file stays and names the process.
package lockfile

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// File is a lock file that this process holds.
type File struct{ f *os.File }

// HeldError is what Take returns when another process holds the file.
type HeldError struct {
	Path string
	PID  int // of the holder; 0 when the file does not say
}

func (e *HeldError) Error() string { return e.Path + " is held by " + e.Holder() }

// Holder is "process 123", or "another process".
func (e *HeldError) Holder() string {
	if e.PID == 0 {
		return "another process"
	}
	return "process " + strconv.Itoa(e.PID)
}

// Take takes the lock file at path, which is made when it is missing, without
// waiting. The error is a *HeldError when another process holds it.
func Take(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer func() { _ = f.Close() }()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &HeldError{Path: path, PID: holder(f)}
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// The number is for people; what keeps others out is the lock itself.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	}
	return &File{f: f}, nil
}

// Close gives the lock up.
func (l *File) Close() error { return l.f.Close() }

func holder(f *os.File) int {
	buf := make([]byte, 32)
	n, _ := f.ReadAt(buf, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return 0
	}
	return pid
}
