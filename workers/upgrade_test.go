package workers_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/starter/replay"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// otherCodeVariable has the worker of the test binary be a build whose RunJob does not fit the
// histories of others.
const otherCodeVariable = "DENDRA_TEST_OTHER_CODE"

// otherCode registers workflows of which RunJob begins with a timer: no history of another build
// has one there.
func otherCode(r workflows.Registry) { workflows.Register(replaced{r}) }

type replaced struct{ workflows.Registry }

// RegisterWorkflowWithOptions implements workflows.Registry.
func (r replaced) RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions) {
	if options.Name == contract.RunJobType {
		w = func(ctx workflow.Context, in contract.RunInput) (*contract.RunOutput, error) {
			if err := workflow.Sleep(ctx, time.Millisecond); err != nil {
				return nil, err
			}
			return workflows.RunJob(ctx, in)
		}
	}
	r.Registry.RegisterWorkflowWithOptions(w, options)
}

// load asks for work all the time: one-shots, and items of a queue. What was acknowledged is
// noted.
type load struct {
	*testing.T
	c      *client.Client
	ledger workertest.Book
	spec   recordSpec

	end     chan struct{}
	once    sync.Once
	wait    sync.WaitGroup
	oneShot []string
	items   []acknowledged
}

func startLoad(t *testing.T, c *client.Client, ledger workertest.Book) *load {
	t.Helper()
	l := &load{T: t, c: c, ledger: ledger, spec: recordSpec{Ledger: string(ledger), Steps: 2}, end: make(chan struct{})}
	l.wait.Go(l.startOneShots)
	l.wait.Go(l.enqueueItems)
	t.Cleanup(l.stop)
	return l
}

// stop ends the load.
func (l *load) stop() {
	l.once.Do(func() { close(l.end) })
	l.wait.Wait()
}

func (l *load) ended() bool {
	select {
	case <-l.end:
		return true
	case <-time.After(time.Second / time.Duration(stacktest.Size(4, 20))): // Of each kind, so that the builds are not busy with them alone.
		return false
	}
}

func (l *load) startOneShots() {
	for n := 0; !l.ended(); n++ {
		j := newJob(l.T, "RecordSteps", fmt.Sprintf("one%05d", n), oneShot(), l.spec)
		if _, err := l.c.Runs.Start(l.Context(), j, contract.StartedByHand); err != nil {
			l.Error(err)
			return
		}
		l.oneShot = append(l.oneShot, j.ID)
	}
}

func (l *load) enqueueItems() {
	for n := 0; !l.ended(); n++ {
		j := newJob(l.T, "RecordSteps", fmt.Sprintf("item%05d", n), queuedIn("upgrade"), l.spec)
		receipt, err := l.c.Queues.Enqueue(l.Context(), j, client.EnqueueOptions{})
		if err != nil {
			l.Error(err)
			return
		}
		l.items = append(l.items, acknowledged{receipt.Sequence, j.ID})
	}
}

// check ends the load, and holds the ledger to what was acknowledged: every job ran to its end in
// one run, each item in its turn and alone.
func (l *load) check() {
	l.Helper()
	l.stop()
	want := len(l.oneShot) + len(l.items)
	stacktest.WaitFor(l.T, fmt.Sprintf("the ends of %d jobs", want), func() (bool, error) {
		ended := map[string]bool{}
		for _, e := range l.ledger.Read(l.T) {
			if e.What == "end" {
				ended[e.JobID] = true
			}
		}
		for _, id := range l.oneShot {
			if !ended[id] {
				return false, fmt.Errorf("%s has not ended", id)
			}
		}
		for _, item := range l.items {
			if !ended[item.jobID] {
				return false, fmt.Errorf("%s has not ended", item.jobID)
			}
		}
		return true, nil
	})
	runs, ends := map[string]string{}, map[string]int{}
	items := map[string]bool{}
	for _, item := range l.items {
		items[item.jobID] = true
	}
	var order []string
	for _, e := range l.ledger.Read(l.T) {
		switch e.What {
		case "start":
			if run, seen := runs[e.JobID]; seen {
				require.Equal(l.T, run, e.RunID, "job %s ran twice", e.JobID)
				continue
			}
			runs[e.JobID] = e.RunID
			if items[e.JobID] {
				if len(order) > 0 {
					require.Equal(l.T, 1, ends[order[len(order)-1]], "item %s began before %s had ended", e.JobID, order[len(order)-1])
				}
				order = append(order, e.JobID)
			}
		case "end":
			ends[e.JobID]++
			require.Equal(l.T, 1, ends[e.JobID], "job %s ended twice", e.JobID)
		}
	}
	for n, item := range l.items {
		require.Equal(l.T, item.jobID, order[n], "item %d had another turn", item.sequence)
	}
	l.Logf("%d one-shots and %d items, each once", len(l.oneShot), len(l.items))
}

