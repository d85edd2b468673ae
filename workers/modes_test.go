package workers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/workers"
)

func TestOneShotRunsAndIsFound(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	j := newJob(t, "RecordSteps", "a", oneShot(), recordSpec{Ledger: string(ledger), Steps: 3})
	j.Options.Owner = job.Owner{Organization: "ucnrs"}

	ref := startRun(t, c, j)
	run := requireCompleted(t, c, ref)
	require.Equal(t, "all steps done", run.Output.Message)
	require.Equal(t, 1, run.Output.Attempts)
	require.Equal(t, 3, ledger.Count(t, "step"))

	for _, filter := range []client.RunFilter{{JobID: j.ID}, {Type: j.Type, JobID: j.ID}, {Mode: job.ModeOneShot, JobID: j.ID}} {
		stacktest.WaitFor(t, "the run in the list", func() (bool, error) {
			runs, err := c.Runs.List(t.Context(), filter)
			return err == nil && len(runs) == 1 && runs[0].RunRef == ref && runs[0].Mode == job.ModeOneShot, err
		})
	}
}

func TestErrorsKeepTheirClassAndNoSecrets(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	for name, want := range map[string]struct {
		class   string
		kind    errclass.Kind
		message string
	}{
		"PanicAtOnce": {errclass.Panic, errclass.Permanent, "the handler of job type PanicAtOnce panicked: out of luck"},
		"TellSecret":  {"Refused", errclass.Permanent, "the vendor refuses token [redacted]"},
		// Every problem, as the schema that the worker announces has it.
		"RecordSteps": {errclass.InvalidSpec, errclass.Misconfigured, `spec: key "ledger" is missing; ` +
			`spec.colour: unknown key "colour"; spec.steps: -1 is less than 0`},
	} {
		spec := map[string]any{}
		if name == "RecordSteps" {
			spec["colour"], spec["steps"] = "green", -1
		}
		ref := startRun(t, c, newJob(t, name, "a", oneShot(), spec))
		run := follow(t, c, ref)
		require.Equal(t, client.RunFailed, run.Status)
		require.Equal(t, want.class, run.Class)
		require.Equal(t, want.kind, run.Kind)
		require.Contains(t, run.Error, want.message)
		require.NotContains(t, run.Error, "hunter2")
	}
}

func TestContinuousJobCountsEveryIteration(t *testing.T) {
	t.Parallel()
	iterations := stacktest.Size(100, 2000)
	st := stacktest.StartOwn(t, "--only", "temporal", "--history-events", "500")
	startWorker(t, st)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	j := newJob(t, "RecordSteps", "fast", continuousEvery(job.MinInterval.Std()),
		recordSpec{Ledger: string(ledger), Steps: 1})
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	first, err := c.Jobs.LiveWorkflow(t.Context(), j.ID)
	require.NoError(t, err)

	stacktest.WaitWithin(t, 5*time.Minute, "the iterations", func() (bool, error) {
		return ledger.Count(t, "end") >= iterations, nil
	})
	require.NoError(t, c.Jobs.Stop(t.Context(), j.ID, "enough"))
	var out contract.ContinuousOutput
	require.NoError(t, c.Temporal().GetWorkflow(t.Context(), contract.JobWorkflowID(j.ID), "").Get(t.Context(), &out))
	require.EqualValues(t, ledger.Count(t, "end"), out.Iterations)
	require.Equal(t, out.Iterations, out.Totals["steps"])
	require.Zero(t, out.Failed)
	require.Equal(t, "enough", out.Reason)

	history := c.Temporal().GetWorkflowHistory(t.Context(), contract.JobWorkflowID(j.ID), first.Workflow.RunID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	require.True(t, history.HasNext())
	end, err := history.Next()
	require.NoError(t, err)
	require.Equal(t, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW, end.GetEventType())
	t.Logf("%d iterations", out.Iterations)
}

func TestStopIsGracefulThenCutOff(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	for _, ignores := range []bool{false, true} {
		ledger := workertest.NewBook(t)
		gate := workertest.NewGate(t)
		key := map[bool]string{true: "ignores", false: "hears"}[ignores]
		j := newJob(t, "RecordSteps", key, continuousEvery(time.Hour),
			recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate, IgnoreStop: ignores})
		j.Options.StopGracePeriod = job.Duration(time.Second)
		require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
		ledger.WaitFor(t, "step", 1)
		require.NoError(t, c.Jobs.Stop(t.Context(), j.ID, "by test"))
		state := stoppedState(t, c, j.ID)
		require.Equal(t, map[bool]int{true: 0, false: 1}[ignores], ledger.Count(t, "stop"))
		require.Zero(t, ledger.Count(t, "end"))
		require.True(t, state.Recent[0].Stopped)
		require.JSONEq(t, "1", string(state.Cursor), "the position is kept")
	}
}

