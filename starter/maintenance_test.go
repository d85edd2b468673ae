package main_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/maintenance"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestAWindowLeavesWhatAPersonHasPaused begins windows over jobs of which a person has paused one. It
// stays paused when a window ends, and the others resume.
func TestAWindowLeavesWhatAPersonHasPaused(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(st *stacktest.Stack) job.Type { return maintenance.Maintenance(st.Pipeline(t)) })
	c := client.New(s.temporal, s.stack.Namespace)
	file := declaredJobs{recurring: 3, continuous: 1}.file(t)
	s.must(0, "apply", "-f", file, "--yes")
	const held, other = "extract_hobo_time_frame.r-001", "live_load_influx_v1.c-000"
	inWindow := []string{"extract_hobo_time_frame.r-000", held, "extract_hobo_time_frame.r-002"}
	s.must(0, "jobs", "pause", held, "--reason", "the logger is away")
	paused := func(id string) (bool, time.Time) {
		live, err := c.Jobs.Live(t.Context(), id)
		require.NoError(t, err)
		return live.Paused, live.PauseEnd
	}
	stacktest.WaitFor(t, "the list of schedules", func() (bool, error) { return len(s.schedules()) == 3, nil })
	said := s.must(0, "run", "--type", "Maintenance", "--spec", `{"jobs": ["extract_hobo_time_frame.*"], "for": "PT1H", "reason": "new disks"}`)
	require.Contains(t, said, "2 paused, 3 silenced, 1 paused before")
	for _, id := range inWindow {
		is, end := paused(id)
		require.True(t, is, id)
		require.Equal(t, id == held, end.IsZero(), id)
	}
	is, _ := paused(other)
	require.False(t, is, "it is in no window")
	silences := s.must(0, "alerts", "silences")
	for _, id := range inWindow {
		require.Contains(t, silences, id)
	}
	require.Contains(t, silences, "new disks")

	said = s.must(0, "run", "--type", "Maintenance", "--spec", `{"jobs": ["`+held+`", "`+other+`"], "for": "PT3S", "reason": "a short one"}`)
	require.Contains(t, said, "1 paused, 2 silenced, 1 paused before")
	stacktest.WaitFor(t, other+" to be resumed", func() (bool, error) { is, _ := paused(other); return !is, nil })
	is, _ = paused(held)
	require.True(t, is)
	stacktest.WaitFor(t, "the silences to end", func() (bool, error) {
		return !strings.Contains(s.must(0, "alerts", "silences"), "a short one"), nil
	})
	require.Contains(t, s.must(0, "changes", "list", held), "the logger is away")
}
