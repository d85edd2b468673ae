// Package datafolder is the folder that holds everything a stack keeps: one
// process at a time, and only the server release that wrote it.
package datafolder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Folder is a data folder that this process holds.
type Folder struct {
	// Path is absolute.
	Path string

	lock      *os.File
	ephemeral bool
}

// Open takes the data folder at path, which is made when it is missing. It is
// an error when another process holds it.
func Open(path string) (*Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", path, err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("data folder %s cannot be made: %w", abs, err)
	}
	lock, err := os.OpenFile(filepath.Join(abs, "devstack.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data folder %s cannot be locked: %w", abs, err)
	}
	f := &Folder{Path: abs, lock: lock}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder := f.holder()
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data folder %s is in use by another devstack%s: stop that one or give another --data", abs, holder)
		}
		return nil, fmt.Errorf("data folder %s cannot be locked: %w", abs, err)
	}
	// The number is for people and the message above; the lock itself is the kernel's.
	if err := lock.Truncate(0); err == nil {
		_, _ = lock.WriteAt([]byte(fmt.Sprintf("%d\n", os.Getpid())), 0)
	}
	return f, nil
}

// OpenEphemeral takes a new folder that Close removes.
func OpenEphemeral() (*Folder, error) {
	path, err := os.MkdirTemp("", "devstack-")
	if err != nil {
		return nil, fmt.Errorf("temporary data folder cannot be made: %w", err)
	}
	f, err := Open(path)
	if err != nil {
		_ = os.RemoveAll(path)
		return nil, err
	}
	f.ephemeral = true
	return f, nil
}

// Sub returns the absolute path of a folder inside, which it makes.
func (f *Folder) Sub(elem ...string) (string, error) {
	path := filepath.Join(append([]string{f.Path}, elem...)...)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("data folder %s cannot be made: %w", path, err)
	}
	return path, nil
}

// Close gives the folder up; an ephemeral one is removed.
func (f *Folder) Close() error {
	var removed error
	if f.ephemeral {
		removed = os.RemoveAll(f.Path)
	}
	return errors.Join(removed, f.lock.Close())
}

func (f *Folder) holder() string {
	buf := make([]byte, 32)
	n, _ := f.lock.ReadAt(buf, 0)
	if pid := strings.TrimSpace(string(buf[:n])); pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}
