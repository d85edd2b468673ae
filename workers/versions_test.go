package workers_test

import (
	"context"
	"fmt"
	"path"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

const deployment = "dendra-test"

// startBuild runs a worker process of a build.
func startBuild(t *testing.T, st *stacktest.Stack, build string, args ...string) *stacktest.Process {
	t.Helper()
	w := startService(t, st, "build-"+build, append([]string{"--deployment-name", deployment, "--build-id", build}, args...)...)
	w.WaitOutput("msg=versioned")
	return w
}

// awaitBuild waits until a build is as it should be.
func awaitBuild(t *testing.T, c *client.Client, build, what string, reached func(client.Build) bool) {
	t.Helper()
	stacktest.WaitFor(t, "build "+build+": "+what, func() (bool, error) {
		d, err := c.Deployments.Get(t.Context(), deployment)
		if err != nil {
			return false, err
		}
		if b := d.Find(build); b != nil && reached(*b) {
			return true, nil
		}
		return false, fmt.Errorf("%+v", d.Builds)
	})
}

// ranOn are the processes that have begun runs or iterations of a job, in turn.
func ranOn(t *testing.T, ledger workertest.Book, j job.Job) []int {
	t.Helper()
	var processes []int
	for _, e := range ledger.Read(t) {
		if e.What == "start" && e.JobID == j.ID {
			processes = append(processes, e.PID)
		}
	}
	return processes
}

// withoutAnswer is a client that does not hear the answer of a method.
func withoutAnswer(t *testing.T, st *stacktest.Stack, of string) *client.Client {
	t.Helper()
	settings := st.Settings()
	settings.Intercept = func(
		ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		err := invoke(ctx, method, in, out, conn, options...)
		if err == nil && path.Base(method) == of {
			err = status.Error(codes.DeadlineExceeded, "for the test")
		}
		return err
	}
	temporal, err := temporalclient.Dial(t.Context(), settings)
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	return client.New(temporal, st.Namespace)
}

// TestBuilds has two builds serve side by side. By the ledger of the handlers, a run ends on the
// build that began it, new runs and all that lasts go to the one that is promoted, a paused loop
// and an idle queue too, and the way back is the same. The old build can be stopped when it
// holds nothing.
func TestBuilds(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	one := startBuild(t, st, "one")

	gate, itemGate := workertest.NewGate(t), workertest.NewGate(t)
	gated := recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate}
	long := newJob(t, "RecordSteps", "long", oneShot(), gated)
	running := startRun(t, c, long)
	loop := newJob(t, "RecordSteps", "loop", continuousEvery(time.Second), gated)
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), loop))
	paused := newJob(t, "RecordSteps", "paused", continuousEvery(time.Second), recordSpec{Ledger: string(ledger), Steps: 1})
	paused.Options.Paused = true
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), paused))
	item := newJob(t, "RecordSteps", "item-1", queuedIn("builds"), recordSpec{Ledger: string(ledger), Steps: 2, Gate: itemGate})
	after := newJob(t, "RecordSteps", "item-2", queuedIn("builds"), recordSpec{Ledger: string(ledger), Steps: 1})
	for _, j := range []job.Job{item, after} {
		_, err := c.Queues.Enqueue(t.Context(), j, client.EnqueueOptions{})
		require.NoError(t, err)
	}
	record := contract.AppliedWorkflowID(job.ProviderTOML)
	_, err := c.Temporal().SignalWithStartWorkflow(t.Context(), record, contract.SignalApplied,
		contract.AppliedRecord{}, sdk.StartWorkflowOptions{TaskQueue: contract.QueuesTaskQueue}, contract.AppliedJobsType, contract.AppliedState{})
	require.NoError(t, err)
	ledger.WaitFor(t, "step", 3)
	awaitBuild(t, c, "one", "holds what has begun", func(b client.Build) bool {
		return b.Status == enumspb.WORKER_DEPLOYMENT_VERSION_STATUS_CURRENT && b.Workers == 1 && b.Runs == 2 && b.LongRunning == 4
	})

	two := startBuild(t, st, "two")
	awaitBuild(t, c, "two", "takes nothing", func(b client.Build) bool { return b.Workers == 1 && b.Runs+b.LongRunning == 0 })
	before := newJob(t, "RecordSteps", "before", oneShot(), recordSpec{Ledger: string(ledger), Steps: 1})
	requireCompleted(t, c, startRun(t, c, before))
	require.Equal(t, []int{one.PID()}, ranOn(t, ledger, before), "a build that is not promoted took a run")

	_, err = c.Deployments.Promote(t.Context(), deployment, "two", false)
	require.NoError(t, err)
	awaitBuild(t, c, "two", "holds all that lasts", func(b client.Build) bool { return b.LongRunning == 4 })
	awaitBuild(t, c, "one", "holds the runs that it began", func(b client.Build) bool {
		return b.Runs == 2 && b.LongRunning == 0 && b.Holds(time.Now()) == "it holds 2 runs"
	})
	stacktest.WaitFor(t, "the loop on build two", func() (bool, error) {
		on := ranOn(t, ledger, loop)
		return len(on) == 2 && on[0] == one.PID() && on[1] == two.PID(), nil
	})
	next := newJob(t, "RecordSteps", "next", oneShot(), recordSpec{Ledger: string(ledger), Steps: 1})
	requireCompleted(t, c, startRun(t, c, next))
	require.Equal(t, []int{two.PID()}, ranOn(t, ledger, next))
	workertest.Open(t, itemGate)
	stacktest.WaitFor(t, "the second item on build two", func() (bool, error) {
		on := ranOn(t, ledger, after)
		return len(on) == 1 && on[0] == two.PID(), nil
	})
	workertest.Open(t, gate)
	requireCompleted(t, c, running)
	require.Equal(t, []int{one.PID()}, ranOn(t, ledger, long), "a run did not end on the build that began it")
	require.Equal(t, []int{one.PID()}, ranOn(t, ledger, item), "an item did not end on the build that began it")
	awaitBuild(t, c, "one", "holds nothing", func(b client.Build) bool { return b.Runs+b.LongRunning == 0 })

	// An answer that is lost is no reason to ask again, which would undo it.
	_, err = withoutAnswer(t, st, "SetWorkerDeploymentCurrentVersion").Deployments.Rollback(t.Context(), deployment)
	require.NoError(t, err)
	awaitBuild(t, c, "one", "has all that lasts again", func(b client.Build) bool { return b.LongRunning == 4 })
	back := newJob(t, "RecordSteps", "back", oneShot(), recordSpec{Ledger: string(ledger), Steps: 1})
	requireCompleted(t, c, startRun(t, c, back))
	require.Equal(t, []int{one.PID()}, ranOn(t, ledger, back))
}

