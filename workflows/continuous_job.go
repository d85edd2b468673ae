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
	c := &continuous{ContinuousState: state}
	if err := c.listen(ctx); err != nil {
		return nil, err
	}
	c.binding = binding{Binding: &c.ContinuousState.Binding, show: func() { c.show(ctx) }}
	return c.run(ctx)
}

type continuous struct {
	contract.ContinuousState
	iterationsInRun int
	// unpublished says that the definition has changed since it was published.
	unpublished bool
	binding     binding
}

func (c *continuous) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, contract.QueryState, func() (contract.ContinuousState, error) {
		return c.ContinuousState, nil
	}); err != nil {
		return fmt.Errorf("handle query %s: %w", contract.QueryState, err)
	}
	for _, install := range []func() error{
		func() error { return handle(ctx, contract.MessageStop, c.onStop, c.checkStop) },
		func() error { return handle(ctx, contract.MessageRestart, c.onRestart, c.checkRestart) },
		func() error { return handle(ctx, contract.MessagePause, c.onPause, c.checkPause) },
		func() error { return handle(ctx, contract.MessageResume, c.onResume, c.checkResume) },
		func() error { return handle(ctx, contract.MessageTrigger, c.onTrigger, c.checkTrigger) },
		func() error { return handle(ctx, contract.MessageSetJob, c.onSetJob, c.checkSetJob) },
	} {
		if err := install(); err != nil {
			return err
		}
	}
	return nil
}

func (c *continuous) onStop(in contract.StopRequest) contract.ContinuousState {
	c.Stop, c.StopReason, c.Deleted, c.Phase = true, job.Cut(in.Reason, maxPauseReason), in.Delete, contract.PhaseStopping
	return c.ContinuousState
}

func (c *continuous) onRestart(contract.RestartRequest) contract.ContinuousState {
	c.Restart, c.Trigger = true, true
	return c.ContinuousState
}

func (c *continuous) onPause(in contract.PauseRequest) contract.ContinuousAnswer {
	before, reason := c.before(false), ""
	if c.Paused && !c.PausedItself { // Else it becomes a pause of the person.
		reason = c.PauseReason
	}
	c.setPause(true, contract.AddReason(reason, in.Reason))
	c.PauseEnd = in.End
	return c.answer(before)
}

func (c *continuous) onResume(contract.ResumeRequest) contract.ContinuousAnswer {
	before := c.before(false)
	c.resume()
	return c.answer(before)
}

// resume ends all pauses of the job, and forgets its failures.
func (c *continuous) resume() {
	c.setPause(false, "")
	c.forgetFailures()
}

// setPause sets whether people have paused the job. Such a pause has no end of its own.
func (c *continuous) setPause(paused bool, reason string) {
	c.Paused, c.PauseReason, c.PauseEnd, c.PausedItself = paused, reason, time.Time{}, false
}

func (c *continuous) onTrigger(contract.TriggerRequest) contract.ContinuousState {
	c.Trigger = true
	return c.ContinuousState
}

func (c *continuous) onSetJob(in contract.SetJobRequest) contract.ContinuousState {
	switch {
	case in.Job.Options.Paused != c.Job.Options.Paused:
		c.setPause(in.Job.Options.Paused, "")
		if c.Paused {
			c.PauseReason = "paused in its definition"
		}
	case in.EndFailurePause && c.PausedItself:
		c.setPause(false, "")
	}
	c.Job = in.Job
	c.unpublished = true
	c.forgetFailures()
	c.Restart = c.Restart || in.Restart
	return c.ContinuousState
}