func TestCanceledRunWaitsForItsHandler(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	j := newJob(t, "RecordSteps", "a", oneShot(), recordSpec{Ledger: string(ledger), Steps: 2, Gate: workertest.NewGate(t)})
	ref := startRun(t, c, j)
	ledger.WaitFor(t, "step", 1)
	require.NoError(t, c.Jobs.Stop(t.Context(), j.ID, "by test"))
	err := c.Temporal().GetWorkflow(t.Context(), ref.WorkflowID, ref.RunID).Get(t.Context(), nil)
	require.True(t, temporal.IsCanceledError(err), "%v", err)
	require.Equal(t, 1, ledger.Count(t, "stop"))
}

// TestActivityPausedByHandGoesOn pauses and unpauses the activity of a run, as the
// Web UI does.
func TestActivityPausedByHandGoesOn(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	startWorker(t, st)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	j := newJob(t, "RecordSteps", "a", oneShot(), recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate})
	ref := startRun(t, c, j)
	ledger.WaitFor(t, "step", 1)
	execution := &commonpb.WorkflowExecution{WorkflowId: ref.WorkflowID, RunId: ref.RunID}
	_, err := c.Temporal().WorkflowService().PauseActivity(t.Context(), &workflowservice.PauseActivityRequest{
		Namespace: st.Namespace, Execution: execution, Activity: &workflowservice.PauseActivityRequest_Type{Type: j.Type},
	})
	require.NoError(t, err)
	ledger.WaitFor(t, "stop", 1)
	stacktest.WaitFor(t, "the attempt to end", func() (bool, error) {
		d, err := c.Temporal().DescribeWorkflowExecution(t.Context(), ref.WorkflowID, ref.RunID)
		return err == nil && len(d.GetPendingActivities()) == 1 &&
			d.GetPendingActivities()[0].GetState() == enumspb.PENDING_ACTIVITY_STATE_PAUSED, err
	})
	workertest.Open(t, gate)
	_, err = c.Temporal().WorkflowService().UnpauseActivity(t.Context(), &workflowservice.UnpauseActivityRequest{
		Namespace: st.Namespace, Execution: execution, Activity: &workflowservice.UnpauseActivityRequest_Type{Type: j.Type},
	})
	require.NoError(t, err)
	requireCompleted(t, c, ref)
	require.Equal(t, 2, ledger.Count(t, "step"), "it goes on at its cursor")
}

func TestKilledWorkersRunGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	first := startWorker(t, st)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	j := withShortTimeout(newJob(t, "RecordSteps", "a", oneShot(), recordSpec{Ledger: string(ledger), Steps: 4, Gate: gate}))
	j.Options.MaxRetryCount = 0 // The worker failed, not the job.
	ref := startRun(t, c, j)
	waitFirstStep(t, c, ref)
	second := startWorker(t, st)
	first.Kill()
	workertest.Open(t, gate)
	requireCompleted(t, c, ref)
	require.Equal(t, 4, ledger.Count(t, "step"), "the run goes on at its cursor")
	last := ledger.Read(t)
	require.Equal(t, second.PID(), last[len(last)-1].PID)
}

