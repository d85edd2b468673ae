package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// verbHelp is what a command of a verb has besides the verb's row.
type verbHelp struct{ short, long string }

// verbFlags are the flags that all commands of verbs have, as far as they fit the verb.
type verbFlags struct {
	reason      string
	period      job.Duration
	yes, dryRun bool
}

// word is the name of a verb's command: pause.
func word(v *verbs.Verb) string { return v.Command[strings.LastIndexByte(v.Command, ' ')+1:] }

// register gives a command the flags that its verb's request has fields for.
func (f *verbFlags) register(cmd *cobra.Command, v *verbs.Verb) {
	switch {
	case v.ReasonShown:
		cmd.Flags().StringVar(&f.reason, "reason", "", "reason that lists and the history show (default: your user name)")
	case v.TakesReason():
		cmd.Flags().StringVar(&f.reason, "reason", "", "reason that the history of changes shows")
	}
	if v.TakesDuration() {
		cmd.Flags().Var(durationOf(&f.period), "for", "how long, at most P366D; then it resumes by itself")
	}
}

func (f *verbFlags) registerYes(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
}

// confirm asks whether a verb is meant that is to be done to what was named.
func (i *invocation) confirm(ctx context.Context, v *verbs.Verb, a verbs.Args, yes bool) error {
	if v.Question == "" || yes {
		return nil
	}
	return i.ask(ctx, clean(v.Ask(a)), v.Command, "to "+word(v)+" it", "nothing was done")
}

// args are the arguments of a verb that is done to what the names name.
func (f *verbFlags) args(v *verbs.Verb, names ...string) verbs.Args {
	a := verbs.Args{Names: names, Reason: f.reason, For: f.period.Std()}
	if v.ReasonShown {
		a.Reason = cmp.Or(f.reason, defaultReason())
	}
	return a
}

// oneCommand makes the command of a verb that is done to what its arguments name, all together.
func (i *invocation) oneCommand(v *verbs.Verb, help verbHelp, arguments ...string) *cobra.Command {
	return i.verbCommand(v, help, func(ctx context.Context, a verbs.Args, _ bool) error {
		done, err := i.do(ctx, v, a)
		if err != nil {
			return err
		}
		return i.tell(done)
	}, arguments...)
}

// verbCommand is oneCommand for a command that does it in its own way: run learns whether not to
// ask what the server says would be done.
func (i *invocation) verbCommand(v *verbs.Verb, help verbHelp, run func(ctx context.Context, a verbs.Args, yes bool) error, want ...string) *cobra.Command {
	var flags verbFlags
	cmd := &cobra.Command{
		Use: strings.Join(append([]string{word(v)}, want...), " "), Short: help.short, Long: help.long, Args: arguments(want...),
		RunE: func(cmd *cobra.Command, args []string) error {
			a := flags.args(v, args...)
			if err := i.confirm(cmd.Context(), v, a, flags.yes); err != nil {
				return err
			}
			return run(cmd.Context(), a, flags.yes)
		},
	}
	flags.register(cmd, v)
	if v.Asks() {
		flags.registerYes(cmd)
	}
	switch v.Kind {
	case verbs.KindIntegration:
		cmd.ValidArgsFunction = i.completeIntegrations
	case verbs.KindJob:
		cmd.ValidArgsFunction = i.completeJobs
	case verbs.KindQueue:
		cmd.ValidArgsFunction = i.completeQueues
	}
	return cmd
}

// do does a verb.
func (i *invocation) do(ctx context.Context, v *verbs.Verb, a verbs.Args) (verbs.Done, error) {
	return v.Do(ctx, i.api.Calls, a)
}

// tell shows what a verb has done.
func (i *invocation) tell(done verbs.Done) error {
	return i.emit(done.Answer, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s.\n", clean(withRun(done.Text, done)))
		return err
	})
}

// withRun adds to what was done which run has started.
func withRun(text string, done verbs.Done) string {
	if ref := refOf(done.Run); ref.runID != "" {
		return fmt.Sprintf("%s, run %s of %s", text, ref.runID, ref.workflowID)
	}
	return text
}
