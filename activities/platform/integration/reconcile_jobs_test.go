package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func newRun(t *testing.T, typ job.Type, window string, jobs job.Jobs) *jobtest.Run {
	t.Helper()
	j := jobtest.NewJob(typ, "main", job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}}, map[string]string{"window": window})
	return jobtest.NewRun(j, jobtest.WithJobs(jobs))
}

// An iteration is a window: it begins with a full read, and ends with a result that
// names what is not in line.
func TestAnIterationIsAWindow(t *testing.T) {
	t.Parallel()
	server, jobs := reconciletest.New(t), jobtest.NewJobs()
	typ := integration.ReconcileJobs(server.Client)
	server.Enable("a", "b", "c")
	jobs.Fail(reconcile.OrchestratorID("b"), errors.New("not now"))
	began := time.Now()
	result, err := typ.Handle(t.Context(), newRun(t, typ, "PT1S", jobs))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	require.Equal(t, []string{reconcile.OrchestratorID("a"), reconcile.OrchestratorID("c")}, jobs.IDs())
	require.EqualValues(t, 2, result.Counts["created"])
	require.Positive(t, result.Counts["failed"])
	require.Equal(t, "enabled configs: 3; not in line: 1: b (job orchestrate_integration.b: not now)", result.Message)

	jobs.Fail(reconcile.OrchestratorID("b"), nil)
	server.Disable("a", "c")
	result, err = typ.Handle(t.Context(), newRun(t, typ, "PT1S", jobs))
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"created": 1, "deleted": 2}, result.Counts)
	require.Equal(t, "enabled configs: 1", result.Message)
}

// hangingJobs never come to an end of a change.
type hangingJobs struct {
	*jobtest.Jobs
	begun chan struct{}
}

func (j hangingJobs) Apply(ctx context.Context, _ job.Set) (job.Applied, error) {
	close(j.begun)
	<-ctx.Done()
	return job.Applied{}, ctx.Err()
}

func TestAStopBreaksOffWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	server, begun := reconciletest.New(t), make(chan struct{})
	server.Enable("a")
	typ := integration.ReconcileJobs(server.Client)
	run := newRun(t, typ, "PT1H", hangingJobs{jobtest.NewJobs(), begun})
	go func() {
		<-begun
		run.Stop()
	}()
	_, err := typ.Handle(t.Context(), run)
	require.NoError(t, err, "the next iteration completes it")
}

func TestAnIterationFailsWhenThePlatformIsAway(t *testing.T) {
	t.Parallel()
	nowhere, err := platform.New(platform.Config{URL: "http://127.0.0.1:1", Token: "hunter2"})
	require.NoError(t, err)
	for class, typ := range map[string]job.Type{
		errclass.PlatformUnreachable: integration.ReconcileJobs(nowhere),
		errclass.NoPlatform:          integration.ReconcileJobs(nil),
	} {
		_, err := typ.Handle(t.Context(), newRun(t, typ, "PT1S", jobtest.NewJobs()))
		failure := jobtest.FailureOf(t, err)
		require.Equal(t, class, failure.Class)
	}
}

// A config that is enabled within the window has its job at once.
func TestAConfigIsSeenWithinTheWindow(t *testing.T) {
	t.Parallel()
	server, jobs := reconciletest.New(t), jobtest.NewJobs()
	typ := integration.ReconcileJobs(server.Client)
	run := newRun(t, typ, "PT1H", jobs)
	server.Enable("first")
	ended := make(chan error)
	go func() {
		_, err := typ.Handle(t.Context(), run)
		ended <- err
	}()
	stacktest.WaitFor(t, "the iteration to begin", func() (bool, error) { return len(jobs.IDs()) == 1, nil })
	server.Enable("a")
	stacktest.WaitFor(t, "the job", func() (bool, error) { return len(jobs.IDs()) == 2, nil })
	server.Disable("a")
	stacktest.WaitFor(t, "no job", func() (bool, error) { return len(jobs.IDs()) == 1, nil })
	run.Stop()
	require.NoError(t, <-ended)
}
