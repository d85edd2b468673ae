package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/integration"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/reconcile"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func newRun(t *testing.T, url, window string, jobs job.Jobs) *jobtest.Run {
	t.Helper()
	spec := `{"platform_url":"` + url + `","window":"` + window + `"}`
	typ := integration.ReconcileJobs()
	require.NoError(t, jobtest.CheckSpec(typ, spec))
	j := jobtest.NewJob(typ, "main", job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}}, nil)
	j.Spec = []byte(spec)
	return jobtest.NewRun(j, jobtest.WithJobs(jobs))
}

// An iteration is a window: it begins with a full read, and ends with a result that
// names what is not in line.
func TestAnIterationIsAWindow(t *testing.T) {
	t.Parallel()
	server, jobs, typ := platformtest.New(t), jobtest.NewJobs(), integration.ReconcileJobs()
	server.Enable("a", "b", "c")
	jobs.Fail(reconcile.OrchestratorID("b"), errors.New("not now"))
	began := time.Now()
	result, err := typ.Handle(t.Context(), newRun(t, server.URL, "PT1S", jobs))
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), time.Second)
	require.Equal(t, []string{reconcile.OrchestratorID("a"), reconcile.OrchestratorID("c")}, jobs.IDs())
	require.EqualValues(t, 2, result.Counts["created"])
	require.Positive(t, result.Counts["failed"])
	require.Equal(t, "enabled configs: 3; not in line: 1: b (job orchestrate_integration.b: not now)", result.Message)

	jobs.Fail(reconcile.OrchestratorID("b"), nil)
	server.Disable("a", "c")
	result, err = typ.Handle(t.Context(), newRun(t, server.URL, "PT1S", jobs))
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
	server, begun := platformtest.New(t), make(chan struct{})
	server.Enable("a")
	run := newRun(t, server.URL, "PT1H", hangingJobs{jobtest.NewJobs(), begun})
	go func() {
		<-begun
		run.Stop()
	}()
	_, err := integration.ReconcileJobs().Handle(t.Context(), run)
	require.NoError(t, err, "the next iteration completes it")
}

func TestAnIterationFailsWhenThePlatformIsAway(t *testing.T) {
	t.Parallel()
	_, err := integration.ReconcileJobs().Handle(t.Context(), newRun(t, "http://127.0.0.1:1", "PT1S", jobtest.NewJobs()))
	require.ErrorContains(t, err, "the configs of the platform cannot be read: the Platform API at http://127.0.0.1:1 does not answer: ")
	var failure *job.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, platform.ClassUnreachable, failure.Class)
}

func TestSpecsOfReconcileJobs(t *testing.T) {
	t.Parallel()
	typ := integration.ReconcileJobs()
	require.NoError(t, jobtest.CheckSpec(typ, `{"platform_url":"https://platform.example.org","token":"secret://platform"}`))
	for spec, want := range map[string]string{
		`{}`:                         `spec: key "platform_url" is missing`,
		`{"platform_url":"nowhere"}`: "platform_url is not of the form http://HOST:PORT or https://HOST",
		`{"platform_url":"http://127.0.0.1:8100","token":"abc"}`:     "spec.token: a secret is named, never written: secret://NAME",
		`{"platform_url":"http://127.0.0.1:8100","window":"PT0.1S"}`: `spec.window: "PT0.1S" is shorter than PT1S`,
	} {
		require.ErrorContains(t, jobtest.CheckSpec(typ, spec), want, spec)
	}
}
