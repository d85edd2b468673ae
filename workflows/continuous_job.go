package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// maxIterationsPerRun bounds a workflow run even if the server would allow more
// history, so that new worker code comes into use.
const maxIterationsPerRun = 1000

// ContinuousJob runs a job again and again until it is stopped. The interval
// counts from the end of an iteration; after failures the job's backoff takes
// its place, and after max_retry_count failures in a row the job pauses itself. An
// iteration that was cut short counts as neither failure nor success, and one whose
// worker died as a failure only after maxLostWorkers in a row.
//
// MessageStop ends it gracefully and the workflow completes; a cancel request,
// from the Web UI for example, does the same and it ends as canceled.
func ContinuousJob(ctx workflow.Context, state contract.ContinuousState) (*contract.ContinuousOutput, error) {
	l := &loop{ContinuousState: state}
	if err := l.listen(ctx); err != nil {
		return nil, err
	}
	l.binding = binding{Binding: &l.ContinuousState.Binding, tell: func() { l.show(ctx) }}
	return l.turn(ctx)
}

type loop struct {
	contract.ContinuousState
	iterationsInRun int
	// unpublished says that the definition has changed since it was published.
	unpublished bool
	binding     binding
}

func (l *loop) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.ContinuousState, error) {
		return l.ContinuousState, nil
	}); err != nil {
		return fmt.Errorf("handle query %s: %w", contract.QueryState, err)
	}
	for _, install := range []func() error{
		func() error { return handle(ctx, contract.MessageStop, l.onStop, l.checkStop) },
		func() error { return handle(ctx, contract.MessageRestart, l.onRestart, l.checkRestart) },
		func() error { return handle(ctx, contract.MessagePause, l.onPause, l.checkPause) },
		func() error { return handle(ctx, contract.MessageResume, l.onResume, l.checkResume) },
		func() error { return handle(ctx, contract.MessageTrigger, l.onTrigger, l.checkTrigger) },
		func() error { return handle(ctx, contract.MessageSetJob, l.onSetJob, l.checkSetJob) },
	} {
		if err := install(); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) onStop(in contract.StopRequest) contract.ContinuousState {
	l.Stop, l.StopReason, l.Phase = true, job.Cut(in.Reason, maxPauseReason), contract.PhaseStopping
	return l.ContinuousState
}

func (l *loop) onRestart(contract.RestartRequest) contract.ContinuousState {
	l.Restart, l.Trigger = true, true
	return l.ContinuousState
}

func (l *loop) onPause(in contract.PauseRequest) contract.ContinuousState {
	l.Paused, l.PauseReason, l.PausedItself = true, job.Cut(in.Reason, maxPauseReason), false
	return l.ContinuousState
}

func (l *loop) onResume(contract.ResumeRequest) contract.ContinuousState {
	l.Paused, l.PauseReason, l.PausedItself = false, "", false
	l.forgetFailures()
	return l.ContinuousState
}

func (l *loop) onTrigger(contract.TriggerRequest) contract.ContinuousState {
	l.Trigger = true
	return l.ContinuousState
}

func (l *loop) onSetJob(in contract.SetJobRequest) contract.ContinuousState {
	switch {
	case in.Job.Options.Paused != l.Job.Options.Paused:
		l.Paused, l.PauseReason, l.PausedItself = in.Job.Options.Paused, "", false
		if l.Paused {
			l.PauseReason = "paused in its definition"
		}
	case in.EndFailurePause && l.PausedItself:
		l.Paused, l.PauseReason, l.PausedItself = false, "", false
	}
	l.Job = in.Job
	l.unpublished = true
	l.forgetFailures()
	l.Restart = l.Restart || in.Restart
	return l.ContinuousState
}

