package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
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
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			summary, err := c.Queues.Drain(cmd.Context(), args[0])
			if err != nil {
				return aboutQueue(c, args[0], err)
			}
			if detach {
				return i.emit(summary, func(io.Writer) error { return i.print("Queue %s: draining, %d waiting.", args[0], summary.Waiting) })
			}
			if err := i.awaitEmpty(cmd.Context(), c, args[0]); err != nil {
				return err
			}
			queue, err := c.Queues.Get(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return i.emit(queue, func(io.Writer) error {
				return i.print("Queue %s: empty (%s). It refuses items until it is resumed.", args[0], endedText(queue))
			})
		},
	}
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait until the queue is empty")
	return cmd
}

// awaitEmpty waits until a queue is empty, and shows its progress.
func (i *invocation) awaitEmpty(ctx context.Context, c *client.Client, queue string) error {
	line := i.newProgress()
	defer line.clear()
	began := time.Now()
	return c.Queues.AwaitEmpty(ctx, queue, func(q *client.Queue) {
		switch {
		case q == nil:
			line.show("waiting for a worker", time.Since(began))
		case q.Halted != nil:
			line.show("halted: "+q.Halted.Reason, time.Since(began))
		case q.Paused:
			line.show(fmt.Sprintf("paused with %d waiting", q.Waiting), time.Since(began))
		case line.terminal:
			line.show(fmt.Sprintf("draining, %d waiting", q.Waiting), time.Since(began))
		}
	})
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
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			q, err := c.Queues.Get(cmd.Context(), args[0])
			if err != nil {
				return aboutQueue(c, args[0], err)
			}
			n := q.CountBetween(from, to)
			if n > 0 && !yes {
				question := fmt.Sprintf("Remove %s of %d from queue %s?", plural(n, "waiting item", "waiting items"), q.Waiting, args[0])
				if err := i.ask(cmd.Context(), question, "purge", "to purge the queue", "nothing was removed"); err != nil {
					return err
				}
			}
			if to == 0 {
				to = q.Accepted // Not the items that were accepted after the question.
			}
			removed := 0
			if n > 0 {
				if removed, err = c.Queues.Purge(cmd.Context(), args[0], from, to); err != nil {
					return err
				}
			}
			return i.emit(contract.PurgeReceipt{Removed: removed}, func(io.Writer) error {
				return i.print("Queue %s: %s removed.", args[0], plural(removed, "item", "items"))
			})
		},
	}
	cmd.Flags().Int64Var(&from, "from", 0, "remove items from this number on")
	cmd.Flags().Int64Var(&to, "to", 0, "remove items up to this number")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}