// healthAddress is where a process started with --health-address 127.0.0.1:0 answers
// whether it is ready.
func healthAddress(w *stacktest.Process) string {
	return regexp.MustCompile(`http://127\.0\.0\.1:\d+/readyz`).FindString(w.Output())
}

func getHealth(t *testing.T, url string) (int, workers.Health) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	var health workers.Health
	require.NoError(t, json.NewDecoder(response.Body).Decode(&health))
	return response.StatusCode, health
}

// TestWorkerWaitsForTemporal looks at the health endpoint of a worker that starts before
// Temporal does.
func TestWorkerWaitsForTemporal(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal")
	st.Kill()
	w := stacktest.StartProgram(t, st, workerProgram(t, st.Temporal, "--health-address", "127.0.0.1:0"))
	w.WaitOutput("temporal at " + st.Temporal + " cannot be reached")
	readyz := healthAddress(w)
	livez := strings.Replace(readyz, "readyz", "livez", 1)
	code, health := getHealth(t, readyz)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "connecting", health.State)
	code, _ = getHealth(t, livez)
	require.Equal(t, http.StatusOK, code, "a restart does not help")

	st.Restart(t)
	w.WaitOutput("serving")
	code, health = getHealth(t, readyz)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "serving", health.State)
	require.ElementsMatch(t, []string{"RecordSteps", "Tick", "LeaveMuch", "LogLines", "PanicAtOnce", "TellSecret"}, health.JobTypes)
	w.Signal(syscall.SIGTERM)
	require.Zero(t, w.Wait())
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	err := workers.Run(context.Background(), workers.Config{
		Worker: "Bad Name", MaxConcurrentRuns: -1, Types: append(testTypes(), testTypes()[0]),
	})
	require.ErrorContains(t, err, `worker type "Bad Name"`)
	require.ErrorContains(t, err, "job type RecordSteps is registered twice")
	require.ErrorContains(t, err, "belongs to worker type testing")
	require.ErrorContains(t, err, "-1 concurrent runs")
	require.ErrorContains(t, err, "a worker in a test needs the address of the test's own Temporal")
}

// TestStoppedJobIsRestartedAtAnyMoment restarts a continuous job that was asked
// to stop, while its handler is about to end, or has just ended.
func TestStoppedJobIsRestartedAtAnyMoment(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	j := newJob(t, "RecordSteps", "a", continuousEvery(time.Hour),
		recordSpec{Ledger: string(ledger), Steps: 2, Gate: workertest.NewGate(t)})
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	for n := range 5 {
		ledger.WaitFor(t, "step", n+1)
		require.NoError(t, c.Jobs.Stop(t.Context(), j.ID, "by test"))
		ledger.WaitFor(t, "stop", n+1)
		require.NoError(t, c.Jobs.Restart(t.Context(), j.ID, "by test"))
	}
	ledger.WaitFor(t, "step", 6)
	require.NoError(t, c.Apply.StopContinuous(t.Context(), j.ID, "by test", nil))
}

// TestWaitThatIsOverBlamesNoWorker follows an iteration and an item of a queue
// without the time to be answered.
func TestWaitThatIsOverBlamesNoWorker(t *testing.T) {
	t.Parallel()
	c := newControl(t, startShared(t))
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, err := c.Runs.FollowIteration(ctx, "record_steps.any", 1, func(*contract.ContinuousState) { t.Error("it reported") })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	queued := newJob(t, "RecordSteps", "any", job.Trigger{Queued: &job.Queued{Queue: "any"}}, recordSpec{})
	_, err = c.Queues.AwaitTurn(ctx, queued, 1, func(int) { t.Error("it reported") })
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
