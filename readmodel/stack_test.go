package readmodel_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/grpcproxy"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// soon bounds the time from a change to the snapshot that has it. The reader takes two
// seconds; a machine with other work to do takes longer.
const soon = 30 * time.Second

// world is a namespace with a worker and a reader.
type world struct {
	client *client.Client
	api    *api.Clients
	reader *readmodel.Reader
	calls  *atomic.Int64 // of Temporal, by the reader
	away   *atomic.Bool  // set, Temporal does not answer the reader
	// refuse may refuse a call of the reader, by its method.
	refuse atomic.Pointer[func(method string) error]
	start  func() // begins the worker
	stop   func() // ends it
	dir    string
}

func startWorld(t *testing.T, config readmodel.Config) *world {
	t.Helper()
	st := stacktest.StartNamespace(t)
	w := &world{calls: &atomic.Int64{}, away: &atomic.Bool{}, dir: t.TempDir()}
	proxy, err := grpcproxy.Start(t.Context(), st.Temporal, grpcproxy.Options{Refuse: func(method string) error {
		if w.away.Load() {
			return status.Error(codes.Unavailable, "away for a test")
		}
		if refuse := w.refuse.Load(); refuse != nil {
			return (*refuse)(method)
		}
		return nil
	}})
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	w.client = client.New(st.Dial(t), st.Namespace)
	pipe := st.Pipeline(t)

	config.Pipeline, config.Logger = pipe, slog.New(slog.DiscardHandler)
	config.Temporal = temporalclient.Settings{
		Address: proxy.Address, Namespace: st.Namespace, Logger: config.Logger,
		Intercept: func(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			w.calls.Add(1)
			return invoke(ctx, method, in, out, conn, options...)
		},
	}
	w.reader, err = readmodel.New(t.Context(), config)
	require.NoError(t, err)
	reading, stopReading := context.WithCancel(context.Background())
	read := make(chan error, 1)
	go func() { read <- w.reader.Run(reading) }()
	t.Cleanup(func() {
		stopReading()
		require.ErrorIs(t, <-read, context.Canceled)
	})

	types := []job.Type{
		job.NewType("TakeSteps", "overviewtest", "Takes steps.", w.takeSteps),
		job.NewType(teardown.Type, "overviewtest", "Is blocked.", func(context.Context, job.Run, stepSpec) (job.Result, error) {
			return job.Result{}, job.FailAfter(errclass.TeardownBlocked, time.Hour, "stage jobs: another organization has the slug")
		}),
		job.NewType("NobodyServes", "overviewtest", "No worker has it.", w.takeSteps),
	}
	w.start = func() { w.stop = workertest.Start(t, st, types[:2]...) }
	w.start()
	w.api = api.NewInProcess(api.Config{Client: w.client, Pipeline: pipe, Types: types, Overview: w.reader})
	w.await(t, "the worker", func(o *jobsv1.Overview) bool { return len(o.GetWorkers()) == 1 })
	return w
}

// stepSpec is the spec of the test's job types.
type stepSpec struct {
	// Gate is a file that a run waits for.
	Gate string `json:"gate,omitempty" help:"a file to wait for"`
	// Fail is a file; a run fails while it is there.
	Fail string `json:"fail,omitempty" help:"a file that makes runs fail"`
	// Step is a file; once it is there, a run at its gate reports a step.
	Step string `json:"step,omitempty" help:"a file that makes runs report a step"`
}

func (w *world) takeSteps(ctx context.Context, run job.Run, spec stepSpec) (job.Result, error) {
	if spec.Fail != "" && exists(spec.Fail) {
		return job.Result{}, job.Final("Told", "told to fail")
	}
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	for spec.Gate != "" && !exists(spec.Gate) {
		select {
		case <-run.Stopping():
			return job.Result{}, job.ErrStopped
		case <-ctx.Done():
			return job.Result{}, ctx.Err()
		case <-poll.C:
			if spec.Step != "" && exists(spec.Step) {
				run.Checkpoint(job.Progress{Done: 1}, nil)
			}
		}
	}
	return job.Result{Message: "all steps taken"}, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// file is a file of the test, which touch makes.
func (w *world) file(name string) string { return filepath.Join(w.dir, name) }

func (w *world) touch(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, os.WriteFile(w.file(name), nil, 0o600))
}

