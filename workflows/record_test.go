package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
	"github.com/dendrascience/dendra-jobs/workers"
)

// recordVariable names the folder into which TestRecordHistories writes. Record
// from a version that is released, never from the change that is to be checked.
const recordVariable = "DENDRA_RECORD_HISTORIES"

// TestRecordHistories writes a history of every shape that the workflows leave
// behind, for TestRecordedHistoriesReplay. It is skipped unless asked for.
func TestRecordHistories(t *testing.T) {
	t.Parallel()
	folder := os.Getenv(recordVariable)
	if folder == "" {
		t.Skipf("set %s=testdata/replay to record", recordVariable)
	}
	before, err := filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(t, err)
	for _, file := range before {
		require.NoError(t, os.Remove(file))
	}
	st := stacktest.StartOwn(t, "--history-events", "60")
	c := client.New(st.Dial(t), st.Namespace)
	w := &recordedWorker{t: t, stack: st}
	stop := w.start()
	r := &recorder{T: t, client: c, folder: folder}

	once := r.job("once", job.Trigger{OneShot: &job.OneShot{}}, "")
	r.run("run_completed", once)
	r.run("run_failed", r.job("final", job.Trigger{OneShot: &job.OneShot{}}, "final"))
	r.run("run_retried", r.job("retried", job.Trigger{OneShot: &job.OneShot{}}, "once"))
	r.canceled("run_canceled", r.job("canceled", job.Trigger{OneShot: &job.OneShot{}}, "wait"))
	r.scheduled("run_superseded", "late", time.Hour)
	r.scheduled("run_in_time", "in-time", 0)
	r.ends()
	r.continuous()
	r.queue()
	r.signaled()
	r.halted()
	r.paged()
	r.repeated()
	r.recoveredQueue()
	r.limits()
	r.applied()
	r.pauses()

	handed := r.job("handed", job.Trigger{OneShot: &job.OneShot{}}, "wait")
	ref, err := c.Runs.Start(t.Context(), handed, contract.StartedByHand)
	require.NoError(t, err)
	r.waitRunning(ref)
	away := r.failing()
	stop()
	w.released = true
	defer w.start()()
	r.ended(ref)
	r.save("run_handed_over", ref)
	r.recovered(away)
	r.bound(st)
	r.lost(st)
}

// bound records runs and iterations of bound jobs whose service goes away, and a run
// whose service is busy for longer than failover_after.
func (r *recorder) bound(st *stacktest.Stack) {
	bind := func(key, do, service string, schedule job.Trigger) job.Job {
		j := r.job(key, schedule, do)
		j.Options.Bind = map[string]string{"recorded": service}
		j.Options.FailoverAfter = job.Duration(time.Second)
		return j
	}
	start := func(j job.Job) client.RunRef {
		ref, err := r.client.Runs.Start(r.Context(), j, contract.StartedByHand)
		require.NoError(r, err)
		return ref
	}
	serve := func(name string, released bool, slots int) (stop func()) {
		w := &recordedWorker{t: r.T, stack: st, released: released, service: name, slots: slots, tags: map[string]string{"recorded": "yes"}}
		return w.start()
	}
	stopFirst := serve("first", false, 1)
	moved := start(bind("bound-moved", "wait", "yes", job.Trigger{OneShot: &job.OneShot{}}))
	r.waitRunning(moved)
	busy := start(bind("bound-busy", "", "yes", job.Trigger{OneShot: &job.OneShot{}}))
	stacktest.WaitFor(r, "the busy service to be asked twice", func() (bool, error) {
		return r.chosen(busy) >= 2, nil
	})
	fails := bind("bound-failed", "", "nobody", job.Trigger{OneShot: &job.OneShot{}})
	fails.Options.Failover = job.FailoverFail
	r.run("run_bound_failed", fails)
	stopFirst()

	defer serve("second", true, 10)()
	loop := bind("bound-loop", "", "yes", job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(50 * time.Millisecond)}})
	require.NoError(r, r.client.Jobs.StartContinuous(r.Context(), loop))
	r.ended(moved)
	r.save("run_bound_moved", moved)
	r.ended(busy)
	r.save("run_bound_busy", busy)
	r.state(loop.ID, func(s contract.ContinuousState) bool { return s.Generation >= 2 })
	last, err := r.client.Jobs.LiveWorkflow(r.Context(), loop.ID)
	require.NoError(r, err)
	require.NoError(r, r.client.Apply.StopContinuous(r.Context(), loop.ID, "recorded", nil))
	r.save("continuous_bound", client.RunRef{WorkflowID: contract.JobWorkflowID(loop.ID), RunID: last.Workflow.RunID})
}

// chosen counts how often a service was chosen for a run.
func (r *recorder) chosen(ref client.RunRef) int {
	events := r.client.Temporal().GetWorkflowHistory(r.Context(), ref.WorkflowID, ref.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	n := 0
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(r, err)
		if event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == contract.ChooseServiceActivity {
			n++
		}
	}
	return n
}

