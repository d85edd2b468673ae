package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) deadLettersCommand() *cobra.Command {
	return group("dead", "List, retry and drop the dead letters of a queue: its items that failed",
		i.deadListCommand(), i.deadRetryCommand(), i.deadDropCommand())
}

func (i *invocation) deadListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list QUEUE",
		Short: "List the items of a queue that failed",
		Long: `list shows the items of a queue that failed, the latest first. A queue keeps the
latest 100 and counts the older ones; runs list --queue lists all runs. With -o json
the oldest comes first.`,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			clients, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			answer, err := clients.Queues.ListDeadLetters(cmd.Context(), &jobsv1.ListDeadLettersRequest{Queue: args[0]})
			if err != nil {
				return aboutQueue(err)
			}
			i.noteEmpty("dead letter", len(answer.GetDeadLetters()))
			return i.emit(answer, func(w io.Writer) error {
				t := newTable("NUMBER", "JOB", "FAILED", "ERROR")
				for _, letter := range slices.Backward(answer.GetDeadLetters()) {
					t.add(fmt.Sprint(letter.GetSequence()), letter.GetJobId(), i.when(toTime(letter.GetEndTime())), letter.GetErrorMessage())
				}
				if answer.GetDropped() > 0 {
					t.add("...", fmt.Sprintf("and %d older ones that were dropped", answer.GetDropped()), "", "")
				}
				return t.write(w)
			})
		},
	}
}

func (i *invocation) deadRetryCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "retry QUEUE [JOB|NUMBER...]",
		Short: "Enqueue failed items again",
		Long: `retry enqueues failed jobs again, at the end of their queue, and removes them from
the dead letters. Each continues at its last checkpoint. If a job failed with several
specs, only the first is enqueued. NUMBER is the number that dead list shows. A job whose definition is no longer stored, or
would be refused, stays a dead letter and is named; the others are retried.`,
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			clients, sequences, err := i.chosenDead(cmd, args, all)
			if err != nil {
				return err
			}
			answer := &jobsv1.RetryDeadLettersResponse{}
			if len(sequences) > 0 {
				answer, err = clients.Queues.RetryDeadLetters(cmd.Context(), &jobsv1.RetryDeadLettersRequest{Queue: args[0], Sequences: sequences})
				if err != nil {
					return aboutQueue(err)
				}
			}
			return i.reportRetry(args[0], answer)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters of the queue")
	return cmd
}

func (i *invocation) reportRetry(queue string, answer *jobsv1.RetryDeadLettersResponse) error {
	for _, letter := range answer.GetLater() {
		i.note("Dead letter %d of job %s is left: another one of the job has another spec; retry this one when the job has ended.", letter.GetSequence(), letter.GetJobId())
	}
	for _, letter := range answer.GetLeft() {
		i.note("Dead letter %d of job %s is left: %s.", letter.GetSequence(), letter.GetJobId(), clean(letter.GetErrorMessage()))
	}
	err := i.emit(answer, func(w io.Writer) error {
		places := make([]placed, len(answer.GetPlaces()))
		for n, place := range answer.GetPlaces() {
			places[n] = placed{jobID: answer.GetRetried()[n].GetJobId(), place: place}
		}
		return writePlaces(w, places)
	})
	if left := len(answer.GetLeft()); err == nil && left > 0 {
		err = fmt.Errorf("%d of %s of queue %s cannot be retried", left, plural(left+len(answer.GetRetried()), "dead letter", "dead letters"), queue)
	}
	return err
}

func (i *invocation) deadDropCommand() *cobra.Command {
	var all, yes bool
	cmd := &cobra.Command{
		Use:               "drop QUEUE [JOB|NUMBER...]",
		Short:             "Delete dead letters",
		Long:              "drop deletes dead letters of a queue, by their jobs or by the numbers that\ndead list shows. It asks first. Their runs stay in runs list.",
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			clients, sequences, err := i.chosenDead(cmd, args, all)
			if err != nil {
				return err
			}
			answer := &jobsv1.DropDeadLettersResponse{}
			if len(sequences) > 0 {
				if !yes {
					question := fmt.Sprintf("Drop %s of queue %s?", plural(len(sequences), "dead letter", "dead letters"), args[0])
					if err := i.ask(cmd.Context(), question, "dead drop", "to drop dead letters", "nothing was dropped"); err != nil {
						return err
					}
				}
				answer, err = clients.Queues.DropDeadLetters(cmd.Context(), &jobsv1.DropDeadLettersRequest{Queue: args[0], Sequences: sequences})
				if err != nil {
					return aboutQueue(err)
				}
			}
			return i.emit(answer, func(io.Writer) error {
				return i.print("Queue %s: %s dropped.", args[0], plural(int(answer.GetDropped()), "dead letter", "dead letters"))
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters of the queue")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// isLetter says that an argument names a dead letter: by its job, or by its number. The id
// of a job has a dot, and so is no number.
func isLetter(l *jobsv1.DeadLetter, arg string) bool {
	return arg == l.GetJobId() || arg == strconv.FormatInt(l.GetSequence(), 10)
}

// chosenDead gives the numbers of the dead letters that the arguments name, or of all of the
// queue.
func (i *invocation) chosenDead(cmd *cobra.Command, args []string, all bool) (*api.Clients, []int64, error) {
	switch {
	case len(args) == 0:
		return nil, nil, misuse(cmd, "QUEUE is missing")
	case all == (len(args) > 1):
		return nil, nil, misuse(cmd, "give JOB or NUMBER, or --all")
	}
	clients, err := i.api(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	answer, err := clients.Queues.ListDeadLetters(cmd.Context(), &jobsv1.ListDeadLettersRequest{Queue: args[0]})
	if err != nil {
		return nil, nil, aboutQueue(err)
	}
	var sequences []int64
	for _, letter := range answer.GetDeadLetters() {
		if all || slices.ContainsFunc(args[1:], func(arg string) bool { return isLetter(letter, arg) }) {
			sequences = append(sequences, letter.GetSequence())
		}
	}
	for _, arg := range args[1:] {
		if !slices.ContainsFunc(answer.GetDeadLetters(), func(l *jobsv1.DeadLetter) bool { return isLetter(l, arg) }) {
			which := "of job " + arg
			if _, err := strconv.ParseInt(arg, 10, 64); err == nil {
				which = arg
			}
			return nil, nil, fmt.Errorf("queue %s has no dead letter %s; starter queues dead list %s shows those there are", args[0], which, args[0])
		}
	}
	return clients, sequences, nil
}
