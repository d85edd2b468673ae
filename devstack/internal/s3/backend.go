package s3

import (
	"os"
	"path/filepath"

	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"golang.org/x/sys/unix"
)

// newBackend keeps an object's metadata in extended attributes of its file, or
// in files of their own where the file system has none (tmpfs of an older
// kernel, some container volumes).
func newBackend(objects, sidecar string) (backend.Backend, error) {
	if hasExtendedAttributes(objects) {
		return posix.New(objects, meta.XattrMeta{}, posix.PosixOpts{})
	}
	if err := os.MkdirAll(sidecar, 0o700); err != nil {
		return nil, err
	}
	store, err := meta.NewSideCar(sidecar)
	if err != nil {
		return nil, err
	}
	return posix.New(objects, store, posix.PosixOpts{SideCarDir: sidecar})
}

func hasExtendedAttributes(folder string) bool {
	// A probe of its own, as reading an attribute says nothing about writing one.
	probe, err := os.CreateTemp(filepath.Dir(folder), "xattr-")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(probe.Name()) }()
	defer func() { _ = probe.Close() }()
	return unix.Setxattr(probe.Name(), "user.dendra-probe", []byte("1"), 0) == nil
}
