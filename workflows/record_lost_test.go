package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// scripted carries out a job's activity as the job's spec says, one letter for each
// attempt: l falls silent, r reports that it has lost the run, f fails, d hands the run
// back, and everything else succeeds.
type scripted struct {
	mu       sync.Mutex
	attempts map[string]int
}

func (s *scripted) execute(ctx context.Context, in contract.ActivityInput) (contract.ActivityOutput, error) {
	var spec recordedSpec
	if err := json.Unmarshal(in.Job.Spec, &spec); err != nil {
		return contract.ActivityOutput{}, err
	}
	s.mu.Lock()
	n := s.attempts[in.Job.ID]
	s.attempts[in.Job.ID]++
	s.mu.Unlock()
	letter := byte('.')
	if n < len(spec.Do) {
		letter = spec.Do[n]
	}
	output := contract.ActivityOutput{
		Worker: "scripted", Attempts: int(activity.GetInfo(ctx).Attempt), Result: job.Result{Message: "done", Cursor: job.EncodeJSON(n + 1)},
	}
	switch letter {
	case 'l':
		return contract.ActivityOutput{}, activity.ErrResultPending
	case 'r':
		return contract.ActivityOutput{}, temporal.NewApplicationError("the script loses the run", errclass.RunLost, output)
	case 'f':
		return contract.ActivityOutput{}, temporal.NewApplicationError("the script fails", "Refused", output)
	case 'd':
		return contract.ActivityOutput{}, temporal.NewApplicationErrorWithOptions("the script hands over", contract.ErrorTypeDraining,
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{output}})
	}
	return output, nil
}

// script makes a job that goes on as the letters say.
func (r *recorder) script(key string, schedule job.Trigger, letters string) job.Job {
	j := r.job(key, schedule, letters)
	j.Worker = "scripted"
	j.Options.MaxRetryCount = 1
	j.Options.HeartbeatTimeout = job.Duration(time.Second)
	j.Options.RetryBackoff = job.Backoff{Initial: job.Duration(100 * time.Millisecond), Max: job.Duration(100 * time.Millisecond), Coefficient: 1}
	return j
}

// lost records runs and continuous jobs whose workers fall silent, a job that fails and
// recovers, and queues with what goes wrong around a run.
func (r *recorder) lost(st *stacktest.Stack) {
	w := worker.New(st.Dial(r.T), "scripted", worker.Options{})
	workflows.Register(w)
	handler := &scripted{attempts: map[string]int{}}
	w.RegisterActivityWithOptions(handler.execute, activity.RegisterOptions{Name: "RecordHistory"})
	require.NoError(r, w.Start())
	defer w.Stop()
	oneShot := job.Trigger{OneShot: &job.OneShot{}}
	r.run("run_lost", r.script("lost", oneShot, "lll."))
	r.run("run_lost_reported", r.script("lost-reported", oneShot, "frr."))
	r.canceledLost(handler)
	r.run("run_lost_for_good", r.script("lost-for-good", oneShot, "llllllll"))
	r.iterations("continuous_failing", "ff.l.fff")
	r.iterations("continuous_interrupted", "fd.lfd")
	r.stopping()
	r.stuck()
	r.boundLost(st, handler)
}

// boundLost records a bound run whose service dies in the middle of an attempt and does
// not return.
func (r *recorder) boundLost(st *stacktest.Stack, handler *scripted) {
	j := r.script("bound-lost", job.Trigger{OneShot: &job.OneShot{}}, "l.")
	j.Options.MaxRetryCount = 3
	j.Options.Bind = map[string]string{"recorded": "lost"}
	j.Options.FailoverAfter = job.Duration(3 * time.Second)
	stop := r.service(st, "ghost", handler)
	ref, err := r.client.Runs.Start(r.Context(), j, contract.StartedByHand)
	require.NoError(r, err)
	stacktest.WaitFor(r, "the first attempt", func() (bool, error) {
		handler.mu.Lock()
		defer handler.mu.Unlock()
		return handler.attempts[j.ID] > 0, nil
	})
	stop()
	defer r.service(st, "heir", handler)()
	r.ended(ref)
	r.save("run_bound_lost", ref)
}

