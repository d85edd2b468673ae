package main_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestPausesEndThoughServerAndWorkersWereKilled pauses three jobs for some seconds through a
// server. Server (SIGKILL) and worker are gone when the pauses end. A later worker resumes the jobs,
// but for the one that a person has paused for good since.
func TestPausesEndThoughServerAndWorkersWereKilled(t *testing.T) {
	t.Parallel()
	s := &site{T: t, stack: stacktest.StartNamespace(t)}
	s.temporal = s.stack.Dial(t)
	c := client.New(s.temporal, s.stack.Namespace)
	work := func() (stop func()) {
		return workertest.Start(t, s.stack, job.NewType("LiveLoadInfluxV1", job.WorkerLoad, "Counts its runs.", workertest.Noted[map[string]any](&s.ledger, nil)))
	}
	stop := work()
	file := declaredJobs{recurring: 2, continuous: 1}.file(t)
	const loop, daily, held = "live_load_influx_v1.c-000", "extract_hobo_time_frame.r-000", "extract_hobo_time_frame.r-001"
	url, kill := s.startServer(s.stack.Temporal)
	s.must(0, "apply", "-f", file, "--yes", "--server", url)
	workertest.WaitLoop(t, c, loop, "its first iteration", func(state *contract.ContinuousState) bool { return state.Iterations == 1 })
	said := s.must(0, "jobs", "pause", loop, daily, held, "--for", "PT20S", "--reason", "new disks", "--server", url)
	require.Contains(t, said, "paused until ")
	s.must(0, "jobs", "pause", held, "--reason", "for good", "--server", url)
	require.Contains(t, s.must(0, "jobs", "describe", daily, "--server", url), ": new disks")
	live, err := c.Jobs.LiveSchedule(t.Context(), daily)
	require.NoError(t, err)
	end := live.PauseEnd
	require.False(t, end.IsZero())
	s.must(0, "apply", "-f", declaredJobs{recurring: 2, continuous: 1, revision: 1}.file(t), "--yes", "--server", url)
	live, err = c.Jobs.LiveSchedule(t.Context(), daily)
	require.NoError(t, err)
	require.Equal(t, end, live.PauseEnd, "another definition leaves the pause as it is")
	require.Equal(t, "new disks", live.PauseReason)
	kill()
	stop()
	stacktest.WaitFor(t, "the end of the pauses", func() (bool, error) { return time.Now().After(end.Add(time.Second)), nil })
	paused := func(id string) (bool, error) {
		live, err := c.Jobs.Live(t.Context(), id)
		if err != nil {
			return false, err
		}
		return live.Paused, nil
	}
	for _, id := range []string{loop, daily, held} {
		still, err := paused(id)
		require.NoError(t, err)
		require.True(t, still, "nobody is there to resume %s", id)
	}
	work()
	for _, id := range []string{loop, daily} {
		stacktest.WaitFor(t, id+" to be resumed", func() (bool, error) {
			still, err := paused(id)
			return !still, err
		})
	}
	workertest.WaitLoop(t, c, loop, "its next iteration", func(state *contract.ContinuousState) bool { return state.Iterations == 2 })
	still, err := paused(held)
	require.NoError(t, err)
	require.True(t, still)
}