// recordedWorker runs workers of the recorded job type, one after the other.
type recordedWorker struct {
	t        *testing.T
	stack    *stacktest.Stack
	released bool
	service  string
	slots    int
	tags     map[string]string
}

func (w *recordedWorker) start() (stop func()) {
	released := w.released
	recorded := job.NewType("RecordHistory", "recording", "Does what its spec says.",
		func(ctx context.Context, run job.Run, spec recordedSpec) (job.Result, error) {
			return recordedHandler(ctx, run, spec, released)
		})
	return workertest.Run(w.t, w.stack, workers.Config{
		Service: w.service, Tags: w.tags, MaxConcurrentRuns: w.slots, Types: []job.Type{recorded},
	})
}

type recordedSpec struct {
	// Do is "" to succeed, "final" to fail, "once" to fail the first attempt; and
	// unless the worker is a later one "wait" to wait for a request to stop, or
	// "away" to fail.
	Do string `json:"do,omitempty"`
}

func recordedHandler(ctx context.Context, run job.Run, spec recordedSpec, released bool) (job.Result, error) {
	run.Checkpoint(job.Progress{Done: 1, Total: 2, Message: "half"}, 1)
	switch {
	case spec.Do == "final":
		return job.Result{}, job.Final("Refused", "the spec says so")
	case spec.Do == "away" && !released:
		return job.Result{}, job.Final("Away", "the spec says so")
	case spec.Do == "once" && run.Attempt() == 1:
		return job.Result{}, errors.New("the spec says so, once")
	case spec.Do == "wait" && !released:
		return job.Result{}, workertest.Wait(ctx, run, nil)
	}
	return job.Result{Message: "done", Counts: map[string]int64{"things": 2}}, nil
}

type recorder struct {
	*testing.T
	client *client.Client
	folder string
}

func (r *recorder) job(key string, schedule job.Trigger, do string) job.Job {
	return job.Job{
		ID: job.ID("RecordHistory", key), Type: "RecordHistory", Worker: "recording", Provider: job.ProviderTOML,
		Spec: job.EncodeJSON(recordedSpec{Do: do}), Trigger: schedule, Options: job.DefaultOptions(schedule.Mode()),
	}
}

func (r *recorder) run(name string, j job.Job) {
	ref, err := r.client.Runs.Start(r.Context(), j, contract.StartedByHand)
	require.NoError(r, err)
	r.ended(ref)
	r.save(name, ref)
}

// scheduled records a run, as a schedule starts it, of a job whose late starts
// give way to later ones.
func (r *recorder) scheduled(name, key string, late time.Duration) {
	j := r.job(key, job.Trigger{Recurring: &job.Recurring{
		RecurEvery: job.Duration(time.Minute), Offset: new(job.Duration), Misfire: job.MisfireOnce, Overlap: job.OverlapAllowAll,
	}}, "")
	due := temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime").ValueSet(time.Now().Add(-late))
	run, err := r.client.Temporal().ExecuteWorkflow(r.Context(), sdk.StartWorkflowOptions{
		ID: contract.JobWorkflowID(j.ID), TaskQueue: contract.TaskQueue(j.Worker),
		TypedSearchAttributes: temporal.NewSearchAttributes(due),
	}, contract.RunJobType, contract.RunInput{Job: j, StartedBy: contract.StartedBySchedule})
	require.NoError(r, err)
	require.NoError(r, run.Get(r.Context(), nil))
	r.save(name, client.RunRef{WorkflowID: run.GetID(), RunID: run.GetRunID()})
}

// ends records runs that leave how they ended in their memo, and one that was
// started by a version that did not ask for it.
func (r *recorder) ends() {
	oneShot := job.Trigger{OneShot: &job.OneShot{}}
	r.run("run_end_completed", r.job("end-completed", oneShot, ""))
	failing := r.job("end-failed", oneShot, "final")
	r.run("run_end_failed", failing)
	r.canceled("run_end_canceled", r.job("end-canceled", oneShot, "wait"))
	latest, err := r.client.Jobs.LiveWorkflow(r.Context(), failing.ID)
	require.NoError(r, err)
	retried, err := r.client.Runs.Retry(r.Context(), client.RunRef{
		WorkflowID: contract.JobWorkflowID(failing.ID), RunID: latest.Workflow.RunID,
	})
	require.NoError(r, err)
	r.ended(retried.Run)
	r.save("run_end_retry", retried.Run)
}

func (r *recorder) ended(ref client.RunRef) {
	_, err := r.client.Runs.Follow(r.Context(), ref, func(*client.RunDetail) {})
	require.NoError(r, err)
}

