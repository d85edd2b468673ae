package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
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
			answer, err := i.api.Queues.ListDeadLetters(cmd.Context(), &jobsv1.ListDeadLettersRequest{Queue: args[0]})
			if err != nil {
				return err
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
	return i.deadVerbCommand(verbs.RetryDeadLetters, verbHelp{"Enqueue failed items again", `retry enqueues failed jobs again, at the end of their queue, and removes them from
the dead letters. Each continues at its last checkpoint. If a job failed with several
specs, only the first is enqueued. NUMBER is the number that dead list shows. A job whose definition is no longer stored, or
would be refused, stays a dead letter and is named; the others are retried.`},
		&jobsv1.RetryDeadLettersResponse{}, func(queue string, done verbs.Done) error {
			answer, _ := done.Answer.(*jobsv1.RetryDeadLettersResponse) // The row has this type.
			return i.reportRetry(queue, answer)
		})
}

func (i *invocation) deadDropCommand() *cobra.Command {
	return i.deadVerbCommand(verbs.DropDeadLetters, verbHelp{"Delete dead letters", `drop deletes dead letters of a queue, by their jobs or by the numbers that
dead list shows. It asks first. Their runs stay in runs list.`},
		&jobsv1.DropDeadLettersResponse{}, func(_ string, done verbs.Done) error { return i.tell(done) })
}

// deadVerbCommand makes the command of a verb that is done to dead letters. If there are none, the
// answer is empty.
func (i *invocation) deadVerbCommand(v *verbs.Verb, help verbHelp, empty proto.Message, report func(queue string, done verbs.Done) error) *cobra.Command {
	var all bool
	var flags verbFlags
	cmd := &cobra.Command{
		Use: word(v) + " QUEUE [JOB|NUMBER...]", Short: help.short, Long: help.long, ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			letters, err := i.chosenDead(cmd, args, all)
			if err != nil {
				return err
			}
			a := flags.args(v, args[0])
			for _, letter := range letters {
				a.Sequences = append(a.Sequences, letter.GetSequence())
			}
			if len(letters) == 0 {
				return report(args[0], v.Meaning(a, empty))
			}
			if v.Asks() && !flags.yes {
				for _, letter := range letters {
					i.note("  %d %s", letter.GetSequence(), letter.GetJobId())
				}
				if err := i.ask(cmd.Context(), v.Ask(a), "dead "+word(v), "to "+word(v)+" dead letters", "nothing was done"); err != nil {
					return err
				}
			}
			done, err := i.do(cmd.Context(), v, a)
			if err != nil {
				return err
			}
			return report(args[0], done)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all dead letters of the queue")
	flags.register(cmd, v)
	if v.Asks() {
		flags.registerYes(cmd)
	}
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

// isLetter reports whether an argument names a dead letter: by its job, or by its number. The id
// of a job has a dot, and so is no number.
func isLetter(l *jobsv1.DeadLetter, arg string) bool {
	return arg == l.GetJobId() || arg == strconv.FormatInt(l.GetSequence(), 10)
}

// chosenDead gives the dead letters that the arguments name, or all of the queue.
func (i *invocation) chosenDead(cmd *cobra.Command, args []string, all bool) ([]*jobsv1.DeadLetter, error) {
	switch {
	case len(args) == 0:
		return nil, misuse(cmd, "QUEUE is missing")
	case all == (len(args) > 1):
		return nil, misuse(cmd, "give JOB or NUMBER, or --all")
	}
	answer, err := i.api.Queues.ListDeadLetters(cmd.Context(), &jobsv1.ListDeadLettersRequest{Queue: args[0]})
	if err != nil {
		return nil, err
	}
	var letters []*jobsv1.DeadLetter
	for _, letter := range answer.GetDeadLetters() {
		if all || slices.ContainsFunc(args[1:], func(arg string) bool { return isLetter(letter, arg) }) {
			letters = append(letters, letter)
		}
	}
	for _, arg := range args[1:] {
		if !slices.ContainsFunc(letters, func(l *jobsv1.DeadLetter) bool { return isLetter(l, arg) }) {
			which := "of job " + arg
			if _, err := strconv.ParseInt(arg, 10, 64); err == nil {
				which = arg
			}
			return nil, fmt.Errorf("queue %s has no dead letter %s; starter queues dead list %s shows those there are", args[0], which, args[0])
		}
	}
	return letters, nil
}
