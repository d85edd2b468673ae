package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/devstack/internal/lockfile"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// The board is shown again as long as its system runs, also to someone who scrolled it away.
func TestBoardAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	again := func() (string, error) {
		var out bytes.Buffer
		err := showBoard(t.Context(), []string{dir}, &out)
		return out.String(), err
	}
	_, err := again()
	require.EqualError(t, err, "no system of "+dir+" runs, or it has not started yet: make dev starts one")

	lock, err := lockfile.Take(lockPath(dir))
	require.NoError(t, err)
	var first bytes.Buffer
	newTerminal(&first).board(stack.Info{Temporal: "127.0.0.1:7233", Namespace: "default"},
		options{dir: dir, jobs: "jobs.toml"}, nil, dir+"/env", describeJobs(options{jobs: "jobs.toml"}, "jobs.toml", true))
	shown, err := again()
	require.NoError(t, err)
	require.Equal(t, first.String(), shown)
	require.Contains(t, shown, "127.0.0.1:7233, namespace default")

	require.NoError(t, lock.Close())
	_, err = again()
	require.EqualError(t, err, "no system of "+dir+" runs any more: make dev starts one")
	require.EqualError(t, showBoard(t.Context(), []string{"a", "b"}, io.Discard), "usage: dev board [FOLDER]")
}
