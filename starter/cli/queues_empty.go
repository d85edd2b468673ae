package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

func (i *invocation) queuesDrainCommand() *cobra.Command {
	var detach bool
	cmd := i.verbCommand(verbs.DrainQueue, verbHelp{"Refuse new items and run those that wait", `drain makes a queue refuse new items, and waits until its items have run. The queue
refuses items until it is resumed, even if the wait is interrupted.`},
		func(ctx context.Context, a verbs.Args, _ bool) error {
			done, err := i.do(ctx, verbs.DrainQueue, a)
			if err != nil {
				return err
			}
			if detach {
				return i.tell(done)
			}
			queue, err := i.awaitEmpty(ctx, a.Names[0])
			if err != nil {
				return err
			}
			return i.emit(queue, func(io.Writer) error {
				return i.print("Queue %s: empty (%s). It refuses items until it is resumed.", a.Names[0], endedText(queue.GetQueue()))
			})
		}, "QUEUE")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait until the queue is empty")
	return cmd
}

// waitPoll is how often commands look at what they wait for.
const waitPoll = 500 * time.Millisecond

// awaitEmpty waits until a queue is empty, and shows its progress.
func (i *invocation) awaitEmpty(ctx context.Context, name string) (*jobsv1.GetQueueResponse, error) {
	line := i.newProgress()
	defer line.clear()
	began := time.Now()
	tick := time.NewTicker(waitPoll)
	defer tick.Stop()
	for {
		answer, err := i.api.Queues.GetQueue(ctx, &jobsv1.GetQueueRequest{Name: name})
		reason, _ := api.InfoOf(err)
		if err != nil && reason != jobsv1.ErrorReason_ERROR_REASON_NO_WORKER {
			return nil, err
		}
		queue := answer.GetQueue()
		switch {
		case queue.GetEnd() != nil:
			return nil, fmt.Errorf("queue %s does not run, its workflow has ended as %s: %s", name, api.Word(queue.GetEnd().GetStatus()), recovery(queue))
		case err != nil:
			line.show("waiting for a worker", time.Since(began))
		case queue.GetHalt() != nil:
			line.show("halted: "+queue.GetHalt().GetReason(), time.Since(began))
		case queue.GetRunning() == nil && queue.GetWaiting() == 0:
			return answer, nil
		case queue.GetPaused():
			line.show(fmt.Sprintf("paused with %d waiting", queue.GetWaiting()), time.Since(began))
		case line.terminal:
			line.show(fmt.Sprintf("draining, %d waiting", queue.GetWaiting()), time.Since(began))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (i *invocation) queuesPurgeCommand() *cobra.Command {
	var from, to int64
	cmd := i.verbCommand(verbs.PurgeQueue, verbHelp{"Remove the waiting items of a queue", `purge removes all waiting items of a queue, or those with the numbers --from to --to,
both included. It asks first, unless there are none. The running item continues, and
new items are still accepted.`},
		func(ctx context.Context, a verbs.Args, yes bool) error {
			return i.purge(ctx, a, &jobsv1.PurgeQueueRequest{FirstSequence: from, LastSequence: to}, yes)
		}, "QUEUE")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if from < 0 || to < 0 || to > 0 && from > to {
			return misuse(cmd, "--from %d to --to %d is not a range of numbers", from, to)
		}
		return nil
	}
	cmd.Flags().Int64Var(&from, "from", 0, "remove items from this number on")
	cmd.Flags().Int64Var(&to, "to", 0, "remove items up to this number")
	return cmd
}

// purge asks, unless yes is set or no item waits, and then removes the items of a range.
func (i *invocation) purge(ctx context.Context, a verbs.Args, items *jobsv1.PurgeQueueRequest, yes bool) error {
	queue, err := i.api.Queues.GetQueue(ctx, &jobsv1.GetQueueRequest{Name: a.Names[0]})
	if err != nil {
		return err
	}
	a.Preview, a.With = true, items
	preview, err := i.do(ctx, verbs.PurgeQueue, a)
	if err != nil {
		return err
	}
	answer, _ := preview.Answer.(*jobsv1.PurgeQueueResponse) // The row has this type.
	if answer.GetPurgeCount() > 0 && !yes {
		if err := i.ask(ctx, preview.Text, "purge", "to purge the queue", "nothing was removed"); err != nil {
			return err
		}
	}
	if a.Preview = false; items.GetLastSequence() == 0 {
		items.LastSequence = queue.GetQueue().GetAccepted() // Not the items that were accepted after the question.
	}
	if answer.GetPurgeCount() == 0 {
		return i.tell(verbs.PurgeQueue.Meaning(a, answer))
	}
	done, err := i.do(ctx, verbs.PurgeQueue, a)
	if err != nil {
		return err
	}
	return i.tell(done)
}
