package integration_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/integration"
	"github.com/dendrascience/dendra-jobs/internal/reconcile"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// platform wants a job for each of its configs.
type platform struct {
	mu      sync.Mutex
	configs []string
	err     error
}

func (p *platform) Configs(context.Context) ([]reconcile.Config, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []reconcile.Config
	for _, config := range p.configs {
		list = append(list, reconcile.Config{ID: config, Job: orchestrator(config)})
	}
	return list, p.err
}

func (p *platform) SetCondition(context.Context, string, reconcile.Condition) error { return nil }

func orchestrator(config string) *job.Job {
	schedule := job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}}
	return &job.Job{
		ID: reconcile.OrchestratorID(config), Type: reconcile.OrchestratorType, Worker: job.WorkerBackend,
		Spec: job.EncodeJSON(map[string]string{"config": config}), Trigger: schedule, Options: job.DefaultOptions(schedule.Mode()),
	}
}

func reconcileJobs(p *platform) job.Type {
	return integration.ReconcileJobs(func(job.Run, integration.PlatformSpec) (reconcile.Source, error) { return p, nil })
}

func newRun(t *testing.T, typ job.Type, jobs job.Jobs) *jobtest.Run {
	t.Helper()
	const spec = `{"platform_url":"http://127.0.0.1:8100","window":"PT1M"}`
	require.NoError(t, jobtest.CheckSpec(typ, spec))
	j := jobtest.NewJob(typ, "main", job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}}, nil)
	j.Spec = []byte(spec)
	return jobtest.NewRun(j, jobtest.WithJobs(jobs))
}

// An iteration is a window: it begins with a full read, and ends with a result that
// names what is not in line.
func TestAnIterationIsAWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, jobs := &platform{configs: []string{"a", "b", "c"}}, jobtest.NewJobs()
		jobs.Fail(reconcile.OrchestratorID("b"), errors.New("not now"))
		began := time.Now()
		typ := reconcileJobs(p)
		run := newRun(t, typ, jobs)
		result, err := typ.Handle(t.Context(), run)
		require.NoError(t, err)
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, []string{reconcile.OrchestratorID("a"), reconcile.OrchestratorID("c")}, jobs.IDs())
		require.Equal(t, map[string]int64{"created": 2, "failed": 6}, result.Counts)
		require.Equal(t, "enabled configs: 3; not in line: 1: b (job orchestrate_integration.b: not now)", result.Message)
		require.GreaterOrEqual(t, len(run.Checkpoints()), 30)

		jobs.Fail(reconcile.OrchestratorID("b"), nil)
		p.configs = []string{"b"}
		result, err = typ.Handle(t.Context(), newRun(t, typ, jobs))
		require.NoError(t, err)
		require.Equal(t, map[string]int64{"created": 1, "deleted": 2}, result.Counts)
		require.Equal(t, "enabled configs: 1", result.Message)
	})
}

// hangingJobs never come to an end of a change.
type hangingJobs struct{ *jobtest.Jobs }

func (hangingJobs) Apply(ctx context.Context, _ job.Set) (job.Applied, error) {
	<-ctx.Done()
	return job.Applied{}, ctx.Err()
}

func TestAStopBreaksOffWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		typ := reconcileJobs(&platform{configs: []string{"a"}})
		run := newRun(t, typ, hangingJobs{jobtest.NewJobs()})
		go func() {
			time.Sleep(5 * time.Second) // the clock of the test bubble
			run.Stop()
		}()
		began := time.Now()
		_, err := typ.Handle(t.Context(), run)
		require.NoError(t, err, "the next iteration completes it")
		require.Equal(t, 5*time.Second, time.Since(began))
	})
}

func TestAnIterationFailsWhenThePlatformIsAway(t *testing.T) {
	t.Parallel()
	typ := reconcileJobs(&platform{err: job.Retryable("PlatformUnreachable", 0, "connection refused")})
	_, err := typ.Handle(t.Context(), newRun(t, typ, jobtest.NewJobs()))
	require.EqualError(t, err, "the configs of the platform cannot be read: connection refused")
	var failure *job.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, "PlatformUnreachable", failure.Class)
}

func TestSpecsOfReconcileJobs(t *testing.T) {
	t.Parallel()
	typ := integration.ReconcileJobs(nil)
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
