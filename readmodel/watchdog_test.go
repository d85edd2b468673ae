package readmodel_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
	"github.com/dendrascience/dendra-jobs/server/watchdog"
)

// told keeps the phases that a watchdog told, by alert.
type told struct {
	mu     sync.Mutex
	phases map[string][]alerts.Phase
}

// Send implements watchdog.Receiver.
func (k *told) Send(_ context.Context, m watchdog.Message) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.phases[m.Alert] = append(k.phases[m.Alert], m.Phase)
	return nil
}

func (k *told) of(name string) []alerts.Phase {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]alerts.Phase(nil), k.phases[name]...)
}

var (
	fired   = []alerts.Phase{alerts.Firing}
	cleared = []alerts.Phase{alerts.Firing, alerts.Cleared}
)

// requireTold waits until an alert was told so often, and requires the phases.
func (k *told) requireTold(t *testing.T, want []alerts.Phase, names ...string) {
	t.Helper()
	for _, name := range names {
		// Drift is looked for each minute.
		stacktest.WaitWithin(t, 3*time.Minute, name+" to be told", func() (bool, error) { return len(k.of(name)) >= len(want), nil })
		require.Equal(t, want, k.of(name), name)
	}
}

// watch runs a watchdog for the world's reader, which holds and clears quickly.
func (w *world) watch(t *testing.T) *told {
	t.Helper()
	k := &told{phases: map[string][]alerts.Phase{}}
	timings := watchdog.DefaultTimings()
	for rule := range timings {
		timings[rule] = watchdog.Timing{Hold: 300 * time.Millisecond, Clear: 500 * time.Millisecond}
	}
	dog := watchdog.New(watchdog.Config{
		Alerts: func() watchdog.Now {
			now := watchdog.Now{Known: true, Complete: w.reader.Complete(), DriftKnown: w.reader.DriftKnown()}
			if snapshot := w.reader.Snapshot(); snapshot != nil {
				now.Alerts = snapshot.Overview.GetAlerts()
			}
			return now
		},
		Every: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler), Timings: timings,
		Routes: []watchdog.Route{{Name: "test", Receiver: k}},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- dog.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
	return k
}

// apply applies a set of jobs.
func (w *world) apply(t *testing.T, r *jobsv1.ApplyJobSetRequest) {
	t.Helper()
	stream, err := w.api.JobSets.ApplyJobSet(t.Context(), r)
	require.NoError(t, err)
	for err == nil {
		var answer *jobsv1.ApplyJobSetResponse
		if answer, err = stream.Receive(); err == nil {
			require.Empty(t, answer.GetChange().GetErrorMessage())
		}
	}
	require.True(t, errors.Is(err, io.EOF), "%v", err)
	require.NoError(t, stream.Close())
}

// TestWatchdogTellsOfJobs has a job fail and become late, and a schedule edited by hand.
func TestWatchdogTellsOfJobs(t *testing.T) {
	t.Parallel()
	const provider, late, edited = "drift-test", "take_steps.late", "take_steps.edited"
	w := startWorld(t, readmodel.Config{Always: true, Drift: []job.Provider{provider}, DriftEvery: time.Second})
	k, ctx := w.watch(t), t.Context()
	set := &jobsv1.JobSet{Provider: provider, Jobs: []*jobsv1.Job{recurring(newJob(t, edited, nil), 24*time.Hour)}}
	apply := func() { w.apply(t, &jobsv1.ApplyJobSetRequest{JobSet: set}) }
	apply()
	require.NoError(t, w.client.Temporal().ScheduleClient().GetHandle(ctx, contract.ScheduleID(edited)).Update(ctx, sdk.ScheduleUpdateOptions{
		DoUpdate: func(in sdk.ScheduleUpdateInput) (*sdk.ScheduleUpdate, error) {
			in.Description.Schedule.Spec.Intervals[0].Every = 12 * time.Hour
			in.Description.Schedule.Spec.Intervals[0].Offset = 0
			return &sdk.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
		},
	}))

	w.touch(t, "fail")
	j := recurring(newJob(t, late, map[string]any{"fail": w.file("fail")}), time.Second)
	j.Options = &jobsv1.JobOptions{Freshness: durationpb.New(20 * time.Second)}
	w.create(t, j)
	k.requireTold(t, fired, "job-failing/"+late)
	w.await(t, "that it is late, since it fails", func(o *jobsv1.Overview) bool {
		return slices.ContainsFunc(o.GetAlerts(), func(a *jobsv1.Alert) bool {
			return a.GetName() == "job-late/"+late && a.GetCausedBy() == "job-failing/"+late && a.GetRun() != ""
		})
	})
	require.NoError(t, os.Remove(w.file("fail")))
	k.requireTold(t, cleared, "job-failing/"+late)
	require.Empty(t, k.of("job-late/"+late), "it is explained")

	k.requireTold(t, fired, "drift/jobs")
	apply()
	k.requireTold(t, cleared, "drift/jobs")
}

// TestWatchdogTellsOfQueues has a queue halt, and its workflow end.
func TestWatchdogTellsOfQueues(t *testing.T) {
	t.Parallel()
	w := startWorld(t, readmodel.Config{Always: true})
	k, ctx := w.watch(t), t.Context()
	w.touch(t, "fail")
	j := newJob(t, "take_steps.item", map[string]any{"fail": w.file("fail")})
	j.Mode = &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: "watched", OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_HALT}}
	_, err := w.api.Queues.EnqueueJobs(ctx, &jobsv1.EnqueueJobsRequest{Jobs: []*jobsv1.Job{j}})
	require.NoError(t, err)
	k.requireTold(t, fired, "queue-halted/watched")
	require.NoError(t, os.Remove(w.file("fail")))
	_, err = w.api.Queues.ResumeQueue(ctx, &jobsv1.ResumeQueueRequest{Queue: "watched"})
	require.NoError(t, err)
	k.requireTold(t, cleared, "queue-halted/watched")

	require.NoError(t, w.client.Temporal().TerminateWorkflow(ctx, "queue/watched", "", "by a test"))
	k.requireTold(t, fired, "queue-ended/watched")
	_, err = w.api.Queues.RecoverQueue(ctx, &jobsv1.RecoverQueueRequest{Queue: "watched"})
	require.NoError(t, err)
	k.requireTold(t, cleared, "queue-ended/watched")
}

// TestWatchdogTellsOfServersAndWorkers takes Temporal and the worker away. Only what is down
// is told while Temporal is.
func TestWatchdogTellsOfServersAndWorkers(t *testing.T) {
	t.Parallel()
	w := startWorld(t, readmodel.Config{Always: true})
	k := w.watch(t)
	w.create(t, recurring(newJob(t, "take_steps.served", nil), 24*time.Hour))
	w.await(t, "the job", func(o *jobsv1.Overview) bool { return find(o, "take_steps.served") != nil })
	w.stop()
	k.requireTold(t, fired, "no-worker/TakeSteps")
	w.away.Store(true)
	k.requireTold(t, fired, "server-down/temporal")
	require.Eventually(t, func() bool { return !w.reader.Complete() }, soon, 10*time.Millisecond)
	w.away.Store(false)
	k.requireTold(t, cleared, "server-down/temporal")
	require.Equal(t, fired, k.of("no-worker/TakeSteps"), "it goes on")
	w.start()
	k.requireTold(t, cleared, "no-worker/TakeSteps")
}
