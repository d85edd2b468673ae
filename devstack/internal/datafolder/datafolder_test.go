package datafolder_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/devstack/internal/datafolder"
)

func TestOpenFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(path, []byte("kept"), 0o600))
	_, err := datafolder.Open(path)
	require.EqualError(t, err, "data folder "+path+" is a file: give the path of a folder")
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "kept", string(kept))
}
