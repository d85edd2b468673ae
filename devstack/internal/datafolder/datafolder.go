// Package datafolder is the folder that holds everything a stack keeps: one
// process at a time, and only the server release that wrote it.
package datafolder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dendrascience/dendra-jobs/devstack/internal/lockfile"
)

// Folder is a data folder that this process holds.
type Folder struct {
	// Path is absolute.
	Path string

	lock      *lockfile.File
	ephemeral bool
}

// Open takes the data folder at path, which is made when it is missing. It is
// an error when another process holds it.
func Open(path string) (*Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", path, err)
	}
	if info, err := os.Stat(abs); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("data folder %s is a file: give the path of a folder", abs)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return nil, fmt.Errorf("data folder %s cannot be made: %w", abs, err)
	}
	lock, err := lockfile.Take(filepath.Join(abs, "devstack.lock"))
	var held *lockfile.HeldError
	switch {
	case errors.As(err, &held):
		return nil, fmt.Errorf("data folder %s is in use by another devstack (%s): stop that one or give another --data", abs, held.Holder())
	case err != nil:
		return nil, fmt.Errorf("data folder %s cannot be locked: %w", abs, err)
	}
	return &Folder{Path: abs, lock: lock}, nil
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
