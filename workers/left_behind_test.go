package workers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules/control"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// leaveSpec is the spec of LeaveMuch.
type leaveSpec struct {
	// Until is what the handler does once it has checkpointed 7: "fail" at once,
	// or "stopped" to wait for a request to stop and leave more than it may.
	Until string `json:"until"`
}

func leaveMuch(ctx context.Context, run job.Run, spec leaveSpec) (job.Result, error) {
	run.Checkpoint(job.Progress{Done: 1, Total: 2, Message: "at seven"}, 7)
	if spec.Until == "fail" {
		return job.Result{Message: "three rows", Counts: map[string]int64{"rows": 3}}, errors.New("the vendor is away")
	}
	run.Logger().Info("leaving much")
	select {
	case <-run.Stopping():
	case <-ctx.Done():
		return job.Result{}, ctx.Err()
	}
	much := job.Result{
		Cursor: job.EncodeJSON(strings.Repeat("x", 200<<10)),
		Output: job.EncodeJSON(strings.Repeat("y", 200<<10)),
		Counts: map[string]int64{strings.Repeat("n", 100): 1},
	}
	for i := range 5000 {
		much.Counts[fmt.Sprintf("count %04d", i)] = 1
	}
	return much, job.ErrStopped
}

func loopReaches(t *testing.T, c *control.Client, jobID, what string, reached func(*workflows.ContinuousState) bool) *workflows.ContinuousState {
	t.Helper()
	var state *workflows.ContinuousState
	stacktest.WaitFor(t, what, func() (bool, error) {
		detail, err := c.Job(t.Context(), jobID)
		if err != nil {
			return false, err
		}
		state = detail.Loop
		return state != nil && reached(state), nil
	})
	return state
}

func TestFailedIterationLeavesItsCursorAndCounts(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	startWorker(t, st)
	c := newControl(t, st)
	j := newJob(t, "LeaveMuch", "fails", job.Schedule{Continuous: &job.Continuous{Interval: job.Duration(time.Hour)}}, leaveSpec{Until: "fail"})
	j.Options.RetryBackoff = job.Backoff{Initial: job.Duration(time.Hour), Max: job.Duration(time.Hour), Coefficient: 1}
	require.NoError(t, c.StartContinuous(t.Context(), j))
	state := loopReaches(t, c, j.ID, "the failure", func(s *workflows.ContinuousState) bool { return s.Failed == 1 })
	require.JSONEq(t, "7", string(state.Cursor), "a retry goes on from the last checkpoint")
	require.Equal(t, map[string]int64{"rows": 3}, state.Totals)
	failed := state.Recent[0]
	require.Equal(t, "the vendor is away", failed.Error)
	require.NotEmpty(t, failed.Worker)
	require.Equal(t, "three rows", failed.Message)
	require.Equal(t, map[string]int64{"rows": 3}, failed.Counts)
}

func TestWhatAStoppedHandlerLeavesIsBounded(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	w := startWorker(t, st)
	c := newControl(t, st)
	j := newJob(t, "LeaveMuch", "stopped", job.Schedule{Continuous: &job.Continuous{Interval: job.Duration(time.Hour)}}, leaveSpec{Until: "stopped"})
	require.NoError(t, c.StartContinuous(t.Context(), j))
	loopReaches(t, c, j.ID, "the iteration", func(s *workflows.ContinuousState) bool { return s.Phase == workflows.PhaseRunning })
	w.WaitOutput("leaving much")
	require.NoError(t, c.Restart(t.Context(), j.ID, "told to leave"))
	state := loopReaches(t, c, j.ID, "the end of the iteration", func(s *workflows.ContinuousState) bool { return s.Interrupted == 1 })
	require.JSONEq(t, "7", string(state.Cursor), "the last checkpoint in place of 200 KiB")
	require.Len(t, state.Recent[0].Counts, 100)
	require.Contains(t, state.Recent[0].Counts, "count 0099")
	w.WaitOutput("that of its last checkpoint is kept")
	w.WaitOutput("not all are kept")
	require.NoError(t, c.Stop(t.Context(), j.ID, "enough"))
	require.NoError(t, c.Temporal().GetWorkflow(t.Context(), workflows.JobWorkflowID(j.ID), "").Get(t.Context(), nil))
}
