package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/verbs"
)

// things are what a verb may be done to that has lists: jobs, or runs.
type things struct {
	use, name string // "JOB... | --type TYPE ...", "JOB"
	help      string
	filters   *filters
	register  func(*cobra.Command)
	check     func(*cobra.Command) error // of the flags
	find      func(ctx context.Context, names []string) ([]thing, error)
}

// thing is a job or a run: its name in the API, and for people.
type thing struct{ name, text string }

// bulk is a command on many things.
type bulk struct {
	verb   *verbs.Verb
	flags  *verbFlags
	things []thing
	named  bool // not found by filters
}

// bulkHelp is the part of a help text on filters.
const bulkHelp = `

With filters, the command applies to every %[1]s that matches all of them. It shows
the matches and asks; --dry-run only shows them. Without a terminal, and with
-o json, it needs --yes. Matching no %[1]s is not an error. Ctrl-C ends it after those
that are under way, and it says how many were done.`

// bulkCommand makes the command of a verb that is done to each of the things that are named, or
// that match filters.
func (i *invocation) bulkCommand(v *verbs.Verb, help verbHelp, of things) *cobra.Command {
	var flags verbFlags
	cmd := &cobra.Command{
		Use: word(v) + " " + of.use, Short: help.short, Long: help.long + of.help + fmt.Sprintf(bulkHelp, v.Kind), ValidArgsFunction: i.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := namesOrFilters(cmd, args, of.name, of.filters); err != nil {
				return err
			}
			if err := of.check(cmd); err != nil {
				return err
			}
			if len(args) == 1 && v.Kind == verbs.KindJob && !flags.dryRun {
				if err := i.confirm(cmd.Context(), v, flags.args(v, args...), flags.yes); err != nil {
					return err
				}
				done, err := i.do(cmd.Context(), v, flags.args(v, args...))
				if err != nil {
					return err
				}
				return i.tell(done)
			}
			found, err := of.find(cmd.Context(), args)
			if err != nil {
				return err
			}
			return i.doAll(cmd.Context(), bulk{verb: v, flags: &flags, things: found, named: len(args) > 0})
		},
	}
	of.register(cmd)
	flags.register(cmd, v)
	flags.registerYes(cmd)
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "show to what it would be done, and do nothing")
	return cmd
}

// bulkOutcome is the result for one of many, as JSON.
type bulkOutcome struct {
	Name   string `json:"name"`
	Result string `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

// shownNames bounds the names that are shown before a question.
const shownNames = 20

// counted is how many things there are: 3 jobs.
func (b bulk) counted(n int) string { return plural(n, string(b.verb.Kind), string(b.verb.Kind)+"s") }

// doAll asks, if it has to, and then does a verb to all, several at a time.
func (i *invocation) doAll(ctx context.Context, b bulk) error {
	outcomes := make([]bulkOutcome, len(b.things))
	for n, one := range b.things {
		outcomes[n].Name = one.text
	}
	if i.noteEmpty(string(b.verb.Kind), len(b.things)) || b.flags.dryRun {
		return i.emit(outcomes, func(w io.Writer) error { return writeOutcomes(w, outcomes) })
	}
	if !b.flags.yes && (!b.named || b.verb.Asks()) {
		if err := i.askAll(ctx, b); err != nil {
			return err
		}
	}
	line, began := i.newProgress(), time.Now()
	answers := verbs.Each(ctx, len(b.things), func(ctx context.Context, n int) (verbs.Done, error) {
		return b.verb.Do(ctx, i.api.Calls, b.flags.args(b.verb, b.things[n].name))
	}, func(ended int) {
		if line.terminal {
			line.show(fmt.Sprintf("%d of %s", ended, b.counted(len(b.things))), time.Since(began))
		}
	})
	line.clear()
	failed, left := 0, 0
	for n, answer := range answers {
		switch err := answer.Err; {
		case err == nil:
			outcomes[n].Result = withRun(answer.Done.Result, answer.Done)
		case errors.Is(err, verbs.ErrNotDone):
			left++
			outcomes[n].Error = err.Error()
		case !b.named && (connect.CodeOf(err) == connect.CodeNotFound || connect.CodeOf(err) == connect.CodeFailedPrecondition):
			outcomes[n].Result = "unchanged; " + i.about(b.things[n], err) // It is another since it was listed.
		default:
			failed++
			outcomes[n].Error = i.about(b.things[n], err)
			i.note("starter: %s: %s", outcomes[n].Name, outcomes[n].Error)
		}
	}
	if err := i.emit(outcomes, func(w io.Writer) error { return writeOutcomes(w, outcomes) }); err != nil {
		return err
	}
	all := b.counted(len(b.things))
	switch {
	case left > 0:
		return fmt.Errorf("%s: of %s %d were done, %d failed, %d were not begun", i.why(), all, len(answers)-failed-left, failed, left)
	case failed > 0:
		return fmt.Errorf("%d of %s failed", failed, all)
	}
	return nil
}

// askAll shows what a verb would be done to, and asks.
func (i *invocation) askAll(ctx context.Context, b bulk) error {
	for n, one := range b.things {
		if n == shownNames {
			i.note("  ... and %d more", len(b.things)-n)
			break
		}
		i.note("  %s", clean(one.text))
	}
	return i.ask(ctx, b.verb.AskMany(len(b.things)), word(b.verb), "to "+word(b.verb)+" "+b.counted(len(b.things)), "nothing was done")
}

// about is the text of an error in a line that begins with the name of what it is about.
func (i *invocation) about(one thing, err error) string {
	text := strings.Join(i.sentences(err), "; ")
	ref := refOf(one.name)
	for _, named := range []string{"run " + one.name + " ", "run " + ref.runID + " of " + ref.workflowID + " "} {
		if rest, ok := strings.CutPrefix(text, named); ok {
			return "it " + rest
		}
	}
	return text
}

func writeOutcomes(w io.Writer, outcomes []bulkOutcome) error {
	for _, outcome := range outcomes {
		if outcome.Error != "" {
			continue // It is noted already.
		}
		text := clean(outcome.Name)
		if outcome.Result != "" {
			text += ": " + clean(outcome.Result)
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

// namesOrFilters checks that a command was given either names or filters.
func namesOrFilters(cmd *cobra.Command, args []string, name string, f *filters) error {
	given := f.given(cmd)
	switch {
	case len(args) == 0 && len(given) == 0:
		return misuse(cmd, "give %s, or filters such as --type", name)
	case len(args) > 0 && len(given) > 0:
		return misuse(cmd, "give either %s or --%s", name, given[0])
	}
	for _, arg := range args {
		if err := checkName(cmd, name, arg); err != nil {
			return err
		}
	}
	return nil
}