// await waits for a snapshot, as someone who watches.
func (w *world) await(t *testing.T, what string, cond func(*jobsv1.Overview) bool) *jobsv1.Overview {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	subscription := w.reader.Subscribe()
	defer subscription.Close()
	var last *readmodel.Snapshot
	for {
		next, err := subscription.Next(ctx)
		if err != nil {
			text := "nothing was read"
			if last != nil {
				text = protojson.Format(last.Message(0))
			}
			t.Fatalf("the overview does not show %s within %s: %v\n%s", what, soon, err, text)
		}
		if last = next; cond(last.Overview) {
			return last.Overview
		}
	}
}

func find(o *jobsv1.Overview, id string) *jobsv1.JobOverview {
	for _, j := range o.GetJobs() {
		if j.GetId() == id {
			return j
		}
	}
	return nil
}

func alert(o *jobsv1.Overview, name string) *jobsv1.Alert {
	for _, a := range o.GetAlerts() {
		if a.GetName() == name {
			return a
		}
	}
	return nil
}

func newJob(t *testing.T, id string, spec map[string]any) *jobsv1.Job {
	t.Helper()
	s, err := structpb.NewStruct(spec)
	require.NoError(t, err)
	return &jobsv1.Job{Id: id, Spec: s}
}

func (w *world) create(t *testing.T, j *jobsv1.Job) {
	t.Helper()
	_, err := w.api.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: j})
	require.NoError(t, err)
}

func recurring(j *jobsv1.Job, every time.Duration) *jobsv1.Job {
	j.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{RecurEvery: durationpb.New(every)}}
	return j
}

