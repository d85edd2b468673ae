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
		Short: "Show what waits in a queue, from any place on",
		Long: `peek shows the items that wait in a queue, in the order they will run, however
many there are. AHEAD is how many run before.`,
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
	cmd.Flags().IntVar(&from, "from", 0, "leave out so many items that come before")
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most so many items; 0: all")
	return cmd
}

func (i *invocation) queuesCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel QUEUE JOB",
		Short: "Take a job out of a queue",
		Long: `cancel takes a waiting job out of a queue. One that runs is asked to stop: its
handler has its grace period, and the next item starts when it has ended.`,
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
					return i.print("Job %s runs in queue %s: told to stop.", args[1], args[0])
				}
				return i.print("Job %s: taken out of queue %s.", args[1], args[0])
			})
		},
	}
}

func (i *invocation) queuesMoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "move QUEUE JOB",
		Short:             "Move a waiting job to the front of its queue",
		Long:              "move makes a waiting job the next one of its queue. What runs goes on.",
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

// aboutItem makes an error about a job that is not in a queue say so.
func aboutItem(c *client.Client, queue, jobID string, err error) error {
	switch {
	case errors.Is(err, client.ErrNotInQueue):
		return fmt.Errorf("job %s is not in queue %s; starter queues peek %s shows what waits", jobID, queue, queue)
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
		Long: `set says what the failure of an item does to a queue: continue with the next item,
or halt until someone resumes or skips. It holds until it is set again. A job that
says it itself, with on_failure in its table queued, comes first. A queue that is
not there is made.`,
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