// turn goes round until the job is stopped or the history has grown enough.
func (l *loop) turn(ctx workflow.Context) (*contract.ContinuousOutput, error) {
	for {
		if err := l.publish(ctx); err != nil {
			return nil, err
		}
		if err := l.tellFailing(ctx); err != nil {
			return nil, err
		}
		switch {
		case l.Stop || ctx.Err() != nil:
			return l.finish(ctx)
		case l.historyGrown(ctx):
			l.Generation++
			return nil, workflow.NewContinueAsNewError(ctx, contract.ContinuousJobType, l.ContinuousState)
		case l.Paused:
			if err := l.pause(ctx); err != nil {
				return nil, err
			}
		case !l.Trigger && workflow.Now(ctx).Before(l.due()):
			l.sleep(ctx)
		default:
			if err := l.iterate(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// historyGrown says that it is time to continue as new. Handlers never wait, so
// none is ever unfinished here.
func (l *loop) historyGrown(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested() || l.iterationsInRun >= maxIterationsPerRun
}

func (l *loop) enter(ctx workflow.Context, phase contract.Phase) {
	l.Phase = phase
	l.show(ctx)
}

// show sets what people see of the job.
func (l *loop) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, l.details())
}

// await waits for a message or for a cancel request, which the loop looks at next.
func (l *loop) await(ctx workflow.Context, condition func() bool) {
	if err := workflow.Await(ctx, condition); err != nil {
		workflow.GetLogger(ctx).Info("canceled while waiting", "JobID", l.Job.ID)
	}
}

// pause waits until the job is resumed or stopped.
func (l *loop) pause(ctx workflow.Context) error {
	tell := func(p contract.Pause) error {
		if err := workflow.UpsertMemo(ctx, map[string]any{contract.MemoPaused: p}); err != nil {
			return fmt.Errorf("publish the pause of job %s: %w", l.Job.ID, err)
		}
		return nil
	}
	now := contract.Pause{Paused: true, Reason: l.PauseReason, Itself: l.PausedItself}
	l.enter(ctx, contract.PhasePaused)
	if err := tell(now); err != nil {
		return err
	}
	l.await(ctx, func() bool {
		return l.Stop || !l.Paused || l.PauseReason != now.Reason || l.PausedItself != now.Itself || l.unpublished
	})
	if l.Paused {
		return nil // Stopped, canceled, or paused for another reason.
	}
	l.EndedAt = time.Time{} // Resumed: go on at once.
	return tell(contract.Pause{})
}

func (l *loop) sleep(ctx workflow.Context) {
	phase := contract.PhaseWaiting
	if l.ConsecutiveFailures > 0 {
		phase = contract.PhaseFailing
	}
	due := l.due()
	l.NextAt = due
	l.enter(ctx, phase)
	_, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout:      due.Sub(workflow.Now(ctx)),
		TimerOptions: workflow.TimerOptions{Summary: "until the next iteration"},
	}, func() bool {
		return l.Stop || l.Paused || l.Trigger || l.unpublished || !l.due().Equal(due)
	})
	l.NextAt = time.Time{}
	if err != nil {
		workflow.GetLogger(ctx).Info("canceled while waiting", "JobID", l.Job.ID)
	}
}

func (l *loop) iterate(ctx workflow.Context) error {
	l.Trigger, l.Restart = false, false
	l.iterationsInRun++
	it := contract.Iteration{Number: l.Iterations + 1, Start: workflow.Now(ctx)}
	in := contract.ActivityInput{
		Job:    l.Job,
		RunID:  fmt.Sprintf("%s/%d", workflow.GetInfo(ctx).FirstRunID, it.Number),
		Cursor: l.Cursor,
	}
	l.enter(ctx, contract.PhaseRunning)
	future, cancel := l.startActivity(ctx, &in)
	defer cancel()
	if err := l.attend(ctx, future); err != nil {
		return err
	}
	if !future.IsReady() {
		cancel()
	}
	output, err := endActivity(ctx, future)
	it.Duration = job.Duration(workflow.Now(ctx).Sub(it.Start))
	l.Cursor = in.Cursor
	if len(output.Result.Cursor) > 0 {
		l.Cursor = output.Result.Cursor
	}
	it.Worker, it.Message, it.Counts, it.Stopped = output.Worker, output.Result.Message, output.Result.Counts, output.Stopped
	if err != nil {
		it.Class, it.Error, it.Lost = contract.ErrorClass(err), contract.ErrorReason(err), lostIteration(err)
	}
	l.record(it)
	if l.exhausted() {
		l.pauseItself(it.Error)
	}
	l.EndedAt = workflow.Now(ctx)
	if it.Stopped || l.tookServiceDown(err) {
		// Restarted, handed back by a worker that shuts down, or to be failed over:
		// go on at once.
		l.EndedAt = time.Time{}
	}
	return nil
}