// TestUpgradeUnderLoad upgrades while work comes all the time: by a ramp, a promotion and the end
// of the old build. Then comes a build whose code does not fit: a replay says so before it takes
// runs, and what is moved there all the same fails until it is moved back.
func TestUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	one := startBuild(t, st, "one")
	l := startLoad(t, c, ledger)
	gate := workertest.NewGate(t)
	long := newJob(t, "RecordSteps", "long", oneShot(), recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate})

	startBuild(t, st, "two")
	stacktest.WaitFor(t, "histories of runs and of a queue that fit", func() (bool, error) {
		report, err := replay.Run(t.Context(), replay.Options{Temporal: st.Settings()})
		require.NoError(t, err)
		require.Empty(t, report.Different)
		return report.Replayed[contract.RunJobType] > 0 && report.Replayed[contract.JobQueueType] > 0, nil
	})
	_, err := c.Deployments.Ramp(t.Context(), deployment, "two", 50)
	require.NoError(t, err)
	awaitBuild(t, c, "two", "takes a part", func(b client.Build) bool { return b.Percentage == 50 })
	_, err = c.Deployments.Promote(t.Context(), deployment, "two", false)
	require.NoError(t, err)
	awaitBuild(t, c, "one", "holds nothing", func(b client.Build) bool { return b.Runs+b.LongRunning == 0 })
	one.Signal(syscall.SIGTERM)
	require.Zero(t, one.Wait())

	running := startRun(t, c, long)
	waitFirstStep(t, c, running)
	report, err := replay.Run(t.Context(), replay.Options{Temporal: st.Settings(), Register: otherCode})
	require.NoError(t, err)
	require.NotEmpty(t, report.Different, "the code of another build fits")
	open := report.Different[0]
	for _, d := range report.Different {
		require.Equal(t, contract.RunJobType, d.WorkflowType)
		require.Contains(t, d.Where, "TMPRL1100") // Temporal's number of code that does not fit.
		if d.WorkflowID == running.WorkflowID {
			open = d
		}
	}
	require.Equal(t, replay.Difference{
		WorkflowType: contract.RunJobType, WorkflowID: running.WorkflowID, RunID: running.RunID, Open: true, Where: open.Where,
	}, open)

	program := workerProgram(t, st.Temporal, "--namespace", st.Namespace, "--service", "build-three", "--deployment-name", deployment, "--build-id", "three")
	program.Env = append(program.Env, otherCodeVariable+"=1")
	stacktest.StartProgram(t, st, program).WaitOutput("msg=versioned")
	_, err = c.Deployments.Promote(t.Context(), deployment, "three", false)
	require.NoError(t, err)
	_, err = c.Deployments.Move(t.Context(), deployment, "two", "three")
	require.NoError(t, err)
	workertest.Open(t, gate) // The activity ends, and the workflow task fails on build three.
	awaitFailedTask(t, c, running)
	_, err = c.Deployments.Rollback(t.Context(), deployment)
	require.NoError(t, err)
	_, err = c.Deployments.Move(t.Context(), deployment, "three", "two")
	require.NoError(t, err)
	requireCompleted(t, c, running)
	l.check()
}

// awaitFailedTask waits until a workflow task of a run has failed, and holds the rest of the run to
// be as it was.
func awaitFailedTask(t *testing.T, c *client.Client, ref client.RunRef) {
	t.Helper()
	stacktest.WaitFor(t, "a workflow task that fails on build three", func() (bool, error) {
		d, err := c.Temporal().DescribeWorkflowExecution(t.Context(), ref.WorkflowID, ref.RunID)
		return d.GetPendingWorkflowTask().GetAttempt() > 1, err
	})
}
