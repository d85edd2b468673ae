package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		l := ledger(path)
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

// ledger is a file with a line for everything that handlers do.
type ledger string

func (l ledger) add(format string, args ...any) error {
	file, err := os.OpenFile(string(l), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, format+"\n", args...)
	return errors.Join(err, file.Close())
}

// lines are all lines so far that are whole.
func (l ledger) lines(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(string(l))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	return lines[:len(lines)-1]
}

// count says how many lines begin with the text.
func (l ledger) count(t *testing.T, begin string) int {
	t.Helper()
	n := 0
	for _, line := range l.lines(t) {
		if strings.HasPrefix(line, begin) {
			n++
		}
	}
	return n
}

func (l ledger) waitFor(t *testing.T, line string, n int) {
	t.Helper()
	stacktest.WaitFor(t, fmt.Sprintf("%d times %q in the ledger", n, line), func() (bool, error) { return l.count(t, line) >= n, nil })
}

// quick is how the ids of configs begin whose orchestrators do nothing.
const quick = "quick-"

// orchestrate makes one job of its config, and waits to be stopped.
func (l ledger) orchestrate(ctx context.Context, run job.Run, spec reconcile.OrchestratorSpec) (job.Result, error) {
	if err := l.add("orchestrator of %s", spec.ConfigID); err != nil || strings.HasPrefix(spec.ConfigID, quick) {
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
	if err := l.add("work of %s", config); err != nil {
		return job.Result{}, err
	}
	return l.untilStopped(ctx, run, "work stopped of "+config)
}

func (l ledger) untilStopped(ctx context.Context, run job.Run, line string) (job.Result, error) {
	err := workertest.Wait(ctx, run, nil)
	if errors.Is(err, job.ErrStopped) {
		err = errors.Join(err, l.add("%s", line))
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
		Env: []string{ledgerVariable + "=" + string(l), platform.EnvURL + "=" + api.URL, platform.EnvToken + "=" + api.Token},
	})
	w.WaitOutput("serving")
	return w
}

func newLedger(t *testing.T) ledger {
	t.Helper()
	return ledger(filepath.Join(t.TempDir(), "ledger"))
}
