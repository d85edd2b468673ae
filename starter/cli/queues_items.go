package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
)

func (i *invocation) queuesPeekCommand() *cobra.Command {
	var from, limit int
	cmd := &cobra.Command{
		Use:   "peek QUEUE",
		Short: "List the waiting items of a queue",
		Long: `peek lists the waiting items of a queue in the order in which they will run, those
in overflow pages included. AHEAD is how many run before.`,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 || from < 0 {
				return misuse(cmd, "--from and --limit are not negative")
			}
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			items, err := c.Queues.Peek(cmd.Context(), args[0], from, limit)
			if err != nil {
				return aboutQueue(c, args[0], err)
			}
			i.noteEmpty("item", len(items))
			return i.emit(list(items), func(w io.Writer) error {
				t := newTable("AHEAD", "NUMBER", "JOB", "ACCEPTED")
				for _, item := range items {
					t.add(fmt.Sprint(item.Ahead), fmt.Sprint(item.Sequence), item.Job.ID, i.when(item.Accepted))
				}
				return t.write(w)
			})
		},
	}
	cmd.Flags().IntVar(&from, "from", 0, "skip this many items")
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most this many items; 0: all")
	return cmd
}

func (i *invocation) queuesCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel QUEUE JOB",
		Short: "Remove a job from a queue",
		Long: `cancel removes a waiting job from a queue. The handler of a running job is asked to
stop and has its grace period; the next item starts when the job has ended.`,
		Args:              arguments("QUEUE", "JOB"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			receipt, err := c.Queues.CancelItem(cmd.Context(), args[0], args[1])
			if err != nil {
				return aboutItem(c, args[0], args[1], err)
			}
			return i.emit(receipt, func(io.Writer) error {
				if receipt.Running {
					return i.print("Job %s is running in queue %s: stop requested.", args[1], args[0])
				}
				return i.print("Job %s: removed from queue %s.", args[1], args[0])
			})
		},
	}
}

func (i *invocation) queuesMoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "move QUEUE JOB",
		Short:             "Move a waiting job to the front of its queue",
		Long:              "move makes a waiting job the next one of its queue. The running item continues.",
		Args:              arguments("QUEUE", "JOB"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			summary, err := c.Queues.MoveToFront(cmd.Context(), args[0], args[1])
			if err != nil {
				return aboutItem(c, args[0], args[1], err)
			}
			return i.emit(summary, func(io.Writer) error {
				return i.print("Job %s: the next one of queue %s, %d waiting.", args[1], args[0], summary.Waiting)
			})
		},
	}
}

// aboutItem adds what to do to an error about a job that is not in a queue.
func aboutItem(c *client.Client, queue, jobID string, err error) error {
	switch {
	case errors.Is(err, client.ErrNotInQueue):
		return fmt.Errorf("job %s is not in queue %s; starter queues peek %s lists the waiting items", jobID, queue, queue)
	case errors.Is(err, client.ErrNotFound):
		return aboutQueue(c, queue, err)
	}
	return err
}

func (i *invocation) queuesSetCommand() *cobra.Command {
	var policy job.OnFailure
	cmd := &cobra.Command{
		Use:   "set QUEUE --on-failure WORD",
		Short: "Set what the failure of an item does to a queue",
		Long: `set sets what a queue does when an item fails: continue with the next item, or halt
until the queue is resumed or the item skipped. on_failure in a job's table queued
overrides it for that job. A queue that does not exist is created.`,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			if policy == "" {
				return misuse(cmd, "--on-failure is missing")
			}
			if err := job.CheckKey("queue", args[0]); err != nil {
				return err
			}
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			summary, err := c.Queues.SetOnFailure(cmd.Context(), args[0], policy)
			if err != nil {
				return err
			}
			return i.emit(summary, func(io.Writer) error { return i.print("Queue %s: on failure %s.", args[0], policy) })
		},
	}
	cmd.Flags().Var(choose(&policy, job.OnFailureContinue, job.OnFailureHalt), "on-failure", "continue or halt")
	completeFixed(cmd, "on-failure", string(job.OnFailureContinue), string(job.OnFailureHalt))
	return cmd
}