func (r *recorder) waitRunning(ref client.RunRef) {
	stacktest.WaitFor(r, "progress of "+ref.WorkflowID, func() (bool, error) {
		run, err := r.client.Runs.Get(r.Context(), ref)
		return err == nil && run.Progress != nil && run.Progress.Done == 1, err
	})
}

func (r *recorder) canceled(name string, j job.Job) {
	ref, err := r.client.Runs.Start(r.Context(), j, contract.StartedByHand)
	require.NoError(r, err)
	r.waitRunning(ref)
	require.NoError(r, r.client.Jobs.Stop(r.Context(), j.ID, "recorded"))
	r.ended(ref)
	r.save(name, ref)
}

// continuous records a continuous job through messages of every kind and continue-as-new.
func (r *recorder) continuous() {
	j := r.job("loop", job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(50 * time.Millisecond)}}, "")
	require.NoError(r, r.client.Jobs.StartContinuous(r.Context(), j))
	first, err := r.client.Jobs.LiveWorkflow(r.Context(), j.ID)
	require.NoError(r, err)
	require.NoError(r, r.client.Jobs.Pause(r.Context(), j.ID, "recorded"))
	require.NoError(r, r.client.Jobs.Resume(r.Context(), j.ID, ""))
	r.state(j.ID, func(s contract.ContinuousState) bool { return s.Generation >= 2 })

	changed := j
	changed.Spec = job.EncodeJSON(recordedSpec{Do: "wait"})
	require.NoError(r, r.client.Apply.SetContinuous(r.Context(), changed, "", true))
	r.state(j.ID, func(s contract.ContinuousState) bool { return s.Phase == contract.PhaseRunning })
	require.NoError(r, r.client.Jobs.Restart(r.Context(), j.ID, "recorded"))
	failing := j
	failing.Spec = job.EncodeJSON(recordedSpec{Do: "final"})
	failing.Options.MaxRetryCount = 1
	require.NoError(r, r.client.Apply.SetContinuous(r.Context(), failing, "", true))
	r.state(j.ID, func(s contract.ContinuousState) bool { return s.Phase == contract.PhasePaused })
	last, err := r.client.Jobs.LiveWorkflow(r.Context(), j.ID)
	require.NoError(r, err)
	require.NoError(r, r.client.Apply.StopContinuous(r.Context(), j.ID, "recorded", nil))
	id := contract.JobWorkflowID(j.ID)
	r.save("continuous_first", client.RunRef{WorkflowID: id, RunID: first.Workflow.RunID})
	r.save("continuous_last", client.RunRef{WorkflowID: id, RunID: last.Workflow.RunID})
}

func (r *recorder) state(jobID string, reached func(contract.ContinuousState) bool) {
	workertest.WaitLoop(r, r.client, jobID, "its state", func(s *contract.ContinuousState) bool { return reached(*s) })
}

// queue records a queue that continues as new while an item runs, which is then
// watched, with messages of every kind.
func (r *recorder) queue() {
	const name = "recorded"
	put := func(key, do string) job.Job {
		j := r.job(key, job.Trigger{Queued: &job.Queued{Queue: name}}, do)
		_, err := r.client.Queues.Enqueue(r.Context(), j, client.EnqueueOptions{})
		require.NoError(r, err)
		return j
	}
	first := r.latest(name, func() { put("q-first", "") })
	put("q-failed", "final")
	put("q-first", "")
	blocked := put("q-blocked", "wait")
	for i := range 40 {
		put(fmt.Sprintf("q%02d", i), "")
	}
	_, err := r.client.Queues.CancelItem(r.Context(), name, "record_history.q39")
	require.NoError(r, err)
	r.queueReaches(name, "to continue as new", func(s *contract.QueueState) bool {
		return s.Generation >= 1 && s.Running != nil && s.Running.Job.ID == blocked.ID
	})
	watching := r.latest(name, func() {})
	_, err = r.client.Queues.Pause(r.Context(), name, "recorded")
	require.NoError(r, err)
	_, err = r.client.Queues.CancelItem(r.Context(), name, blocked.ID)
	require.NoError(r, err)
	r.queueReaches(name, "the item to be canceled", func(s *contract.QueueState) bool { return s.Running == nil && s.Canceled == 2 })
	_, err = r.client.Queues.Resume(r.Context(), name)
	require.NoError(r, err)
	r.queueReaches(name, "its end", func(s *contract.QueueState) bool { return s.Running == nil && len(s.Waiting) == 0 })
	last := r.latest(name, func() {})
	r.save("queue_first", first)
	r.save("queue_watching", watching)
	r.save("queue_last", last)
}

