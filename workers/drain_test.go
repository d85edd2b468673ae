package workers_test

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestNoWorkIsTakenAfterSIGTERM has jobs come all the time while one of two
// workers is stopped: by the ledger of the handlers nothing that is asked for after it
// has said that it takes no more begins on it, and nothing is lost.
func TestNoWorkIsTakenAfterSIGTERM(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := newLedger(t)
	first := startService(t, st, "first")
	second := startService(t, st, "second")

	var runs []client.RunRef
	asked := map[string]time.Time{}
	j := newJob(t, "RecordSteps", "i", oneShot(), recordSpec{Ledger: string(ledger), Steps: 1})
	enough := make(chan struct{})
	var feeding sync.WaitGroup
	feeding.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-enough:
				return
			default:
			}
			j := j
			j.ID += fmt.Sprintf("%05d", i)
			asked[j.ID] = time.Now()
			ref, err := c.StartRun(t.Context(), j, contract.StartedByHand)
			if err != nil {
				t.Error(err)
				return
			}
			runs = append(runs, ref)
		}
	})
	stacktest.WaitFor(t, "both workers at work", func() (bool, error) {
		at := map[int]bool{}
		for _, e := range ledger.read(t) {
			at[e.PID] = true
		}
		return at[first.PID()] && at[second.PID()], nil
	})
	signaled := time.Now()
	first.Signal(syscall.SIGTERM)
	// It says so when Temporal has answered for each of its task queues. A call that
	// gets no answer is not made again, as on a machine that is too busy: then its end says so.
	stacktest.WaitFor(t, "the worker to take no more", func() (bool, error) {
		return first.Ended() || strings.Contains(first.Output(), `msg="no more work is taken"`), nil
	})
	told := time.Now()
	begun := ledger.count(t, "start")
	require.Zero(t, first.Wait())
	ledger.waitFor(t, "start", begun+10) // The other one goes on.
	close(enough)
	feeding.Wait()

	for _, ref := range runs {
		run, err := c.Follow(t.Context(), ref, func(*client.RunDetail) {})
		require.NoError(t, err)
		require.Equal(t, client.RunCompleted, run.Status, run.Error)
	}
	require.Equal(t, len(runs), ledger.count(t, "end"), "nothing is lost, and nothing done twice")
	late, last := 0, time.Duration(0)
	for _, e := range ledger.read(t) {
		if e.What != "start" || e.PID != first.PID() {
			continue
		}
		last = max(last, e.At.Sub(signaled))
		if asked[e.JobID].After(told) {
			late++
		}
	}
	require.Zero(t, late, "runs that were asked for after the worker said that it takes no more began on it")
	t.Logf("%d runs; the worker took no more %s after the signal and began its last run %s after it",
		len(runs), told.Sub(signaled).Round(time.Millisecond), last.Round(time.Millisecond))
}
