package integration_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

// The test binary is also a worker, so that tests can kill one. The variable names its
// ledger.
const ledgerVariable = "DENDRA_TEST_LEDGER"

func TestMain(m *testing.M) {
	if path := os.Getenv(ledgerVariable); path != "" {
		l := ledger{workertest.Book(path)}
		workers.Main(workers.Program{Worker: job.WorkerBackend, Types: func(env workers.Environment) ([]job.Type, error) {
			api, err := activities.ConnectPlatform(env.Getenv)
			if err != nil {
				return nil, err
			}
			return []job.Type{
				integration.ReconcileJobs(api),
				job.NewType(reconcile.OrchestratorType, job.WorkerBackend, "Makes one job.", l.orchestrate),
				job.NewType("WorkForConfig", job.WorkerBackend, "Waits to be stopped.", l.work),
			}, nil
		}})
	}
	os.Exit(m.Run()) //nolint:forbidigo // The main of the test binary.
}

// ledger has a line for everything that handlers do.
type ledger struct{ workertest.Book }

// quick is how the ids of configs begin whose orchestrators do nothing.
const quick = "quick-"

// orchestrate makes one job of its config, and waits to be stopped.
func (l ledger) orchestrate(ctx context.Context, run job.Run, spec reconcile.OrchestratorSpec) (job.Result, error) {
	if strings.HasPrefix(spec.ConfigID, quick) {
		return job.Result{}, l.Add(quick, run, 0)
	}
	if err := l.Add("orchestrator of "+spec.ConfigID, run, 0); err != nil {
		return job.Result{}, err
	}
	made := job.Job{
		ID: job.ID("WorkForConfig", spec.ConfigID), Type: "WorkForConfig", Worker: job.WorkerBackend, Spec: []byte("{}"),
		Trigger: job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}}, Options: job.DefaultOptions(job.ModeContinuous),
	}
	if _, err := run.Jobs().Apply(ctx, job.Set{Provider: job.IntegrationProvider(spec.ConfigID), Jobs: []job.Job{made}}); err != nil {
		return job.Result{}, err
	}
	return l.untilStopped(ctx, run, "orchestrator stopped of "+spec.ConfigID)
}

func (l ledger) work(ctx context.Context, run job.Run, _ struct{}) (job.Result, error) {
	_, config, _ := strings.Cut(run.Job().ID, ".")
	if err := l.Add("work of "+config, run, 0); err != nil {
		return job.Result{}, err
	}
	return l.untilStopped(ctx, run, "work stopped of "+config)
}

func (l ledger) untilStopped(ctx context.Context, run job.Run, line string) (job.Result, error) {
	err := workertest.Wait(ctx, run, nil)
	if errors.Is(err, job.ErrStopped) {
		err = errors.Join(err, l.Add(line, run, 0))
	}
	return job.Result{}, err
}

// startWorker runs a worker process on the stack.
func startWorker(t *testing.T, st *stacktest.Stack, api platform.Config, l ledger) *stacktest.Process {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	w := stacktest.StartProgram(t, st, stacktest.Program{
		Name: "test worker", Path: path, Args: []string{"--address", st.Temporal, "--namespace", st.Namespace},
		Env: []string{ledgerVariable + "=" + string(l.Book), platform.EnvURL + "=" + api.URL, platform.EnvToken + "=" + api.Token},
	})
	w.WaitOutput("serving")
	return w
}
