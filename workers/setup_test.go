package workers_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// workerProgram is a worker process for the test job types, on the Temporal at an
// address.
func workerProgram(t *testing.T, address string, args ...string) stacktest.Program {
	t.Helper()
	return stacktest.Program{
		Name: "test worker", Path: executable(t), Args: append([]string{"--address", address}, args...),
		Env: []string{workerVariable + "=1", "DENDRA_SECRET_TEST_TOKEN=hunter2hunter2"},
	}
}

// startWorker runs a worker process for the test job types, on a stack of the
// test's own.
func startWorker(t *testing.T, st *stacktest.Stack, args ...string) *stacktest.Process {
	t.Helper()
	w := stacktest.StartProgram(t, st, workerProgram(t, st.Temporal, args...))
	w.WaitOutput("serving")
	return w
}

// startService runs a worker process that is a service of the given name.
func startService(t *testing.T, st *stacktest.Stack, name string, args ...string) *stacktest.Process {
	t.Helper()
	w := startWorker(t, st, append([]string{"--service", name}, args...)...)
	w.WaitOutput("msg=announced")
	return w
}

// shortTimeout is how long a run or a service may be silent in tests in which one
// dies: short for those who wait for that, and long for a busy machine, on which
// one that lives must not be taken for dead.
const shortTimeout = 4 * time.Second

// startServiceToKill is startService for a service that is to die.
func startServiceToKill(t *testing.T, st *stacktest.Stack, name string, args ...string) *stacktest.Process {
	t.Helper()
	return startService(t, st, name, append([]string{"--service-timeout", shortTimeout.String()}, args...)...)
}

// withShortTimeout makes a job of a test in which workers die.
func withShortTimeout(j job.Job) job.Job {
	j.Options.HeartbeatTimeout = job.Duration(shortTimeout)
	return j
}

// sharedWorker serves the stack that tests share: a worker of each test's own would
// take runs of the others, and hand them over when its test ends.
var sharedWorker struct {
	sync.Mutex
	process *stacktest.Process
}

// startShared gives the stack that tests share, with its worker.
func startShared(t *testing.T) *stacktest.Stack {
	t.Helper()
	st := stacktest.Start(t)
	sharedWorker.Lock()
	defer sharedWorker.Unlock()
	if sharedWorker.process != nil {
		sharedWorker.process.ShowOnFailure(t)
		require.False(t, sharedWorker.process.Ended(), "the shared worker has ended")
		return st
	}
	program := workerProgram(t, st.Temporal)
	program.Shared = true
	sharedWorker.process = stacktest.StartProgram(t, st, program)
	sharedWorker.process.WaitOutput("serving")
	return st
}

func newControl(t *testing.T, st *stacktest.Stack) *client.Client {
	t.Helper()
	return client.New(st.Dial(t), st.Namespace)
}

// newJob is a job of the given type; its key is unique to the test.
func newJob(t *testing.T, typeName, key string, schedule job.Trigger, spec any) job.Job {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	if extra := len(name) + 1 + len(key) - 64; extra > 0 {
		name = name[extra:]
	}
	j := job.Job{
		ID: job.ID(typeName, strings.TrimLeft(name, ".-")+"-"+key), Type: typeName, Worker: "testing", Provider: job.ProviderAPI,
		Spec: job.EncodeJSON(spec), Trigger: schedule, Options: job.DefaultOptions(schedule.Mode()),
	}
	j.Options.HeartbeatTimeout = job.Duration(30 * time.Second) // No run is lost since the machine is busy.
	require.Empty(t, j.Validate())
	return j
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

// waitOut lets a time pass, for what takes place in it.
func waitOut(t *testing.T, d time.Duration) {
	t.Helper()
	began := time.Now()
	stacktest.WaitFor(t, d.String()+" to pass", func() (bool, error) { return time.Since(began) >= d, nil })
}

func oneShot() job.Trigger { return job.Trigger{OneShot: &job.OneShot{}} }

// listed waits until a list shows the run as it should be.
func listed(t *testing.T, c *client.Client, ref client.RunRef, status client.RunStatus) client.Run {
	t.Helper()
	var found client.Run
	stacktest.WaitFor(t, "run "+ref.RunID+" in the list, "+string(status), func() (bool, error) {
		runs, err := c.Runs.List(t.Context(), client.RunFilter{Status: status})
		for _, run := range runs {
			if run.RunRef == ref {
				found = run
				return true, err
			}
		}
		return false, err
	})
	return found
}

func follow(t *testing.T, c *client.Client, ref client.RunRef) *client.RunDetail {
	t.Helper()
	detail, err := c.Runs.Follow(t.Context(), ref, func(*client.RunDetail) {})
	require.NoError(t, err)
	return detail
}

// startPaged makes a queue with small pages.
func startPaged(t *testing.T, c *client.Client, name string, items int, state contract.QueueState) {
	t.Helper()
	state.Name, state.PageSize = name, contract.PageSize{Items: items, Bytes: 48 << 10}
	_, err := c.Temporal().ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{
		ID: contract.QueueWorkflowID(name), TaskQueue: contract.QueuesTaskQueue,
		TypedSearchAttributes: contract.QueueAttributes(name),
	}, contract.JobQueueType, state)
	require.NoError(t, err)
}

