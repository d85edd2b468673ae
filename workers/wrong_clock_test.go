package workers_test

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
	"github.com/dendrascience/dendra-jobs/workers"
)

// wrongClock makes the clock of a worker's machine differ from the server's, as
// seen from the worker: it puts off the times in the answers that bring work.
// Those in histories stay, since workflows compare them with times of the server
// that are within payloads.
type wrongClock struct{ behind atomic.Int64 }

func (w *wrongClock) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, reply, conn, options...)
	by := time.Duration(w.behind.Load())
	switch reply := reply.(type) {
	case *workflowservice.PollActivityTaskQueueResponse:
		putOff(reply.ProtoReflect(), by)
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		for _, task := range reply.GetActivityTasks() {
			putOff(task.ProtoReflect(), by)
		}
	case *workflowservice.PollWorkflowTaskQueueResponse:
		for _, stamp := range []*timestamppb.Timestamp{reply.GetScheduledTime(), reply.GetStartedTime()} {
			if stamp != nil {
				putOff(stamp.ProtoReflect(), by)
			}
		}
	}
	return err
}

// putOff adds to every time stamp within a message.
func putOff(message protoreflect.Message, by time.Duration) {
	if stamp, ok := message.Interface().(*timestamppb.Timestamp); ok {
		later := timestamppb.New(stamp.AsTime().Add(by))
		stamp.Seconds, stamp.Nanos = later.GetSeconds(), later.GetNanos()
		return
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			if field.MapValue().Message() != nil {
				value.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
					putOff(value.Message(), by)
					return true
				})
			}
		case field.Message() == nil:
		case field.IsList():
			for i := range value.List().Len() {
				putOff(value.List().Get(i).Message(), by)
			}
		default:
			putOff(value.Message(), by)
		}
		return true
	})
}

// TestWrongClockOfAWorkerHarmsNoRun has a worker whose clock is an hour off, and
// then jumps by two hours in the middle of runs of every mode.
func TestWrongClockOfAWorkerHarmsNoRun(t *testing.T) {
	t.Parallel()
	for name, behind := range map[string]time.Duration{"behind-then-ahead": time.Hour, "ahead-then-behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := stacktest.StartNamespace(t)
			clock, log := &wrongClock{}, &stacktest.Output{}
			clock.behind.Store(int64(behind))
			workertest.Run(t, st, workers.Config{
				Worker: "testing", Types: testTypes(), Logger: slog.New(slog.NewTextHandler(log, nil)),
				Temporal: temporalclient.Settings{Intercept: clock.intercept},
			})
			requireNormal(t, client.New(st.Dial(t), st.Namespace), func() { clock.behind.Store(int64(-behind)) })
			require.NotContains(t, log.String(), "RunLost")
		})
	}
}

// requireNormal runs jobs of every mode, lets something happen in the middle, and
// looks for starts that were left out or made twice.
func requireNormal(t *testing.T, c *client.Client, happens func()) {
	t.Helper()
	ledger, items := workertest.NewBook(t), workertest.NewBook(t)
	gate := workertest.NewGate(t)
	const every = 2 * time.Second
	// A machine that is slow lets starts wait, not drop out.
	interval := newJob(t, "RecordSteps", "interval",
		job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(every), Misfire: job.MisfireAll}},
		recordSpec{Ledger: string(ledger), Steps: 2})
	loop := newJob(t, "RecordSteps", "loop", continuousEvery(job.MinInterval.Std()),
		recordSpec{Ledger: string(ledger), Steps: 2})
	once := newJob(t, "Tick", "once", oneShot(), tickSpec{Ledger: string(ledger), Gate: gate})
	again := newJob(t, "Tick", "again", oneShot(), tickSpec{Ledger: string(ledger), Gate: gate})
	syncer := schedules.New(c)
	plan, err := syncer.Plan(t.Context(), []job.Job{interval}, schedules.PlanOptions{Provider: job.ProviderAPI})
	require.NoError(t, err)
	require.NoError(t, syncer.Apply(t.Context(), plan, func(schedules.Report) {}))
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), loop))
	ref := startRun(t, c, once)
	starts := func(j job.Job) (runs []string) {
		for _, e := range ledger.Read(t) {
			if e.What == "start" && e.JobID == j.ID {
				runs = append(runs, e.RunID)
			}
		}
		return runs
	}
	ranOften := func(n int) func() (bool, error) {
		return func() (bool, error) {
			return len(starts(interval)) >= n && len(starts(loop)) >= 10*n && len(starts(once)) > 0, nil
		}
	}
	stacktest.WaitFor(t, "two starts", ranOften(2))
	promised := enqueueAll(t, c, "clocks", 10, 2, items)
	happens()
	second := startRun(t, c, again)
	stacktest.WaitFor(t, "four starts", ranOften(4))
	// Long enough for heartbeats, which are sent every two seconds.
	ledger.WaitFor(t, "tick", ledger.Count(t, "tick")+600)
	workertest.Open(t, gate)
	for _, ref := range []client.RunRef{ref, second} {
		run := requireCompleted(t, c, ref)
		require.Equal(t, 1, run.Output.Attempts)
	}
	require.Len(t, starts(once), 1)
	require.Len(t, starts(again), 1)

	require.NoError(t, c.Jobs.Stop(t.Context(), loop.ID, "by test"))
	var out contract.ContinuousOutput
	require.NoError(t, c.Temporal().GetWorkflow(t.Context(), contract.JobWorkflowID(loop.ID), "").Get(t.Context(), &out))
	require.Zero(t, out.Failed)
	iterations := starts(loop)
	require.EqualValues(t, len(iterations), out.Iterations)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(iterations))), len(iterations), "none twice")

	state := waitEmpty(t, c, "clocks")
	require.EqualValues(t, len(promised), state.Completed)
	requireSerial(t, promised, items)

	var runs []client.Run
	stacktest.WaitFor(t, "the first four runs in the list", func() (bool, error) {
		var err error
		runs, err = c.Runs.List(t.Context(), client.RunFilter{JobID: interval.ID})
		slices.SortFunc(runs, func(a, b client.Run) int { return a.Scheduled.Compare(b.Scheduled) })
		runs = runs[:min(4, len(runs))]
		// The list may have a run before those that came before it.
		return len(runs) == 4 && runs[0].RunID == starts(interval)[0] && runs[3].RunID == starts(interval)[3] &&
			!slices.ContainsFunc(runs, func(r client.Run) bool { return r.Status == client.RunRunning }), err
	})
	began := starts(interval)
	for i, run := range runs {
		require.Equal(t, client.RunCompleted, run.Status, run.Error)
		require.Equal(t, 1, run.Attempts)
		require.Equal(t, run.RunID, began[i], "started once, in its turn")
		if i > 0 {
			require.Equal(t, every, run.Scheduled.Sub(runs[i-1].Scheduled), "none left out")
		}
	}
}
