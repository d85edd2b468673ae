package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
)

func (i *invocation) deadLettersCommand() *cobra.Command {
	return group("dead", "List, retry and drop the dead letters of a queue: its items that failed",
		i.deadListCommand(), i.deadRetryCommand(), i.deadDropCommand())
}

// deadList is the dead letters of a queue, as JSON.
type deadList struct {
	DeadLetters []contract.DeadLetter `json:"dead_letters"`
	Dropped     int64                 `json:"dropped"` // older ones, beyond the limit of 100
}

func (i *invocation) deadListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list QUEUE",
		Short: "List the items of a queue that failed",
		Long: `list shows the items of a queue that failed, the latest first. A queue keeps the
latest 100 and counts the older ones; runs list --queue lists all runs.`,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			state, err := c.Queues.State(cmd.Context(), args[0])
			if err != nil {
				return aboutQueue(c, args[0], err)
			}
			letters := slices.Clone(state.DeadLetters)
			slices.Reverse(letters)
			i.noteEmpty("dead letter", len(letters))
			return i.emit(deadList{list(letters), state.DeadDropped}, func(w io.Writer) error {
				t := newTable("NUMBER", "JOB", "FAILED", "ERROR")
				for _, letter := range letters {
					t.add(fmt.Sprint(letter.Sequence), letter.JobID, i.when(letter.Ended), letter.Error)
				}
				if state.DeadDropped > 0 {
					t.add("...", fmt.Sprintf("and %d older ones that were dropped", state.DeadDropped), "", "")
				}
				return t.write(w)
			})
		},
	}
}

func (i *invocation) deadRetryCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "retry QUEUE [JOB...]",
		Short: "Enqueue failed items again",
		Long: `retry enqueues failed jobs again, at the end of their queue, and removes them from
the dead letters. Each continues at its last checkpoint. If a job failed with several
specs, only the first is enqueued. A job whose definition is no longer stored, or
would be refused, stays a dead letter and is named; the others are retried.`,
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, letters, err := i.chosenDead(cmd, args, all)
			if err != nil {
				return err
			}
			receipts, err := i.retryDead(cmd.Context(), c, args[0], letters)
			if len(receipts) > 0 || err == nil {
				if failed := i.emit(list(receipts), func(w io.Writer) error { return writeReceipts(w, receipts) }); failed != nil {
					return failed
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters of the queue")
	return cmd
}

func (i *invocation) retryDead(ctx context.Context, c *client.Client, queue string, letters []contract.DeadLetter) ([]placed, error) {
	line := i.newProgress()
	defer line.clear()
	began := time.Now()
	outcome, err := c.Queues.RetryDead(ctx, queue, letters, func(done, all int) {
		if line.terminal {
			line.show(fmt.Sprintf("%d of %d in queue %s", done, all, queue), time.Since(began))
		}
	})
	line.clear()
	all := make([]placed, len(outcome.Receipts))
	for n, receipt := range outcome.Receipts {
		all[n] = placed{outcome.Retried[n].JobID, receipt}
	}
	for _, letter := range outcome.Later {
		i.note("Dead letter %d of job %s is left: another one of the job has another spec; retry this one when the job has ended.", letter.Sequence, letter.JobID)
	}
	for _, left := range outcome.Left {
		i.note("Dead letter %d of job %s is left: %s.", left.DeadLetter.Sequence, left.DeadLetter.JobID, left.Why)
	}
	if err == nil && len(outcome.Left) > 0 {
		err = fmt.Errorf("%d of %s of queue %s cannot be retried", len(outcome.Left), plural(len(outcome.Left)+len(outcome.Retried), "dead letter", "dead letters"), queue)
	}
	return all, err
}

func (i *invocation) deadDropCommand() *cobra.Command {
	var all, yes bool
	cmd := &cobra.Command{
		Use:               "drop QUEUE [JOB...]",
		Short:             "Delete dead letters",
		Long:              "drop deletes dead letters of a queue. It asks first. Their runs stay in runs list.",
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, letters, err := i.chosenDead(cmd, args, all)
			if err != nil {
				return err
			}
			if len(letters) > 0 && !yes {
				question := fmt.Sprintf("Drop %s of queue %s?", plural(len(letters), "dead letter", "dead letters"), args[0])
				if err := i.ask(cmd.Context(), question, "dead drop", "to drop dead letters", "nothing was dropped"); err != nil {
					return err
				}
			}
			dropped := 0
			if len(letters) > 0 {
				sequences := make([]int64, len(letters))
				for n, letter := range letters {
					sequences[n] = letter.Sequence
				}
				if dropped, err = c.Queues.DropDead(cmd.Context(), args[0], sequences); err != nil {
					return err
				}
			}
			return i.emit(contract.DropDeadReceipt{Dropped: dropped}, func(io.Writer) error {
				return i.print("Queue %s: %s dropped.", args[0], plural(dropped, "dead letter", "dead letters"))
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters of the queue")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// chosenDead returns the dead letters of the jobs in the arguments, or all of the queue.
func (i *invocation) chosenDead(cmd *cobra.Command, args []string, all bool) (*client.Client, []contract.DeadLetter, error) {
	switch {
	case len(args) == 0:
		return nil, nil, misuse(cmd, "QUEUE is missing")
	case all == (len(args) > 1):
		return nil, nil, misuse(cmd, "name jobs, or give --all")
	}
	c, err := i.connect(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	state, err := c.Queues.State(cmd.Context(), args[0])
	if err != nil {
		return nil, nil, aboutQueue(c, args[0], err)
	}
	if all {
		return c, state.DeadLetters, nil
	}
	var letters []contract.DeadLetter
	for _, jobID := range args[1:] {
		before := len(letters)
		for _, letter := range state.DeadLetters {
			if letter.JobID == jobID {
				letters = append(letters, letter)
			}
		}
		if len(letters) == before {
			return nil, nil, fmt.Errorf("queue %s has no dead letter of job %s; starter queues dead list %s shows those there are", args[0], jobID, args[0])
		}
	}
	return c, letters, nil
}
