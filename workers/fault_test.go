package workers_test

import (
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestStoppedProcessComesBackToALostRun stops the process that holds the running
// item of a queue (SIGSTOP), lets others take over, and wakes it up again. What
// counts is how long it stands still in terms of the heartbeat timeout, since
// nothing but that ends a run or a lease: four seconds here, so that eight of
// standing still are as 30 with the default of 15.
func TestStoppedProcessComesBackToALostRun(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)

	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	first := startWorker(t, st)
	putType := func(name string, i int, spec any) job.Job {
		j := withShortTimeout(newJob(t, name, fmt.Sprintf("i%02d", i), queuedIn("continued"), spec))
		enqueue(t, c, j)
		return j
	}
	put := func(i int, gate string) job.Job {
		return putType("RecordSteps", i, recordSpec{Ledger: string(ledger), Steps: 3, Gate: gate})
	}
	held := put(0, gate)
	longGate := filepath.Join(t.TempDir(), "long")
	putType("Tick", 1, tickSpec{Ledger: string(ledger), Gate: longGate})
	after := 4 + random.IntN(5)
	for i := 1; i < after; i++ {
		put(i+1, "")
	}
	ledger.WaitFor(t, "step", 1)
	first.Signal(syscall.SIGSTOP)
	second := startWorker(t, st)
	ledger.WaitFor(t, "start", 2)
	workertest.Open(t, gate)
	ledger.WaitFor(t, "tick", 800) // At least four seconds.
	workertest.Open(t, longGate)
	ledger.WaitFor(t, "end", 2+random.IntN(2))
	first.Signal(syscall.SIGCONT)
	ledger.WaitFor(t, "end", 1+after)
	first.WaitOutput("RunLost") // It knows that the run is another's.

	steps := map[string][]int{}
	running, ended := "", map[string]bool{}
	for _, e := range ledger.Read(t) {
		require.False(t, ended[e.JobID], "%s of %s after its end, by process %d", e.What, e.JobID, e.PID)
		require.True(t, running == "" || running == e.JobID, "%s and %s at once", running, e.JobID)
		running = e.JobID
		switch e.What {
		case "step":
			steps[e.JobID] = append(steps[e.JobID], e.Step)
		case "end":
			ended[e.JobID], running = true, ""
		}
	}
	require.Len(t, ended, 1+after)
	require.Equal(t, map[int]bool{first.PID(): true, second.PID(): true}, doneBy(t, ledger, held.ID))
	workertest.WaitQueue(t, c, "continued", "its end", func(s *contract.QueueState) bool { return s.Completed == int64(1+after) && s.Failed == 0 })

	// The process that came back works like any other.
	second.Signal(syscall.SIGTERM)
	require.Zero(t, second.Wait())
	last := put(after+1, "")
	ledger.WaitFor(t, "end", 2+after)
	require.Equal(t, map[int]bool{first.PID(): true}, doneBy(t, ledger, last.ID))
}

// TestDrainWithTenRunningJobs stops a worker (SIGTERM) that runs five short jobs,
// which end by themselves, and five long ones, which save their positions.
func TestDrainWithTenRunningJobs(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	shortGate, longGate := filepath.Join(t.TempDir(), "short"), filepath.Join(t.TempDir(), "long")
	first := startService(t, st, "first", "--drain-timeout", "1m")
	runs := map[string]client.RunRef{}
	start := func(key string, spec recordSpec) job.Job {
		spec.Ledger = string(ledger)
		j := newJob(t, "RecordSteps", key, oneShot(), spec)
		j.Options.MaxRetryCount = 0
		ref := startRun(t, c, j)
		runs[j.ID] = ref
		return j
	}
	short, long := map[string]bool{}, map[string]bool{}
	for i := range 5 {
		short[start(fmt.Sprintf("short%d", i), recordSpec{Steps: 2, Gate: shortGate, IgnoreStop: true}).ID] = true
		long[start(fmt.Sprintf("long%d", i), recordSpec{Steps: 3, Gate: longGate}).ID] = true
	}
	ledger.WaitFor(t, "step", 10)

	first.Signal(syscall.SIGTERM)
	first.WaitOutput("msg=draining")
	stacktest.WaitFor(t, "the service to be listed as draining", func() (bool, error) {
		services, err := liveServices(t, c)
		return err == nil && len(services) == 1 && services[0].State == client.ServiceDraining, err
	})
	late := start("late", recordSpec{Steps: 1})
	workertest.Open(t, shortGate)
	require.Zero(t, first.Wait(), "a drained worker exits with 0")
	require.NotContains(t, first.Output(), "level=ERROR", "a hand-over is no error")
	require.Equal(t, 5, ledger.Count(t, "stop"), "the long ones have saved their positions")
	require.Equal(t, 5, ledger.Count(t, "end"), "the short ones have ended")
	require.Empty(t, doneBy(t, ledger, late.ID), "a draining worker takes no work")

	workertest.Open(t, longGate)
	second := startWorker(t, st)
	for id, ref := range runs {
		run := requireCompleted(t, c, ref)
		require.Equal(t, long[id], run.Output.Handovers == 1, id)
	}
	steps := stepsByJob(t, ledger)
	for id := range runs {
		switch {
		case short[id]:
			require.Equal(t, 2, steps[id], id)
			require.Equal(t, map[int]bool{first.PID(): true}, doneBy(t, ledger, id))
		case long[id]:
			require.Equal(t, 3, steps[id], "%s: nothing is lost, and nothing done twice", id)
		default:
			require.Equal(t, map[int]bool{second.PID(): true}, doneBy(t, ledger, id))
		}
	}
}

// TestDrainCutsOffInTime drains a worker faster than its handler's stop grace
// period would allow: the handler is cut off, and the run handed over.
func TestDrainCutsOffInTime(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	first := startWorker(t, st, "--drain-timeout", "5s")
	j := newJob(t, "RecordSteps", "ignores", oneShot(), recordSpec{Ledger: string(ledger), Steps: 3, Gate: gate, IgnoreStop: true})
	j.Options.MaxRetryCount = 0
	j.Options.StopGracePeriod = job.Duration(time.Hour)
	ref := startRun(t, c, j)
	ledger.WaitFor(t, "step", 1)
	first.Signal(syscall.SIGTERM)
	require.Zero(t, first.Wait())
	workertest.Open(t, gate)
	startWorker(t, st)
	run := requireCompleted(t, c, ref)
	require.Equal(t, 1, run.Output.Handovers)
	require.Equal(t, 3, ledger.Count(t, "step"))
}

// TestWorkerEndsWhileItDials stops a worker that waits for an answer of a server
// that never comes.
func TestWorkerEndsWhileItDials(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	accepted := make(chan net.Conn, 16)
	go func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	w := stacktest.StartProgram(t, nil, workerProgram(t, silent.Addr().String()))
	conn := <-accepted
	w.Signal(syscall.SIGTERM)
	require.Zero(t, w.Wait())
	require.NotContains(t, w.Output(), "cannot be reached", "it did not wait for its own time limit")
	require.NoError(t, conn.Close())
}
