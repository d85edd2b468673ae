package cli_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// FuzzReadItems: whatever a file of items holds, it gives jobs that a queue
// takes, each with an id of its own, or says line by line why not.
func FuzzReadItems(f *testing.F) {
	for _, seed := range []string{
		`{"steps": 1}`,
		`{"key": "a", "spec": {"steps": 1}}` + "\n\n" + `{"key": "b", "spec": {"steps": 1.0}}`,
		`{"key": "a", "spec": {"steps": 1}, "more": 1}`,
		`{"key": "", "spec": null}`,
		`{"steps": 1e400} {"steps": 2}`,
		"{\"steps\": 1, \"gate\": \"\u2028\\u0000\"}\r\n[]",
		`{"steps": 1, "steps": 2, "Steps": 3}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var notes bytes.Buffer
		program := cli.Program{Types: testTypes(), Stdin: strings.NewReader(text), Stdout: io.Discard, Stderr: &notes}
		jobs, err := program.ReadItems("-")
		if err != nil {
			require.Empty(t, jobs)
			require.NotContains(t, err.Error(), "\n")
			return
		}
		require.Empty(t, notes.String())
		seen := map[string]bool{}
		for _, j := range jobs {
			require.Empty(t, j.Validate())
			require.Equal(t, job.ModeQueued, j.Mode())
			require.NoError(t, job.DecodeSpec(j.Spec, &stepSpec{}))
			require.False(t, seen[j.ID], j.ID)
			seen[j.ID] = true
		}
	})
}