func TestJobsOfEachMode(t *testing.T) {
	t.Parallel()
	w := startWorld(t, readmodel.Config{})
	ctx := t.Context()

	w.create(t, recurring(newJob(t, "take_steps.every", map[string]any{"fail": w.file("fail")}), time.Second))
	w.await(t, "runs of a recurring job", func(o *jobsv1.Overview) bool { return hasPrefix(find(o, "take_steps.every"), "CC") })
	w.touch(t, "fail")
	o := w.await(t, "that it fails", func(o *jobsv1.Overview) bool {
		return find(o, "take_steps.every").GetStatus() == jobsv1.JobStatus_JOB_STATUS_FAILING && alert(o, "job-failing/take_steps.every") != nil
	})
	require.Contains(t, find(o, "take_steps.every").GetFailing().GetErrorMessage(), "told to fail")
	require.NotNil(t, find(o, "take_steps.every").GetLastSuccessTime())
	require.Equal(t, find(o, "take_steps.every").GetFailing().GetSince().AsTime(), alert(o, "job-failing/take_steps.every").GetFireTime().AsTime())
	require.NoError(t, os.Remove(w.file("fail")))
	w.await(t, "that it succeeds again", func(o *jobsv1.Overview) bool {
		return find(o, "take_steps.every").GetStatus() == jobsv1.JobStatus_JOB_STATUS_SCHEDULED && alert(o, "job-failing/take_steps.every") == nil
	})
	_, err := w.api.Jobs.PauseJob(ctx, &jobsv1.PauseJobRequest{Id: "take_steps.every", Reason: "for a test"})
	require.NoError(t, err)
	o = w.await(t, "that it is paused", func(o *jobsv1.Overview) bool {
		return find(o, "take_steps.every").GetStatus() == jobsv1.JobStatus_JOB_STATUS_PAUSED
	})
	require.Contains(t, find(o, "take_steps.every").GetPauseReason(), "for a test")
	_, err = w.api.Jobs.DeleteJob(ctx, &jobsv1.DeleteJobRequest{Id: "take_steps.every"})
	require.NoError(t, err)
	w.await(t, "that it is deleted", func(o *jobsv1.Overview) bool { return find(o, "take_steps.every") == nil })

	once := newJob(t, "take_steps.once", map[string]any{"gate": w.file("gate")})
	once.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
	w.create(t, once)
	w.await(t, "the run of a one-shot job", func(o *jobsv1.Overview) bool { return find(o, "take_steps.once").GetOutcomes() == "R" })
	w.touch(t, "gate")
	o = w.await(t, "its end", func(o *jobsv1.Overview) bool { return find(o, "take_steps.once").GetOutcomes() == "C" })
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_COMPLETED, find(o, "take_steps.once").GetStatus())
	require.NotNil(t, find(o, "take_steps.once").GetMedianDuration())

	blocked := newJob(t, "handle_organization_teardown.one", nil)
	blocked.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
	w.create(t, blocked)
	o = w.await(t, "that a teardown is blocked", func(o *jobsv1.Overview) bool { return alert(o, "job-failing/"+blocked.GetId()) != nil })
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_FAILING, find(o, blocked.GetId()).GetStatus())
	require.Contains(t, alert(o, "job-failing/"+blocked.GetId()).GetText(), "stage jobs: another organization has the slug")
	require.Empty(t, alert(o, "job-failing/"+blocked.GetId()).GetActions())

	loop := newJob(t, "take_steps.loop", map[string]any{"fail": w.file("fail-loop")})
	loop.Mode = &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{Interval: durationpb.New(200 * time.Millisecond)}}
	w.create(t, loop)
	w.await(t, "iterations of a continuous job", func(o *jobsv1.Overview) bool {
		return hasPrefix(find(o, "take_steps.loop"), "CC") && find(o, "take_steps.loop").GetLastSuccessTime() != nil
	})
	w.touch(t, "fail-loop")
	w.await(t, "that it fails", func(o *jobsv1.Overview) bool { return alert(o, "job-failing/take_steps.loop") != nil })
	_, err = w.api.Jobs.PauseJob(ctx, &jobsv1.PauseJobRequest{Id: "take_steps.loop"})
	require.NoError(t, err)
	w.await(t, "that it is paused", func(o *jobsv1.Overview) bool {
		return find(o, "take_steps.loop").GetStatus() == jobsv1.JobStatus_JOB_STATUS_PAUSED
	})

	w.create(t, recurring(newJob(t, "nobody_serves.it", nil), time.Hour))
	o = w.await(t, "that no worker serves a type", func(o *jobsv1.Overview) bool { return alert(o, "no-worker/NobodyServes") != nil })
	require.Len(t, o.GetUnservedTypes(), 1)
	bound := newJob(t, "take_steps.bound", nil)
	bound.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
	bound.Options = &jobsv1.JobOptions{Bind: map[string]string{"zone": "nowhere"}}
	w.create(t, bound)
	w.await(t, "that no worker has a tag", func(o *jobsv1.Overview) bool { return alert(o, "no-worker/TakeSteps/zone=nowhere") != nil })

	w.stop()
	o = w.await(t, "that there is no worker", func(o *jobsv1.Overview) bool { return alert(o, "no-worker/TakeSteps") != nil })
	require.Empty(t, o.GetWorkers())
}

func hasPrefix(j *jobsv1.JobOverview, text string) bool {
	return len(j.GetOutcomes()) >= len(text) && j.GetOutcomes()[:len(text)] == text
}

