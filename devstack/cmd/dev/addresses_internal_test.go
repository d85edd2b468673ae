package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// A jobs file names the usual addresses; jobs get those of the servers that run.
func TestJobsFileWithThePortsInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := options{dir: filepath.Join(dir, ".dev"), jobs: filepath.Join(dir, "jobs.toml")}
	require.NoError(t, os.Mkdir(o.dir, 0o700))
	const text = `influx_url = "http://127.0.0.1:8086" # and http://localhost:8086/query
base_url = "http://127.0.0.1:8090"
server = "127.0.0.1:1024"
others = ["127.0.0.1:10240", "10.127.0.0.1:1234", "http://127.0.0.1:9999", "http://influx:8086", "http://127.0.0.1:8091"]
`
	require.NoError(t, os.WriteFile(o.jobs, []byte(text), 0o600))
	usual := stack.Info{
		Influx: "http://127.0.0.1:8086", HOBOlink: stack.API{URL: "http://127.0.0.1:8090"}, LDMP: "127.0.0.1:1024",
	}
	file, err := toApply(o, usual)
	require.NoError(t, err)
	require.Equal(t, o.jobs, file, "the file itself as long as it is right")
	require.Equal(t, "jobs.toml, applied again whenever it changes", describeJobs(options{jobs: "jobs.toml"}, "jobs.toml", true))

	file, err = toApply(o, stack.Info{
		Influx: "http://127.0.0.1:20001", HOBOlink: stack.API{URL: "http://127.0.0.1:20002"}, LDMP: "127.0.0.1:20003",
	})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(o.dir, "jobs-with-ports.toml"), file)
	applied, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, `influx_url = "http://127.0.0.1:20001" # and http://127.0.0.1:20001/query
base_url = "http://127.0.0.1:20002"
server = "127.0.0.1:20003"
others = ["127.0.0.1:10240", "10.127.0.0.1:1234", "http://127.0.0.1:9999", "http://influx:8086", "http://127.0.0.1:8091"]
`, string(applied))
	kept, err := os.ReadFile(o.jobs)
	require.NoError(t, err)
	require.Equal(t, text, string(kept))
	require.Equal(t, "jobs.toml with the ports above (copy.toml), NOT applied (see above), tried again until it is",
		describeJobs(options{jobs: "jobs.toml"}, "copy.toml", false))

	require.NoError(t, os.Remove(o.jobs))
	_, err = toApply(o, stack.Info{Influx: "http://127.0.0.1:20001"})
	require.ErrorIs(t, err, os.ErrNotExist)
}
