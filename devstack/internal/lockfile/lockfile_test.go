package lockfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/devstack/internal/lockfile"
)

func TestTake(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := lockfile.Take(path)
	require.NoError(t, err)

	_, err = lockfile.Take(path)
	var held *lockfile.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, lockfile.HeldError{Path: path, PID: os.Getpid()}, *held)

	require.NoError(t, first.Close())
	second, err := lockfile.Take(path)
	require.NoError(t, err, "a lock that was given up is free")
	require.NoError(t, second.Close())
}

func TestTakeWithoutFolder(t *testing.T) {
	t.Parallel()
	_, err := lockfile.Take(filepath.Join(t.TempDir(), "none", "lock"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestHolderThatIsNotKnown(t *testing.T) {
	t.Parallel()
	require.EqualError(t, &lockfile.HeldError{Path: "a/lock"}, "a/lock is held by another process")
}