func TestTemporalIsAway(t *testing.T) {
	t.Parallel()
	w := startWorld(t, readmodel.Config{})
	w.create(t, recurring(newJob(t, "take_steps.every", nil), time.Second))
	w.await(t, "runs", func(o *jobsv1.Overview) bool { return hasPrefix(find(o, "take_steps.every"), "CC") })
	w.away.Store(true)
	o := w.await(t, "that Temporal is down", func(o *jobsv1.Overview) bool {
		return alert(o, "server-down/temporal") != nil && len(o.GetNotes()) >= 3
	})
	require.True(t, hasPrefix(find(o, "take_steps.every"), "CC"), "what was read before stays")
	require.Len(t, o.GetWorkers(), 1)
	runs := len(find(o, "take_steps.every").GetOutcomes())
	w.away.Store(false)
	w.await(t, "what has happened meanwhile", func(o *jobsv1.Overview) bool {
		return alert(o, "server-down/temporal") == nil && len(o.GetNotes()) == 0 && len(find(o, "take_steps.every").GetOutcomes()) >= runs+5
	})
}

func TestQueues(t *testing.T) {
	t.Parallel()
	w := startWorld(t, readmodel.Config{Limits: readmodel.Limits{QueueAge: time.Millisecond}})
	ctx := t.Context()
	queued := func(key string, spec map[string]any) *jobsv1.Job {
		j := newJob(t, "take_steps."+key, spec)
		j.Mode = &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: "q", OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_HALT}}
		return j
	}
	_, err := w.api.Queues.EnqueueJobs(ctx, &jobsv1.EnqueueJobsRequest{Jobs: []*jobsv1.Job{
		queued("first", map[string]any{"gate": w.file("gate")}), queued("second", nil),
	}})
	require.NoError(t, err)
	o := w.await(t, "a queue that runs", func(o *jobsv1.Overview) bool {
		return len(o.GetQueues()) == 1 && o.GetQueues()[0].GetWaiting() == 1 && find(o, "take_steps.second").GetStatus() == jobsv1.JobStatus_JOB_STATUS_WAITING
	})
	require.Equal(t, "take_steps.first", o.GetQueues()[0].GetRunning().GetJobId())
	require.NotNil(t, alert(o, "queue-behind/q"), "its oldest item waits for longer than the limit")
	w.touch(t, "gate")
	w.await(t, "the end of both", func(o *jobsv1.Overview) bool { return find(o, "take_steps.second").GetOutcomes() == "C" })

	_, err = w.api.Queues.EnqueueJobs(ctx, &jobsv1.EnqueueJobsRequest{Jobs: []*jobsv1.Job{queued("third", map[string]any{"fail": w.file("gate")})}})
	require.NoError(t, err)
	w.await(t, "that the queue is halted", func(o *jobsv1.Overview) bool { return alert(o, "queue-halted/q") != nil })
	_, err = w.api.Queues.SkipFailedItem(ctx, &jobsv1.SkipFailedItemRequest{Queue: "q"})
	require.NoError(t, err)
	w.await(t, "that it goes on", func(o *jobsv1.Overview) bool { return alert(o, "queue-halted/q") == nil })
	require.NoError(t, w.client.Temporal().TerminateWorkflow(ctx, "queue/q", "", "by a test"))
	w.await(t, "that the queue has ended", func(o *jobsv1.Overview) bool { return alert(o, "queue-ended/q") != nil })
	_, err = w.api.Queues.RecoverQueue(ctx, &jobsv1.RecoverQueueRequest{Queue: "q"})
	require.NoError(t, err)
	w.await(t, "that it runs again", func(o *jobsv1.Overview) bool { return alert(o, "queue-ended/q") == nil })
}