// TestBuildIsGone stops the only worker of a build that holds a run, a loop and a queue. They wait
// for it; moved to another build, they go on there, each from where it was.
func TestBuildIsGone(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	one := startBuild(t, st, "one")
	spec := recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate}
	jobs := []job.Job{
		newJob(t, "RecordSteps", "run", oneShot(), spec),
		newJob(t, "RecordSteps", "loop", continuousEvery(time.Hour), spec),
		newJob(t, "RecordSteps", "item", queuedIn("gone"), spec),
	}
	run := startRun(t, c, jobs[0])
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), jobs[1]))
	_, err := c.Queues.Enqueue(t.Context(), jobs[2], client.EnqueueOptions{})
	require.NoError(t, err)
	ledger.WaitFor(t, "step", 3)
	two := startBuild(t, st, "two")
	one.Signal(syscall.SIGTERM)
	require.Zero(t, one.Wait())
	_, err = c.Deployments.Promote(t.Context(), deployment, "two", false)
	require.NoError(t, err)
	awaitBuild(t, c, "one", "holds all", func(b client.Build) bool { return b.Runs == 2 && b.LongRunning == 2 && b.Workers == 0 })

	stacktest.WaitFor(t, "why the run waits", func() (bool, error) {
		rows, _, err := c.Jobs.List(t.Context(), client.JobFilter{})
		for _, row := range rows {
			if row.ID == jobs[0].ID {
				return row.WaitReason == "no live worker of build "+deployment+":one serves RecordSteps", err
			}
		}
		return false, err
	})
	_, err = c.Deployments.Move(t.Context(), deployment, "one", "three")
	require.ErrorIs(t, err, client.ErrNotFound)
	moved, err := c.Deployments.Move(t.Context(), deployment, "one", "two")
	require.NoError(t, err)
	require.Equal(t, 4, moved)
	workertest.Open(t, gate)
	requireCompleted(t, c, run)
	for _, j := range jobs {
		stacktest.WaitFor(t, "the end of "+j.ID+" on build two", func() (bool, error) {
			for _, e := range ledger.Read(t) {
				if e.JobID == j.ID && e.What == "end" {
					return e.PID == two.PID(), nil
				}
			}
			return false, nil
		})
	}
	awaitBuild(t, c, "one", "holds nothing", func(b client.Build) bool { return b.Runs+b.LongRunning == 0 })
}

// TestBoundJobAcrossBuilds binds a job to a process of the build that is not the current one.
func TestBoundJobAcrossBuilds(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	startBuild(t, st, "one")
	two := startBuild(t, st, "two")
	bound := newJob(t, "RecordSteps", "bound", oneShot(), recordSpec{Ledger: string(ledger), Steps: 1})
	bound.Options.Bind = map[string]string{job.TagName: "build-two"}
	requireCompleted(t, c, startRun(t, c, bound))
	require.Equal(t, []int{two.PID()}, ranOn(t, ledger, bound))
}