// signaled records a queue that takes a signal and refuses one.
func (r *recorder) signaled() {
	const name = "signaled"
	put := r.job("s-first", job.Trigger{Queued: &job.Queued{Queue: name}}, "")
	_, err := r.client.Queues.Enqueue(r.Context(), put, client.EnqueueOptions{})
	require.NoError(r, err)
	broken := r.job("s-broken", job.Trigger{Queued: &job.Queued{Queue: name}}, "")
	broken.Options.RunTimeout = 0
	for _, j := range []job.Job{r.job("s-signaled", job.Trigger{Queued: &job.Queued{Queue: name}}, ""), broken} {
		require.NoError(r, r.client.Temporal().SignalWorkflow(r.Context(), contract.QueueWorkflowID(name), "",
			contract.SignalEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: j}}}))
	}
	r.queueReaches(name, "the signaled item to complete", func(s *contract.QueueState) bool { return s.Completed == 2 && s.Failed == 1 })
	r.save("queue_signaled", r.latest(name, func() {}))
}

// failing records the runs of a job that fails until its starts are held back, and
// one that is.
func (r *recorder) failing() job.Job {
	j := r.job("away", job.Trigger{Recurring: &job.Recurring{
		RecurEvery: job.Duration(2 * time.Second), PauseAfterFailures: 2, RetryEvery: job.Duration(time.Hour),
	}}, "away")
	syncer := schedules.New(r.client)
	plan, err := syncer.Plan(r.Context(), []job.Job{j}, schedules.PlanOptions{Provider: job.ProviderTOML})
	require.NoError(r, err)
	require.NoError(r, syncer.Apply(r.Context(), plan, func(schedules.Report) {}))
	stacktest.WaitFor(r, "a run that is held back", func() (bool, error) {
		held, err := r.client.Runs.List(r.Context(), client.RunFilter{JobID: j.ID, Status: client.RunHeldBack})
		if err != nil || len(held) == 0 {
			return false, err
		}
		failed, err := r.client.Runs.List(r.Context(), client.RunFilter{JobID: j.ID, Status: client.RunFailed})
		if err != nil || len(failed) != 2 {
			return false, err
		}
		r.save("run_failed_counted", failed[1].RunRef)
		r.save("run_failed_again", failed[0].RunRef)
		r.save("run_held_back", held[0].RunRef)
		return true, nil
	})
	return j
}

// recovered records the run that someone has triggered, and that succeeds.
func (r *recorder) recovered(j job.Job) {
	triggered, err := r.client.Jobs.Trigger(r.Context(), j.ID)
	require.NoError(r, err)
	r.ended(triggered.Run)
	r.save("run_recovered", triggered.Run)
}

// latest is the workflow run of a queue after an action.
func (r *recorder) latest(name string, act func()) client.RunRef {
	act()
	response, err := r.client.Temporal().DescribeWorkflowExecution(r.Context(), contract.QueueWorkflowID(name), "")
	require.NoError(r, err)
	execution := response.GetWorkflowExecutionInfo().GetExecution()
	return client.RunRef{WorkflowID: execution.GetWorkflowId(), RunID: execution.GetRunId()}
}

// save writes a history as the Temporal CLI does.
// applied records what was applied until the record continues as new.
func (r *recorder) applied() {
	ref := client.RunRef{WorkflowID: contract.AppliedWorkflowID(job.ProviderTOML)}
	first := ""
	stacktest.WaitFor(r, "the record to continue as new", func() (bool, error) {
		_, err := r.client.Temporal().SignalWithStartWorkflow(r.Context(), ref.WorkflowID, contract.SignalApplied, contract.AppliedRecord{
			Applied: map[string]contract.AppliedJob{"record_history.a": {Mode: job.ModeOneShot, Hash: "0123456789abcdef"}},
			Removed: []string{"record_history.b"},
		}, sdk.StartWorkflowOptions{TaskQueue: contract.QueuesTaskQueue}, contract.AppliedJobsType, contract.AppliedState{})
		require.NoError(r, err)
		described, err := r.client.Temporal().DescribeWorkflowExecution(r.Context(), ref.WorkflowID, "")
		require.NoError(r, err)
		ref.RunID = described.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		if first == "" {
			first = ref.RunID
		}
		return ref.RunID != first, nil
	})
	r.save("applied_last", ref)
	ref.RunID = first
	r.save("applied_first", ref)
}

func (r *recorder) save(name string, ref client.RunRef) {
	events := r.client.Temporal().GetWorkflowHistory(r.Context(), ref.WorkflowID, ref.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var history historypb.History
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(r, err)
		history.Events = append(history.Events, event)
	}
	text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(&history)
	require.NoError(r, err)
	var value any
	require.NoError(r, json.Unmarshal(text, &value))
	text, err = json.Marshal(value)
	require.NoError(r, err)
	require.NoError(r, os.MkdirAll(r.folder, 0o750))
	require.NoError(r, os.WriteFile(filepath.Join(r.folder, name+".json"), append(text, '\n'), 0o600))
	r.Logf("%s: %d events", name, len(history.Events))
}