func recordJobs(t *testing.T, queue, prefix string, n int, ledger workertest.Book) []job.Job {
	t.Helper()
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = withShortTimeout(newJob(t, "RecordSteps", fmt.Sprintf("%s%05d", prefix, i), queuedIn(queue),
			recordSpec{Ledger: string(ledger), Steps: 1}))
	}
	return jobs
}

// waitEmpty waits until a queue has run everything that it holds.
func waitEmpty(t *testing.T, c *client.Client, queue string) *contract.QueueState {
	t.Helper()
	var state *contract.QueueState
	stacktest.WaitWithin(t, 5*time.Minute, "queue "+queue+" to be empty", func() (bool, error) {
		var err error
		if state, err = c.Queues.State(t.Context(), queue); err != nil {
			return false, nil //nolint:nilerr // A worker that was just started may not have the workflow yet.
		}
		return state.Running == nil && state.Depth() == 0, nil
	})
	return state
}

// queuedIn is the trigger of an item of a queue.
func queuedIn(queue string) job.Trigger { return job.Trigger{Queued: &job.Queued{Queue: queue}} }

// continuousEvery is the trigger of a continuous job.
func continuousEvery(interval time.Duration) job.Trigger {
	return job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(interval)}}
}

// startRun starts a run of a job by hand.
func startRun(t *testing.T, c *client.Client, j job.Job) client.RunRef {
	t.Helper()
	ref, err := c.Runs.Start(t.Context(), j, contract.StartedByHand)
	require.NoError(t, err)
	return ref
}

// requireCompleted waits for the end of a run, and holds what it did to what is always so.
func requireCompleted(t *testing.T, c *client.Client, ref client.RunRef) *client.RunDetail {
	t.Helper()
	run := follow(t, c, ref)
	require.Equal(t, client.RunCompleted, run.Status, "%s: %s", ref.WorkflowID, run.Error)
	spans := spansOf(t, c, ref)
	attempts := attemptsIn(spans)
	require.NotEmpty(t, attempts, "%+v", spans)
	last := attempts[len(attempts)-1]
	require.Equal(t, []any{run.Attempts, run.Worker, ""}, []any{last.Attempt, last.Worker, last.Reason}, "the last attempt: %+v", spans)
	return run
}

// waitFirstStep waits until a heartbeat has brought the first step of a run.
func waitFirstStep(t *testing.T, c *client.Client, ref client.RunRef) {
	t.Helper()
	stacktest.WaitFor(t, "the first step in a heartbeat", func() (bool, error) {
		run, err := c.Runs.Get(t.Context(), ref)
		return err == nil && run.Progress != nil && run.Progress.Done == 1, err
	})
}

// enqueue puts jobs into their queues, one after the other.
func enqueue(t *testing.T, c *client.Client, jobs ...job.Job) {
	t.Helper()
	for _, j := range jobs {
		_, err := c.Queues.Enqueue(t.Context(), j, client.EnqueueOptions{})
		require.NoError(t, err)
	}
}

// stoppedState waits for the end of a continuous job that was stopped.
func stoppedState(t *testing.T, c *client.Client, jobID string) contract.ContinuousState {
	t.Helper()
	handle := c.Temporal().GetWorkflow(t.Context(), contract.JobWorkflowID(jobID), "")
	require.NoError(t, handle.Get(t.Context(), nil))
	answer, err := c.Temporal().QueryWorkflow(t.Context(), handle.GetID(), "", contract.QueryState)
	require.NoError(t, err)
	var state contract.ContinuousState
	require.NoError(t, answer.Get(&state))
	return state
}