// service is a service of the scripted worker type. When it is stopped it does not
// withdraw: it falls silent, as a process does that dies.
func (r *recorder) service(st *stacktest.Stack, name string, handler *scripted) (stop func()) {
	c, queue := st.Dial(r.T), contract.ServiceTaskQueue("scripted", name)
	w := worker.New(c, queue, worker.Options{DisableWorkflowWorker: true})
	w.RegisterActivityWithOptions(handler.execute, activity.RegisterOptions{Name: "RecordHistory"})
	w.RegisterActivityWithOptions(func(ctx context.Context, _ contract.Service) error {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-activity.GetWorkerStopChannel(ctx):
				return activity.ErrResultPending
			}
		}
	}, activity.RegisterOptions{Name: contract.ServiceType})
	require.NoError(r, w.Start())
	_, err := c.ExecuteActivity(r.Context(), sdk.StartActivityOptions{
		ID: contract.ServiceID("scripted", name), TaskQueue: queue, StartToCloseTimeout: time.Hour, HeartbeatTimeout: time.Second,
		RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	}, contract.ServiceType, contract.Service{
		Worker: "scripted", Name: name, Tags: map[string]string{"recorded": "lost"}, Slots: 10,
		Types: []contract.ServedType{{Name: "RecordHistory"}},
	})
	require.NoError(r, err)
	return w.Stop
}

// iterations records a continuous job through its script, to its end or until it pauses itself.
func (r *recorder) iterations(name, letters string) {
	j := r.script(name, job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(50 * time.Millisecond)}}, letters)
	j.Options.MaxRetryCount = 2
	require.NoError(r, r.client.Jobs.StartContinuous(r.Context(), j))
	r.state(j.ID, func(s contract.ContinuousState) bool {
		return s.Phase == contract.PhasePaused || s.Iterations > int64(len(letters))
	})
	require.NoError(r, r.client.Apply.StopContinuous(r.Context(), j.ID, "recorded", nil))
	for n, ref := range r.runsOf(contract.JobWorkflowID(j.ID)) {
		r.save(fmt.Sprintf("%s_%d", name, n+1), ref)
	}
}

// stopping records a queue whose running item is terminated.
func (r *recorder) stopping() {
	const name = "stopping"
	schedule := job.Trigger{Queued: &job.Queued{Queue: name}}
	terminated := r.script("terminated", schedule, "l")
	for _, j := range []job.Job{terminated, r.script("after", schedule, "")} {
		_, err := r.client.Queues.Enqueue(r.Context(), j, client.EnqueueOptions{})
		require.NoError(r, err)
	}
	r.queueReaches(name, "the item to run", func(s *contract.QueueState) bool { return s.Running != nil && s.Running.RunID != "" })
	require.NoError(r, r.client.Runs.Terminate(r.Context(), client.RunRef{WorkflowID: contract.JobWorkflowID(terminated.ID)}, "recorded"))
	require.NoError(r, r.client.Queues.AwaitEmpty(r.Context(), name, func(*client.Queue) {}))
	r.save("queue_stopping", r.latest(name, func() {}))
}

// stuck records a halted queue whose overflow page cannot be started.
func (r *recorder) stuck() {
	const name = "stuck"
	c := r.client.Temporal()
	run := r.startQueue(name, contract.QueueState{OnFailure: job.OnFailureHalt, PageSize: contract.PageSize{Items: 2, Bytes: 48 << 10}})
	schedule := job.Trigger{Queued: &job.Queued{Queue: name}}
	_, err := r.client.Queues.Enqueue(r.Context(), r.script("stuck-failed", schedule, "ff"), client.EnqueueOptions{})
	require.NoError(r, err)
	r.queueReaches(name, "a halt", func(s *contract.QueueState) bool { return s.Halted != nil })
	page := contract.QueuePageWorkflowID(name, run.GetRunID()[:8], 4)
	_, err = c.ExecuteWorkflow(r.Context(), sdk.StartWorkflowOptions{ID: page, TaskQueue: "nowhere"}, "Nothing")
	require.NoError(r, err)
	for i := range 5 {
		_, err := r.client.Queues.Enqueue(r.Context(), r.script(fmt.Sprintf("stuck-%d", i), schedule, ""), client.EnqueueOptions{})
		require.NoError(r, err)
	}
	r.queueReaches(name, "a page that cannot be started", func(s *contract.QueueState) bool { return s.Overflow.StartFailed })
	_, err = r.client.Queues.SkipFailed(r.Context(), name)
	require.NoError(r, err)
	r.queueReaches(name, "a halt", func(s *contract.QueueState) bool { return s.Halted != nil })
	require.NoError(r, c.TerminateWorkflow(r.Context(), page, "", "recorded"))
	_, err = r.client.Queues.Resume(r.Context(), name)
	require.NoError(r, err)
	require.NoError(r, r.client.Queues.AwaitEmpty(r.Context(), name, func(*client.Queue) {}))
	for n, ref := range r.runsOf(run.GetID()) {
		r.save(fmt.Sprintf("queue_start_failed_%d", n+1), ref)
	}
}