// tookServiceDown says that a bound job's service died during the iteration. When
// it happens again the job backs off, as it does after failures.
func (l *loop) tookServiceDown(err error) bool {
	_, lost := lostWorker(err)
	return lost && len(l.Job.Options.Bind) > 0 && l.ConsecutiveLost == 1
}

// startActivity starts an iteration. When it has ended, the input holds the last
// cursor that a service left which went away.
func (l *loop) startActivity(ctx workflow.Context, in *contract.ActivityInput) (workflow.Future, workflow.CancelFunc) {
	activityCtx, cancel := workflow.WithCancel(ctx)
	if len(in.Job.Options.Bind) > 0 {
		return l.binding.start(activityCtx, in.Job, &tries{most: 1}, in), cancel
	}
	return workflow.ExecuteActivity(withJobActivity(activityCtx, in.Job, 1), in.Job.Type, *in), cancel
}

// attend waits until the iteration has ended or should end.
func (l *loop) attend(ctx workflow.Context, iteration workflow.Future) error {
	for {
		l.await(ctx, func() bool {
			return iteration.IsReady() || l.Stop || l.Paused || l.Restart || l.unpublished
		})
		if !l.unpublished {
			return nil
		}
		if err := l.publish(ctx); err != nil {
			return err
		}
	}
}

// endActivity waits until an iteration has really ended. Beside the error of one that
// failed it gives what its last attempt has left: the position of its last checkpoint,
// its worker, and what it had counted.
func endActivity(ctx workflow.Context, future workflow.Future) (contract.ActivityOutput, error) {
	detached, _ := workflow.NewDisconnectedContext(ctx)
	var output contract.ActivityOutput
	err := future.Get(detached, &output)
	if err == nil {
		return output, nil
	}
	if stopped, ok := stoppedOutput(err); ok {
		return stopped, nil
	}
	if handed, ok := handedBack(err); ok {
		handed.Stopped = true
		return handed, nil
	}
	return contract.LastOutput(err), err
}

func (l *loop) finish(ctx workflow.Context) (*contract.ContinuousOutput, error) {
	l.enter(ctx, contract.PhaseStopped)
	if err := ctx.Err(); err != nil && !l.Stop {
		return nil, err
	}
	return &contract.ContinuousOutput{
		Iterations: l.Iterations, Failed: l.Failed, Interrupted: l.Interrupted, LostWorkers: l.LostWorkers,
		Totals: l.Totals, Reason: l.StopReason,
	}, nil
}

// publish makes the definition that is in force findable and readable from
// outside, if it is not what was published last.
func (l *loop) publish(ctx workflow.Context) error {
	l.unpublished = false
	j := l.Job
	hash, err := j.DefinitionHash()
	if err != nil {
		return err
	}
	published := workflow.GetTypedSearchAttributes(ctx)
	if current, ok := published.GetKeyword(contract.AttributeDefinitionHash); ok && current == hash {
		return nil
	}
	attributes, err := contract.Attributes(j)
	if err != nil {
		return err
	}
	updates := []temporal.SearchAttributeUpdate{attributes.Copy()}
	if published.ContainsKey(contract.AttributeOwner) && !attributes.ContainsKey(contract.AttributeOwner) {
		updates = append(updates, contract.AttributeOwner.ValueUnset())
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		return fmt.Errorf("publish search attributes of job %s: %w", j.ID, err)
	}
	if err := workflow.UpsertMemo(ctx, map[string]any{contract.MemoJob: j}); err != nil {
		return fmt.Errorf("publish the definition of job %s: %w", j.ID, err)
	}
	return nil
}
