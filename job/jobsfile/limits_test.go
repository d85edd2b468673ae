package jobsfile_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
)

// What all jobs inherit is for those that repeat; what a job itself has must fit its mode.
func TestFreshnessAndDeadline(t *testing.T) {
	t.Parallel()
	type spec struct{}
	types := []job.Type{{Name: "Probe", Worker: "backend", Modes: job.Modes(), Spec: reflect.TypeFor[spec]()}}
	file, problems := jobsfile.Read("jobs.toml", []byte(`
[defaults]
freshness = "PT2H"

[jobs.probe.often]
recurring = { recur_every = "PT1H" }
deadline = { time = "06:00", time_zone = "Europe/Prague" }

[jobs.probe.once]
one_shot = {}
`), types)
	require.Empty(t, problems)
	require.Equal(t, "probe.often", file.Jobs[0].ID)
	require.Equal(t, "PT2H", file.Jobs[0].Options.Freshness.String())
	require.Equal(t, "06:00 Europe/Prague", file.Jobs[0].Options.Deadline.String())
	require.Zero(t, file.Jobs[1].Options.Freshness)

	_, problems = jobsfile.Read("jobs.toml", []byte(`
[jobs.probe.once]
one_shot = {}
freshness = "PT2H"

[jobs.probe.often]
recurring = { recur_every = "PT1H" }
deadline = { time = "6:00", time_zone = "Europe/Prag" }
`), types)
	var texts []string
	for _, problem := range problems {
		texts = append(texts, problem.String())
	}
	require.Len(t, problems, 2, "%q", texts)
	require.Contains(t, texts[0], "jobs.toml:4:1: freshness goes with recurring and continuous jobs")
	require.Contains(t, texts[1], "jobs.toml:8:")
}