// run is the one loop that decides what comes next, until the job is stopped or the
// history has grown enough.
func (c *continuous) run(ctx workflow.Context) (*contract.ContinuousOutput, error) {
	for {
		if err := c.publish(ctx); err != nil {
			return nil, err
		}
		if err := c.publishFailing(ctx); err != nil {
			return nil, err
		}
		switch {
		case c.Stop || ctx.Err() != nil:
			return c.finish(ctx)
		case c.endsRun(ctx):
			c.Generation++
			return nil, continueAsNew(ctx, contract.ContinuousJobType, c.ContinuousState)
		case c.Paused:
			if err := c.pause(ctx); err != nil {
				return nil, err
			}
		case !c.Trigger && workflow.Now(ctx).Before(c.due()):
			c.sleep(ctx)
		default:
			if err := c.iterate(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// endsRun reports whether it is time to continue as new. Handlers never wait, so none is ever
// unfinished here.
func (c *continuous) endsRun(ctx workflow.Context) bool {
	return mustContinueAsNew(ctx) || c.iterationsInRun >= maxIterationsPerRun
}

func (c *continuous) enter(ctx workflow.Context, phase contract.Phase) {
	c.Phase = phase
	c.show(ctx)
}

// show sets what people see of the job.
func (c *continuous) show(ctx workflow.Context) {
	workflow.SetCurrentDetails(ctx, c.details())
}

// await waits for a message or for a cancel request, on which run acts next.
func (c *continuous) await(ctx workflow.Context, condition func() bool) {
	if err := workflow.Await(ctx, condition); err != nil {
		workflow.GetLogger(ctx).Info("canceled while waiting", "JobID", c.Job.ID)
	}
}

// awaitUntil is await that ends at a time too, and reports whether it was that.
func (c *continuous) awaitUntil(ctx workflow.Context, end time.Time, summary string, condition func() bool) bool {
	met, err := workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout: end.Sub(workflow.Now(ctx)), TimerOptions: workflow.TimerOptions{Summary: summary},
	}, condition)
	if err != nil {
		workflow.GetLogger(ctx).Info("canceled while waiting", "JobID", c.Job.ID)
	}
	return err == nil && !met
}

// pause waits until the job is resumed or stopped, or its pause ends.
func (c *continuous) pause(ctx workflow.Context) error {
	now := contract.Pause{Paused: true, Reason: c.PauseReason, End: c.PauseEnd, Itself: c.PausedItself}
	c.enter(ctx, contract.PhasePaused)
	if err := c.publishPause(ctx, now); err != nil {
		return err
	}
	changed := func() bool {
		return c.Stop || !c.Paused || c.PauseReason != now.Reason || !c.PauseEnd.Equal(now.End) || c.PausedItself != now.Itself || c.unpublished ||
			changesBuild(ctx)
	}
	if now.End.IsZero() {
		c.await(ctx, changed)
	} else if c.awaitUntil(ctx, now.End, "until the pause ends", changed) {
		c.resume()
	}
	if c.Paused {
		return nil // Stopped, canceled, or paused for another reason.
	}
	c.EndedAt = time.Time{} // Resumed: go on at once.
	return c.publishPause(ctx, contract.Pause{})
}

func (c *continuous) publishPause(ctx workflow.Context, p contract.Pause) error {
	if err := workflow.UpsertMemo(ctx, map[string]any{contract.MemoPaused: p}); err != nil {
		return fmt.Errorf("publish the pause of job %s: %w", c.Job.ID, err)
	}
	return nil
}

func (c *continuous) sleep(ctx workflow.Context) {
	phase := contract.PhaseWaiting
	if c.ConsecutiveFailures > 0 {
		phase = contract.PhaseFailing
	}
	due := c.due()
	c.NextAt = due
	c.enter(ctx, phase)
	c.awaitUntil(ctx, due, "until the next iteration", func() bool {
		return c.Stop || c.Paused || c.Trigger || c.unpublished || !c.due().Equal(due) || changesBuild(ctx)
	})
	c.NextAt = time.Time{}
}

func (c *continuous) iterate(ctx workflow.Context) error {
	c.Trigger, c.Restart = false, false
	c.iterationsInRun++
	it := contract.Iteration{Number: c.Iterations + 1, Start: workflow.Now(ctx)}
	in := contract.ActivityInput{
		Job:    c.Job,
		RunID:  fmt.Sprintf("%s/%d", workflow.GetInfo(ctx).FirstRunID, it.Number),
		Cursor: c.Cursor,
	}
	c.enter(ctx, contract.PhaseRunning)
	future, cancel := c.startActivity(ctx, &in)
	defer cancel()
	if err := c.attend(ctx, future); err != nil {
		return err
	}
	if !future.IsReady() {
		cancel()
	}
	output, err := endActivity(ctx, future)
	it.Duration = job.Duration(workflow.Now(ctx).Sub(it.Start))
	c.Cursor = in.Cursor
	if len(output.Result.Cursor) > 0 {
		c.Cursor = output.Result.Cursor
	}
	it.Worker, it.Message, it.Counts, it.Stopped = output.Worker, output.Result.Message, output.Result.Counts, output.Stopped
	if err != nil {
		it.Class, it.Error, it.Lost = contract.ErrorClass(err), contract.ErrorReason(err), lostIteration(err)
	}
	c.record(it)
	if c.exhausted() {
		c.pauseItself(it.Error)
	}
	c.EndedAt = workflow.Now(ctx)
	if it.Stopped || c.tookServiceDown(err) {
		// Restarted, handed back by a worker that shuts down, or to be failed over:
		// go on at once.
		c.EndedAt = time.Time{}
	}
	return nil
}

// tookServiceDown reports whether a bound job's service died during the iteration. When
// it happens again the job backs off, as it does after failures.
func (c *continuous) tookServiceDown(err error) bool {
	_, lost := lostWorker(err)
	return lost && len(c.Job.Options.Bind) > 0 && c.ConsecutiveLost == 1
}

// startActivity starts an iteration. When it has ended, the input holds the last
// cursor that a service left which went away.
func (c *continuous) startActivity(ctx workflow.Context, in *contract.ActivityInput) (workflow.Future, workflow.CancelFunc) {
	activityCtx, cancel := workflow.WithCancel(ctx)
	if len(in.Job.Options.Bind) > 0 {
		return c.binding.start(activityCtx, in.Job, &attempts{limit: 1}, in), cancel
	}
	return workflow.ExecuteActivity(withJobActivity(activityCtx, in.Job, 1), in.Job.Type, *in), cancel
}

// attend waits until the iteration has ended or should end.
func (c *continuous) attend(ctx workflow.Context, iteration workflow.Future) error {
	for {
		c.await(ctx, func() bool {
			return iteration.IsReady() || c.Stop || c.Paused || c.Restart || c.unpublished || changesBuild(ctx)
		})
		if !c.unpublished {
			return nil
		}
		if err := c.publish(ctx); err != nil {
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

func (c *continuous) finish(ctx workflow.Context) (*contract.ContinuousOutput, error) {
	c.enter(ctx, contract.PhaseStopped)
	output := &contract.ContinuousOutput{
		Iterations: c.Iterations, Failed: c.Failed, Interrupted: c.Interrupted, LostWorkers: c.LostWorkers,
		Totals: c.Totals, Reason: c.StopReason, Cursor: c.Cursor,
	}
	if !c.Stop {
		return nil, temporal.NewCanceledError(*output)
	}
	stopped := contract.Stopped{Reason: c.StopReason, Deleted: c.Deleted}
	if err := workflow.UpsertMemo(ctx, map[string]any{contract.MemoStopped: stopped}); err != nil {
		return nil, fmt.Errorf("publish why job %s was stopped: %w", c.Job.ID, err)
	}
	return output, nil
}

// publish makes the definition that is in force findable and readable from
// outside, if it is not what was published last.
func (c *continuous) publish(ctx workflow.Context) error {
	c.unpublished = false
	j := c.Job
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
