package bundle_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/server/page/internal/bundle"
)

func TestTheCommittedFilesAreMadeFromTheSources(t *testing.T) {
	t.Parallel()
	const folder = "../.."
	files, err := bundle.Files(folder)
	require.NoError(t, err)
	require.Len(t, files, 2)
	for path, want := range files {
		is, err := os.ReadFile(filepath.Join(folder, path))
		require.NoError(t, err)
		require.Equal(t, string(want), string(is), "%s is older than its source: run make generate", path)
	}
}
