package jobsfile_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job/jobsfile"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "jobs.toml")
	require.NoError(t, os.WriteFile(path, []byte("[jobs.post_to_archive.main]\none_shot = {}\n"), 0o600))
	file, problems, err := jobsfile.Load(path, testTypes())
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Len(t, file.Jobs, 1)

	require.NoError(t, os.WriteFile(path, []byte("x = 1"), 0o600))
	file, problems, err = jobsfile.Load(path, testTypes())
	require.NoError(t, err)
	require.Nil(t, file)
	require.Equal(t, path+`:1:1: not a jobs file: it has no table [jobs.TYPE.KEY]`, problems[0].String())
}

func TestLoadOfALargeFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.toml")
	require.NoError(t, os.WriteFile(path, make([]byte, 5<<20), 0o600))
	_, problems, err := jobsfile.Load(path, nil)
	require.NoError(t, err)
	require.Equal(t, path+":1:1: the file is larger than 1 MiB", problems[0].String())
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(outside, []byte("x"), 0o600))
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	require.NoError(t, os.Symlink(outside, at("escape.toml")))
	require.NoError(t, os.Symlink("nowhere", at("dangling.toml")))
	require.NoError(t, syscall.Mkfifo(at("pipe.toml"), 0o600))
	require.NoError(t, os.Mkdir(at("folder.toml"), 0o700))

	for path, want := range map[string]string{
		at("none.toml"):     " cannot be read: no such file or directory",
		at("a/none.toml"):   " cannot be read: no such file or directory",
		at("dangling.toml"): " cannot be read: no such file or directory",
		at("escape.toml"):   " cannot be read: it is a link to a file outside its folder, and only links within it are followed; name the file itself",
		at("pipe.toml"):     " is not a regular file",
		at("folder.toml"):   " is not a regular file",
	} {
		_, _, err := jobsfile.Load(path, nil)
		require.EqualError(t, err, "jobs file "+path+want)
	}
}

// A mounted ConfigMap is a link to a link to a folder beside it.
func TestLoadFollowsLinksWithinTheFolder(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "..2026"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "..2026", "jobs.toml"), nil, 0o600))
	require.NoError(t, os.Symlink("..2026", filepath.Join(folder, "..data")))
	require.NoError(t, os.Symlink("..data/jobs.toml", filepath.Join(folder, "jobs.toml")))
	_, problems, err := jobsfile.Load(filepath.Join(folder, "jobs.toml"), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
}
