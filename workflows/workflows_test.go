package workflows_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

const testType = "CountThings"

type handler = func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error)

// newEnvironment is a time-skipping environment with one job type.
func newEnvironment(t *testing.T, handle handler) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	return loggingEnvironment(t, io.Discard, handle)
}

// loggingEnvironment is newEnvironment with a log.
func loggingEnvironment(t *testing.T, w io.Writer, handle handler) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(w, nil))))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute)
	// With the race detector, on a busy machine, a step takes longer than the default second.
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: 30 * time.Second})
	workflows.Register(env)
	env.RegisterActivityWithOptions(handle, activity.RegisterOptions{Name: testType})
	return env
}

func newJob(key string, schedule job.Trigger) job.Job {
	return job.Job{
		ID: job.ID(testType, key), Type: testType, Worker: "counting", Provider: job.ProviderAPI,
		Spec: json.RawMessage(`{}`), Trigger: schedule, Options: job.DefaultOptions(schedule.Mode()),
	}
}

// answer collects what a message came back with.
type answer struct {
	t        *testing.T
	accepted bool
	rejected error
	value    any
	err      error
}

func (a *answer) Accept() { a.accepted = true }

func (a *answer) Reject(err error) { a.rejected = err }

func (a *answer) Complete(value any, err error) { a.value, a.err = value, err }

// receipt is that of the only item of a request.
func (a *answer) receipt() contract.EnqueueReceipt {
	a.t.Helper()
	a.requireTaken()
	receipts := a.value.(contract.EnqueueReceipts).Receipts
	require.Len(a.t, receipts, 1)
	return receipts[0]
}

// put is a request with a job.
func put(j job.Job) contract.EnqueueRequest {
	return contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: j}}}
}

func (a *answer) requireTaken() {
	a.t.Helper()
	require.NoError(a.t, a.rejected)
	require.NoError(a.t, a.err)
	require.True(a.t, a.accepted)
}

// soon is when a message comes in the middle of an activity, while which the
// environment's clock runs as fast as the real one.
const soon = 50 * time.Millisecond

// untilCanceled is a handler at work until it hears that it should stop.
func untilCanceled(ctx context.Context) {
	for ctx.Err() == nil {
		activity.RecordHeartbeat(ctx)
		runtime.Gosched()
	}
}
