package workers_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

// currentDetails are what the Web UI shows of a workflow.
func currentDetails(t *testing.T, c *client.Client, jobID string) (string, error) {
	t.Helper()
	answer, err := c.Temporal().QueryWorkflow(t.Context(), contract.JobWorkflowID(jobID), "", "__temporal_workflow_metadata")
	if err != nil {
		return "", err
	}
	var metadata sdkpb.WorkflowMetadata
	err = answer.Get(&metadata)
	return metadata.GetCurrentDetails(), err
}

// The current details have the progress of a run that takes long, and of the attempt
// before one that was handed over.
func TestProgressIsInTheCurrentDetails(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	step, done := make(chan int64), make(chan struct{})
	serve := func() (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- workers.Run(ctx, workers.Config{
				Worker: "telling", ProgressEvery: 20 * time.Millisecond, Identity: "teller", Logger: slog.New(slog.DiscardHandler),
				Temporal: temporalclient.Settings{Address: st.Temporal, Namespace: st.Namespace},
				Types: []job.Type{job.NewType("TakeLong", "telling", "Takes long.", func(ctx context.Context, run job.Run, _ struct{}) (job.Result, error) {
					for {
						select {
						case n := <-step:
							run.Checkpoint(job.Progress{Done: n, Total: 9, Message: "on the way"}, map[string]int64{"at": n})
						case <-done:
							return job.Result{Message: "arrived"}, nil
						case <-run.Stopping():
							return job.Result{}, job.ErrStopped
						case <-ctx.Done():
							return job.Result{}, ctx.Err()
						}
					}
				})},
			})
		}()
		return func() {
			cancel()
			require.NoError(t, <-ended)
		}
	}
	shows := func(j job.Job, texts ...string) {
		t.Helper()
		stacktest.WaitFor(t, strings.Join(texts, ", ")+" in the details of "+j.ID, func() (bool, error) {
			details, err := currentDetails(t, c, j.ID)
			for _, text := range texts {
				if !strings.Contains(details, text) {
					return false, err
				}
			}
			return true, err
		})
	}
	once := newJob(t, "TakeLong", "once", oneShot(), struct{}{})
	once.Worker = "telling"
	stop := serve()
	_, err := c.StartRun(t.Context(), once, contract.StartedByHand)
	require.NoError(t, err)
	for _, n := range []int64{3, 5} {
		step <- n
	}
	shows(once, "running: ", "progress: **5/9 on the way**", "cursor: `{\"at\":5}`", ", on teller")
	stop()
	stop = serve()
	shows(once, "passed on to another worker 1 times", "progress: **5/9 on the way**", "cursor: `{\"at\":5}`")
	done <- struct{}{}
	shows(once, "completed: arrived")
	details, err := currentDetails(t, c, once.ID)
	require.NoError(t, err)
	require.NotContains(t, details, "progress: ")

	homeless := newJob(t, "TakeLong", "homeless", oneShot(), struct{}{})
	homeless.Worker, homeless.Options.Bind = "telling", map[string]string{"zone": "nowhere"}
	_, err = c.StartRun(t.Context(), homeless, contract.StartedByHand)
	require.NoError(t, err)
	shows(homeless, "looking for a service")
	require.NoError(t, c.Stop(t.Context(), homeless.ID, "enough"))

	loop := newJob(t, "TakeLong", "loop", job.Schedule{Continuous: &job.Continuous{Interval: job.Duration(time.Hour)}}, struct{}{})
	loop.Worker = "telling"
	require.NoError(t, c.StartContinuous(t.Context(), loop))
	step <- 7
	shows(loop, "Iteration 1 runs: ", "progress: **7/9 on the way**")
	require.NoError(t, c.Stop(t.Context(), loop.ID, "enough"))
	require.NoError(t, c.Temporal().GetWorkflow(t.Context(), contract.JobWorkflowID(loop.ID), "").Get(t.Context(), nil))
	stop()

	// What does not change is not told again.
	told, _ := signals(t, c, once)
	require.LessOrEqual(t, told, 3, "two in the first attempt, and where the second goes on")
}

// signals counts those in the history of a job's run, and says how long that took.
func signals(t *testing.T, c *client.Client, j job.Job) (count int, took time.Duration) {
	t.Helper()
	history := c.Temporal().GetWorkflowHistory(t.Context(), contract.JobWorkflowID(j.ID), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var began time.Time
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		if began.IsZero() {
			began = event.GetEventTime().AsTime()
		}
		took = event.GetEventTime().AsTime().Sub(began)
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED {
			count++
		}
	}
	return count, took
}

// A run that is retried again and again tells its progress no more often than one that
// takes as long.
func TestProgressOfARunThatIsRetriedIsBounded(t *testing.T) {
	t.Parallel()
	const every, tries = 10 * time.Millisecond, 20
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var tried atomic.Int64
	go func() {
		ended <- workers.Run(ctx, workers.Config{
			Worker: "retrying", ProgressEvery: every, Logger: slog.New(slog.DiscardHandler),
			Temporal: temporalclient.Settings{Address: st.Temporal, Namespace: st.Namespace},
			Types: []job.Type{job.NewType("FailOften", "retrying", "Fails often.", func(ctx context.Context, run job.Run, _ struct{}) (job.Result, error) {
				try := tried.Add(1)
				for n := range int64(30) {
					run.Checkpoint(job.Progress{Done: 30*try + n}, n)
					select {
					case <-time.After(every / 2):
					case <-ctx.Done():
						return job.Result{}, ctx.Err()
					}
				}
				if try < tries {
					return job.Result{}, errors.New("not yet")
				}
				return job.Result{}, nil
			})},
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	j := newJob(t, "FailOften", "often", oneShot(), struct{}{})
	j.Worker = "retrying"
	j.Options.MaxRetryCount = job.Unlimited
	j.Options.RetryBackoff = job.Backoff{Initial: job.Duration(time.Millisecond), Max: job.Duration(time.Millisecond), Coefficient: 1}
	ref, err := c.StartRun(t.Context(), j, contract.StartedByHand)
	require.NoError(t, err)
	run, err := c.Follow(t.Context(), ref, func(*client.RunDetail) {})
	require.NoError(t, err)
	require.Equal(t, client.RunCompleted, run.Status, run.Error)
	told, took := signals(t, c, j)
	most := 20 + math.Log(max(1, took.Seconds()/(20*every).Seconds()))/math.Log(1.05)
	t.Logf("told %d times in %s, at most %.0f", told, took, most)
	require.LessOrEqual(t, float64(told), most+1)
	require.Positive(t, told)
}
