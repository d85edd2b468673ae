package workers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/workers"
)

// drainDefault is the drain timeout of a worker that has no other.
const drainDefault = 30 * time.Second

// shutdowns watches a worker report to Temporal that it asks for no more work. The SDK
// does so for each task queue when its worker stops.
type shutdowns struct{ reported chan string }

func (s shutdowns) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, reply, conn, options...)
	if shutdown, ok := request.(*workflowservice.ShutdownWorkerRequest); ok {
		if end, bound := ctx.Deadline(); !bound || time.Until(end) > drainDefault/8 {
			return errors.New("the call may take longer than a part of the drain timeout")
		}
		s.reported <- shutdown.GetTaskQueue()
	}
	return err
}

// TestNoWorkIsTakenAfterAStop has jobs come all the time while one of two workers is
// stopped. By the ledger of the handlers, a run that is asked for after the worker has
// reported its shutdown does not begin on it, and nothing is lost.
func TestNoWorkIsTakenAfterAStop(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	stopping := shutdowns{make(chan string, 10)}
	stop := workertest.Run(t, st, workers.Config{
		Worker: "testing", Types: testTypes(), Service: "first",
		Temporal: temporalclient.Settings{Intercept: stopping.intercept},
	})
	first := os.Getpid()
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
			ref, err := c.Runs.Start(t.Context(), j, contract.StartedByHand)
			if err != nil {
				t.Error(err)
				return
			}
			runs = append(runs, ref)
		}
	})
	stacktest.WaitFor(t, "both workers at work", func() (bool, error) {
		at := map[int]bool{}
		for _, e := range ledger.Read(t) {
			at[e.PID] = true
		}
		return at[first] && at[second.PID()], nil
	})
	asksStop := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop()
	}()
	for name := ""; name != contract.TaskQueue("testing"); name = <-stopping.reported {
	}
	reported := time.Now()
	begun := ledger.Count(t, "start")
	<-ended
	ledger.WaitFor(t, "start", begun+10) // The other one goes on.
	close(enough)
	feeding.Wait()

	for _, ref := range runs {
		requireCompleted(t, c, ref)
	}
	require.Equal(t, len(runs), ledger.Count(t, "end"), "nothing is lost, and nothing done twice")
	late, last := 0, time.Duration(0)
	for _, e := range ledger.Read(t) {
		if e.What != "start" || e.PID != first {
			continue
		}
		last = max(last, e.At.Sub(asksStop))
		if asked[e.JobID].After(reported) {
			late++
		}
	}
	require.Zero(t, late, "runs that were asked for after the worker reported its shutdown began on it")
	t.Logf("%d runs; the worker took no more %s after the stop and began its last run %s after it",
		len(runs), reported.Sub(asksStop).Round(time.Millisecond), last.Round(time.Millisecond))
}