// TestStream requires that what a stream sends adds up to what GetOverview gives.
func TestStream(t *testing.T) {
	t.Parallel()
	w := startWorld(t, readmodel.Config{})
	for _, key := range []string{"a", "b", "c"} {
		w.create(t, recurring(newJob(t, "take_steps."+key, nil), time.Second))
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	stream, err := w.api.Overview.WatchOverview(ctx, &jobsv1.WatchOverviewRequest{Runs: 5})
	require.NoError(t, err)
	var sum *jobsv1.Overview
	deltas := 0
	for deltas < 10 {
		message, err := stream.Receive()
		require.NoError(t, err)
		if message.GetDelta() {
			deltas++
		}
		sum = added(sum, message)
		if deltas == 5 {
			_, err := w.api.Jobs.DeleteJob(ctx, &jobsv1.DeleteJobRequest{Id: "take_steps.b"})
			require.NoError(t, err)
		}
	}
	for find(sum, "take_steps.b") != nil {
		message, err := stream.Receive()
		require.NoError(t, err)
		sum = added(sum, message)
	}
	same := w.reader.Since(sum.GetRevision())
	require.NotNil(t, same)
	want := same.Message(5)
	want.ReadTime, sum.ReadTime = nil, nil
	require.True(t, proto.Equal(want, sum), "want %s\ngot %s", protojson.Format(want), protojson.Format(sum))

	again, err := w.api.Overview.WatchOverview(ctx, &jobsv1.WatchOverviewRequest{Runs: 5, Revision: sum.GetRevision()})
	require.NoError(t, err)
	message, err := again.Receive()
	require.NoError(t, err)
	require.True(t, message.GetDelta(), "the server knows what has changed since")
	cancel()
}

// added is an overview with what a message of the stream says.
func added(to *jobsv1.Overview, message *jobsv1.WatchOverviewResponse) *jobsv1.Overview {
	next := proto.CloneOf(message.GetOverview())
	if !message.GetDelta() {
		return next
	}
	next.Jobs = merged(to.GetJobs(), next.GetJobs(), message.GetRemovedJobs(), (*jobsv1.JobOverview).GetId)
	next.Queues = merged(to.GetQueues(), next.GetQueues(), message.GetRemovedQueues(), (*jobsv1.Queue).GetName)
	next.Loads = merged(to.GetLoads(), next.GetLoads(), message.GetRemovedLoads(), readmodel.LoadName)
	next.Workers = merged(to.GetWorkers(), next.GetWorkers(), message.GetRemovedWorkers(), readmodel.WorkerName)
	next.Stations = merged(to.GetStations(), next.GetStations(), message.GetRemovedStations(), (*jobsv1.StationOverview).GetName)
	next.Integrations = merged(to.GetIntegrations(), next.GetIntegrations(), message.GetRemovedIntegrations(), (*jobsv1.IntegrationOverview).GetName)
	return next
}

func TestViewersCostNoCalls(t *testing.T) {
	t.Parallel()
	w := startWorld(t, readmodel.Config{Grace: time.Second})
	for _, key := range []string{"a", "b", "c"} {
		w.create(t, recurring(newJob(t, "take_steps."+key, nil), time.Second))
	}
	// count is how many calls a second there are while some watch. The first seconds are
	// left out: a reader that was at rest reads more.
	count := func(viewers int) float64 {
		ctx, stop := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		for range viewers {
			wait.Go(func() {
				subscription := w.reader.Subscribe()
				defer subscription.Close()
				for {
					if _, err := subscription.Next(ctx); err != nil {
						return
					}
				}
			})
		}
		revisions := func(n int) {
			subscription := w.reader.Subscribe()
			defer subscription.Close()
			for range n {
				_, err := subscription.Next(ctx)
				require.NoError(t, err)
			}
		}
		revisions(5)
		begin, before := time.Now(), w.calls.Load()
		revisions(15)
		rate := float64(w.calls.Load()-before) / time.Since(begin).Seconds()
		stop()
		wait.Wait()
		return rate
	}
	one, fifty := count(1), count(50)
	t.Logf("%.2f calls a second for one viewer, %.2f for fifty", one, fifty)
	require.Less(t, one, 6.0)
	require.Less(t, fifty, 6.0)

	stacktest.WaitFor(t, "the reader to rest", func() (bool, error) {
		before := w.calls.Load()
		select {
		case <-time.After(3 * time.Second):
		case <-t.Context().Done():
			return false, errors.New("the test has ended")
		}
		return w.calls.Load() == before, nil
	})
}
