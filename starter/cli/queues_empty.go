package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) queuesDrainCommand() *cobra.Command {
	var detach bool
	cmd := &cobra.Command{
		Use:   "drain QUEUE",
		Short: "Refuse new items and run those that wait",
		Long: `drain makes a queue refuse new items, and waits until its items have run. The queue
refuses items until it is resumed, even if the wait is interrupted.`,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			clients, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			answer, err := clients.Queues.DrainQueue(cmd.Context(), &jobsv1.DrainQueueRequest{Queue: args[0]})
			if err != nil {
				return aboutQueue(err)
			}
			if detach {
				return i.emit(answer, func(io.Writer) error {
					return i.print("Queue %s: draining, %d waiting.", args[0], answer.GetSummary().GetWaiting())
				})
			}
			queue, err := i.awaitEmpty(cmd.Context(), clients, args[0])
			if err != nil {
				return aboutQueue(err)
			}
			return i.emit(queue, func(io.Writer) error {
				return i.print("Queue %s: empty (%s). It refuses items until it is resumed.", args[0], endedText(queue.GetQueue()))
			})
		},
	}
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait until the queue is empty")
	return cmd
}

// waitPoll is how often commands look at what they wait for.
const waitPoll = 500 * time.Millisecond

// awaitEmpty waits until a queue is empty, and shows its progress.
func (i *invocation) awaitEmpty(ctx context.Context, clients *api.Clients, name string) (*jobsv1.GetQueueResponse, error) {
	line := i.newProgress()
	defer line.clear()
	began := time.Now()
	tick := time.NewTicker(waitPoll)
	defer tick.Stop()
	for {
		answer, err := clients.Queues.GetQueue(ctx, &jobsv1.GetQueueRequest{Name: name})
		reason, _ := api.InfoOf(err)
		if err != nil && reason != jobsv1.ErrorReason_ERROR_REASON_NO_WORKER {
			return nil, err
		}
		queue := answer.GetQueue()
		switch {
		case queue.GetEnd() != nil:
			return nil, errors.New(endedQueue(queue))
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
	var yes bool
	cmd := &cobra.Command{
		Use:   "purge QUEUE",
		Short: "Remove the waiting items of a queue",
		Long: `purge removes all waiting items of a queue, or those with the numbers --from to --to,
both included. It asks first, unless there are none. The running item continues, and
new items are still accepted.`,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			if from < 0 || to < 0 || to > 0 && from > to {
				return misuse(cmd, "--from %d to --to %d is not a range of numbers", from, to)
			}
			clients, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			queue, err := clients.Queues.GetQueue(cmd.Context(), &jobsv1.GetQueueRequest{Name: args[0]})
			if err != nil {
				return aboutQueue(err)
			}
			request := &jobsv1.PurgeQueueRequest{Queue: args[0], FirstSequence: from, LastSequence: to}
			answer, err := clients.Queues.PurgeQueue(cmd.Context(), request)
			if err != nil {
				return aboutQueue(err)
			}
			if n := int(answer.GetPurgeCount()); n > 0 {
				if !yes {
					question := fmt.Sprintf("Remove %s of %d from queue %s?", plural(n, "waiting item", "waiting items"), queue.GetQueue().GetWaiting(), args[0])
					if err := i.ask(cmd.Context(), question, "purge", "to purge the queue", "nothing was removed"); err != nil {
						return err
					}
				}
				if request.Force = true; to == 0 {
					request.LastSequence = queue.GetQueue().GetAccepted() // Not the items that were accepted after the question.
				}
				if answer, err = clients.Queues.PurgeQueue(cmd.Context(), request); err != nil {
					return aboutQueue(err)
				}
			}
			return i.emit(answer, func(io.Writer) error {
				return i.print("Queue %s: %s removed.", args[0], plural(int(answer.GetPurgeCount()), "item", "items"))
			})
		},
	}
	cmd.Flags().Int64Var(&from, "from", 0, "remove items from this number on")
	cmd.Flags().Int64Var(&to, "to", 0, "remove items up to this number")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}
