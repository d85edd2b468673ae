package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const goodFile = `
[jobs.take_steps.a]
spec = { steps = 1 }
one_shot = {}

[jobs.take_steps.b]
spec = { steps = 2 }
recurring = { recur_every = "P1D" }
`

const badFile = `
[jobs.take_steps.a]
spec = { steps = 0 }
one_shot = {}

[jobs.take_steps.b]
spec = { steps = 2 }
recurring = { recur_every = "P1M" }

[jobs.take_stops.c]
one_shot = {}
`

func TestValidate(t *testing.T) {
	good := writeFile(t, "good.toml", goodFile)
	require.Equal(t, good+": 2 jobs are valid\n", console{}.ok(t, "validate", good))
	require.Equal(t, good+": 2 jobs are valid\n", console{}.ok(t, "validate", "-f", good))
	empty := writeFile(t, "empty.toml", "")
	require.Equal(t, empty+" has no jobs\n", console{}.ok(t, "validate", empty))
	require.Equal(t, "[]\n", console{}.ok(t, "validate", good, "-o", "json"))

	t.Chdir(t.TempDir())
	r := console{}.run(t.Context(), "validate")
	require.Equal(t, "starter: jobs file jobs.toml cannot be read: no such file or directory\n", r.stderr)
}

func TestValidateShowsAllProblems(t *testing.T) {
	t.Parallel()
	offline := console{address: "127.0.0.1:1"}
	bad := writeFile(t, "bad.toml", badFile)
	r := offline.run(t.Context(), "validate", bad)
	require.Equal(t, 1, r.code)
	require.Empty(t, r.stdout)
	note, problems, _ := strings.Cut(r.stderr, "\n")
	require.True(t, strings.HasPrefix(note, "Job types of other programs may be missing: temporal at 127.0.0.1:1 cannot be reached"), note)
	require.Equal(t, bad+`:3:18: spec.steps: 0 is less than 1
`+bad+`:8:29: recurring.recur_every: "P1M" counts years or months, which have no fixed length: write days or weeks, as in P30D
`+bad+`:10:7: unknown job type "take_stops"; did you mean "take_steps"?
starter: `+bad+` has 3 problems
`, problems)

	asJSON := offline.run(t.Context(), "validate", bad, "-o", "json")
	require.Equal(t, 1, asJSON.code)
	require.Equal(t, note+"\nstarter: "+bad+" has 3 problems\n", asJSON.stderr)
	require.Contains(t, asJSON.stdout, `"line": 10,
    "column": 7,
    "message": "unknown job type \"take_stops\"; did you mean \"take_steps\"?"`)

	// Nothing is applied from such a file, or even compared.
	for _, command := range []string{"plan", "apply"} {
		again := offline.run(t.Context(), command, "-f", bad)
		require.Equal(t, r, again)
	}
	one := offline.run(t.Context(), "run", "take_steps.a", "-f", bad)
	require.Equal(t, r.stderr, one.stderr)
}
