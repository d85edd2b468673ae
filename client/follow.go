package client

import (
	"context"
	"errors"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// pollInterval is how often what is followed is looked at.
const pollInterval = 500 * time.Millisecond

// TriggerIteration starts the next iteration of a continuous job without
// waiting for its interval, and gives the number of that iteration. One that
// runs now is let finish first.
func (c *JobClient) TriggerIteration(ctx context.Context, jobID string) (number int64, err error) {
	state, err := c.triggerLoop(ctx, jobID)
	if err != nil {
		return 0, err
	}
	if state.Phase == contract.PhaseRunning {
		return state.Iterations + 2, nil
	}
	return state.Iterations + 1, nil
}

// FollowIteration waits until an iteration of a continuous job has ended, and
// reports the job's state as it goes. While no worker answers, it reports nil.
// Of an iteration so many others ago that the job has forgotten it, only the
// number is given. It is an error when the job stops or pauses before.
func (c *RunClient) FollowIteration(ctx context.Context, jobID string, number int64, report func(*contract.ContinuousState)) (*contract.Iteration, error) {
	for {
		state, err := c.continuousState(ctx, jobID)
		if ctx.Err() != nil {
			return nil, ctx.Err() // Nobody had the time to answer.
		}
		if err != nil && !errors.Is(err, ErrNoWorker) {
			return nil, err
		}
		if state != nil && state.Iterations >= number {
			for _, iteration := range state.Recent {
				if iteration.Number == number {
					return &iteration, nil
				}
			}
			return &contract.Iteration{Number: number}, nil
		}
		if state != nil && (state.Phase == contract.PhaseStopped || state.Phase == contract.PhasePaused) {
			return nil, stateErrorf("job %s was %s before iteration %d", jobID, state.Phase, number)
		}
		report(state)
		if err := pause(ctx, pollInterval); err != nil {
			return nil, err
		}
	}
}

// Turn is what became of an item of a queue: its run, once it has started, and
// how it ended, if it has left the queue. The run of an item that was skipped as a
// repeat is the one that did its work.
type Turn struct {
	Run      *RunRef
	Finished *contract.FinishedItem
}

// repeats reports whether the item was skipped before its turn: its job was in the queue
// already, with the same spec, when it was put in.
func (t *Turn) repeats() bool {
	return t.Finished != nil && t.Finished.Status == contract.ItemSkipped && t.Finished.Started.IsZero()
}

// AwaitTurn waits until it is an item's turn in its queue, or until it has left
// the queue, and reports how many items are ahead, -1 while no worker answers. If the item
// is a repeat of an earlier one, it waits for the turn of that. It is an error when the
// queue's workflow has ended. It is also one when the item has left the queue without a
// run, and so many others have since that the queue does not know how.
func (c *QueueClient) AwaitTurn(ctx context.Context, j job.Job, sequence int64, report func(ahead int)) (Turn, error) {
	item := contract.QueueItem{Job: j, Sequence: sequence}
	for {
		at, err := c.Get(ctx, j.Queue())
		if ctx.Err() != nil {
			return Turn{}, ctx.Err() // Nobody had the time to answer.
		}
		if err != nil && !errors.Is(err, ErrNoWorker) {
			return Turn{}, err
		}
		ahead := -1
		if at != nil {
			var turn *Turn
			var forgotten bool
			turn, ahead, forgotten = turnOf(at.state, j.ID, item.Sequence)
			switch {
			case forgotten:
				return c.forgottenTurn(ctx, at.state, item)
			case turn != nil && turn.repeats():
				if earlier := earlierItem(at.state, item); earlier != 0 {
					item.Sequence = earlier
					continue
				}
				turn.Run, err = c.runInPlaceOf(ctx, at.state, item)
				return *turn, err
			case turn != nil:
				return *turn, nil
			}
			if err := at.Err(); err != nil {
				return Turn{}, err
			}
		}
		report(ahead)
		if err := pause(ctx, pollInterval); err != nil {
			return Turn{}, err
		}
	}
}

// earlierItem is the number of the item that an item is a repeat of, if that runs or
// waits; else 0.
func earlierItem(state *contract.QueueState, item contract.QueueItem) int64 {
	held := state.Waiting
	if state.Running != nil {
		held = append([]contract.QueueItem{state.Running.QueueItem}, held...)
	}
	for _, earlier := range held {
		if earlier.Sequence < item.Sequence && earlier.Work() == item.Work() {
			return earlier.Sequence
		}
	}
	return 0
}

// turnOf finds an item in a queue's state. It gives a Turn when there is nothing
// more to wait for, and else how many items are ahead, or that the queue has
// forgotten the item.
func turnOf(state *contract.QueueState, jobID string, sequence int64) (turn *Turn, ahead int, forgotten bool) {
	ref := func(runID string) *RunRef {
		return &RunRef{WorkflowID: contract.JobWorkflowID(jobID), RunID: runID}
	}
	if running := state.Running; running != nil && running.Sequence == sequence {
		if running.RunID == "" {
			return nil, 0, false // Its run is being started.
		}
		return &Turn{Run: ref(running.RunID)}, 0, false
	}
	if ahead, waits := state.Position(sequence); waits {
		return nil, ahead, false
	}
	for _, item := range state.Recent {
		if item.Sequence == sequence {
			turn = &Turn{Finished: &item}
			if item.RunID != "" {
				turn.Run = ref(item.RunID)
			}
			return turn, 0, false
		}
	}
	return nil, 0, true
}

// forgottenTurn finds the run of an item that its queue has forgotten. The latest run
// of the job need not be it: the item may have left the queue without one.
func (c *conn) forgottenTurn(ctx context.Context, state *contract.QueueState, item contract.QueueItem) (Turn, error) {
	id := contract.JobWorkflowID(item.Job.ID)
	latest, err := c.temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil && !isNotFound(err) {
		return Turn{}, explain("describe the run of job "+item.Job.ID, err)
	}
	if info := latest.GetWorkflowExecutionInfo(); isRunOf(info, state.Instance, item.Sequence) {
		return Turn{Run: &RunRef{WorkflowID: id, RunID: info.GetExecution().GetRunId()}}, nil
	}
	var found *RunRef
	listed, err := c.becomes(ctx, func() (bool, error) { // The list lags.
		err := c.listWorkflows(ctx, "WorkflowId = "+quote(id), 0, func(info *workflowpb.WorkflowExecutionInfo) {
			if found == nil && isRunOf(info, state.Instance, item.Sequence) { // The latest comes first.
				found = &RunRef{WorkflowID: id, RunID: info.GetExecution().GetRunId()}
			}
		})
		return found != nil, err
	})
	if !listed && err == nil {
		found, err = c.runInPlaceOf(ctx, state, item)
	}
	if found == nil && err == nil {
		err = stateErrorf("item %d of queue %s, job %s, has left the queue without a run: it was canceled, purged, or skipped as a repeat",
			item.Sequence, state.Name, item.Job.ID)
	}
	return Turn{Run: found}, err
}

// isRunOf reports whether a run is that of an item.
func isRunOf(info *workflowpb.WorkflowExecutionInfo, instance string, sequence int64) bool {
	var of contract.ItemOfRun
	return temporalclient.MemoField(info.GetMemo(), contract.MemoItem, &of) && of.Instance == instance && of.Sequence == sequence
}

// runInPlaceOf finds the run that did the work of an item that was a repeat, nil if that
// is not the latest run of the job.
func (c *conn) runInPlaceOf(ctx context.Context, state *contract.QueueState, item contract.QueueItem) (*RunRef, error) {
	id := contract.JobWorkflowID(item.Job.ID)
	latest, err := c.temporal.DescribeWorkflowExecution(ctx, id, "")
	if err != nil && !isNotFound(err) {
		return nil, explain("describe the run of job "+item.Job.ID, err)
	}
	info := latest.GetWorkflowExecutionInfo()
	var of contract.ItemOfRun
	ran, ok := temporalclient.MemoDefinition(info.GetMemo())
	if !ok || !temporalclient.MemoField(info.GetMemo(), contract.MemoItem, &of) || !contract.IsRepeat(item, state.Instance, of, ran) {
		return nil, nil //nolint:nilnil // Documented: it is not known.
	}
	return &RunRef{WorkflowID: id, RunID: info.GetExecution().GetRunId()}, nil
}

// pause waits, or gives the error of a context that ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
