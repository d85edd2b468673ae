package auth_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// A line is added once for a name, also to a file that ends in a table.
func TestAddLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "credentials.toml")
	line := func(name string) string {
		return auth.Line(name, verbs.RoleViewer, auth.Hash(name), time.Time{})
	}
	for _, want := range []bool{true, false} {
		added, err := auth.AddLine(path, "one", line("one"))
		require.NoError(t, err)
		require.Equal(t, want, added)
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())

	const table = "[certificates.proxy]\nrole = \"viewer\"\n"
	require.NoError(t, os.WriteFile(path, []byte(line("one")+"\n"+table), 0o600))
	added, err := auth.AddLine(path, "two", line("two"))
	require.NoError(t, err)
	require.True(t, added)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, line("two")+"\n"+line("one")+"\n"+table, string(text))
	_, err = auth.OpenFile(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)

	require.NoError(t, os.WriteFile(path, []byte("tokens = 1\n"), 0o600))
	_, err = auth.AddLine(path, "three", line("three"))
	require.ErrorContains(t, err, path)
}
