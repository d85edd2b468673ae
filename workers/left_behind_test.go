package workers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// leaveSpec is the spec of LeaveMuch.
type leaveSpec struct {
	// Until is what the handler does once it has checkpointed 7: "fail" at once,
	// "stopped" to wait for a request to stop and leave more than it may, or "let go"
	// to wait for one, and for the gate, and fail for good, or "stopped and failed" to
	// wait for one and fail as if it had not heard.
	Until string `json:"until"`
	// Gate is a file.
	Gate string `json:"gate,omitempty"`
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
	if spec.Until == "stopped and failed" {
		return job.Result{}, errors.New("the vendor hung up")
	}
	if spec.Until == "let go" {
		if err := passGate(ctx, run, recordSpec{Gate: spec.Gate, IgnoreStop: true}); err != nil {
			return job.Result{}, err
		}
		return job.Result{}, job.Final("Away", "the vendor is away")
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

func TestFailedIterationLeavesItsCursorAndCounts(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t) // Another worker would be given the iteration, and hand it over when its test ends.
	startWorker(t, st)
	c := newControl(t, st)
	j := newJob(t, "LeaveMuch", "fails", continuousEvery(time.Hour), leaveSpec{Until: "fail"})
	j.Options.RetryBackoff = job.Backoff{Initial: job.Duration(time.Hour), Max: job.Duration(time.Hour), Coefficient: 1}
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	state := workertest.WaitLoop(t, c, j.ID, "the failure", func(s *contract.ContinuousState) bool { return s.Failed == 1 })
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
	st := stacktest.StartNamespace(t) // Another worker would be given the iteration, and hand it over when its test ends.
	w := startWorker(t, st)
	c := newControl(t, st)
	j := newJob(t, "LeaveMuch", "stopped", continuousEvery(time.Hour), leaveSpec{Until: "stopped"})
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	workertest.WaitLoop(t, c, j.ID, "the iteration", func(s *contract.ContinuousState) bool { return s.Phase == contract.PhaseRunning })
	w.WaitOutput("leaving much")
	require.NoError(t, c.Jobs.Restart(t.Context(), j.ID, "by test"))
	state := workertest.WaitLoop(t, c, j.ID, "the end of the iteration", func(s *contract.ContinuousState) bool { return s.Interrupted == 1 })
	require.JSONEq(t, "7", string(state.Cursor), "the last checkpoint in place of 200 KiB")
	require.Len(t, state.Recent[0].Counts, 100)
	require.Contains(t, state.Recent[0].Counts, "count 0099")
	w.WaitOutput("that of its last checkpoint is kept")
	w.WaitOutput("not all are kept")
	require.NoError(t, c.Jobs.Stop(t.Context(), j.ID, "enough"))
	require.NoError(t, c.Temporal().GetWorkflow(t.Context(), contract.JobWorkflowID(j.ID), "").Get(t.Context(), nil))
}

// A message that changes nothing leaves no trace: a run of a workflow takes 2,000.
// And a pause adds to a pause.
func TestLoopTakesOnlyWhatChangesIt(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t) // Another worker would be given the iteration, and hand it over when its test ends.
	w := startWorker(t, st)
	c := newControl(t, st)
	gate := workertest.NewGate(t)
	j := newJob(t, "LeaveMuch", "loop", continuousEvery(time.Hour),
		leaveSpec{Until: "let go", Gate: gate})
	j.Options.MaxRetryCount = 0
	j.Options.StopGracePeriod = job.Duration(time.Minute)
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	w.WaitOutput("leaving much")
	const times = 20
	for range times {
		number, err := c.Jobs.TriggerIteration(t.Context(), j.ID)
		require.NoError(t, err)
		require.EqualValues(t, 2, number)
		require.NoError(t, c.Jobs.Resume(t.Context(), j.ID, "test"))
		require.NoError(t, c.Apply.SetContinuous(t.Context(), j, "", false))
	}
	for range times {
		require.NoError(t, c.Jobs.Pause(t.Context(), j.ID, "maintenance"))
	}
	require.Equal(t, 2, updates(t, c, j.ID), "one trigger and one pause")

	workertest.Open(t, gate)
	const reason = "maintenance; also: 1 iterations in a row failed, the last one: the vendor is away"
	workertest.WaitLoop(t, c, j.ID, "the pause after the failure", func(s *contract.ContinuousState) bool { return s.PauseReason == reason })
	corrected := j
	corrected.Spec = job.EncodeJSON(leaveSpec{Until: "let go", Gate: gate + "s"})
	require.NoError(t, c.Apply.SetContinuous(t.Context(), corrected, "", false))
	state := workertest.WaitLoop(t, c, j.ID, "the new definition", func(s *contract.ContinuousState) bool {
		return string(s.Job.Spec) == string(corrected.Spec)
	})
	require.True(t, state.Paused, "someone has paused it besides")
	require.Equal(t, reason, state.PauseReason)

	require.NoError(t, c.Jobs.Resume(t.Context(), j.ID, "test"))
	workertest.WaitLoop(t, c, j.ID, "the next iteration", func(s *contract.ContinuousState) bool { return s.Phase == contract.PhaseRunning })
	for range times {
		require.NoError(t, c.Jobs.Stop(t.Context(), j.ID, "enough"))
	}
	require.Equal(t, 5, updates(t, c, j.ID), "besides: a definition, a resume and a stop")
	workertest.Open(t, gate+"s")
	var out contract.ContinuousOutput
	require.NoError(t, c.Temporal().GetWorkflow(t.Context(), contract.JobWorkflowID(j.ID), "").Get(t.Context(), &out))
	require.EqualValues(t, 2, out.Iterations)
}

// updates counts the messages in the history of a job's workflow.
func updates(t *testing.T, c *client.Client, jobID string) int {
	t.Helper()
	history := c.Temporal().GetWorkflowHistory(t.Context(), contract.JobWorkflowID(jobID), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	n := 0
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED {
			n++
		}
	}
	return n
}
