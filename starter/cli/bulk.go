package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// bulk is a command on many jobs or runs.
type bulk struct {
	verb     string // "pause"
	one, all string // "job", "jobs"
	names    []string
	// act changes the n-th and returns the result. An error that wraps errNothingToDo is
	// not a failure.
	act func(n int) (string, error)
	// text is the text of an error.
	text func(error) string
	// warning, if any, is shown before the question.
	warning string
}

// errNothingToDo is the error of a command that would change nothing.
var errNothingToDo = errors.New("nothing to do")

// bulkOutcome is the result for one of many, as JSON.
type bulkOutcome struct {
	Name   string `json:"name"`
	Result string `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

// shownNames bounds the names that are shown before a question.
const shownNames = 20

// doAll asks, unless yes is set, and then acts on all, several at a time.
func (i *invocation) doAll(ctx context.Context, b bulk, yes bool) error {
	if i.noteEmpty(b.one, len(b.names)) {
		return i.emit([]bulkOutcome{}, func(io.Writer) error { return nil })
	}
	if !yes {
		for n, name := range b.names {
			if n == shownNames {
				i.note("  ... and %d more", len(b.names)-n)
				break
			}
			i.note("  %s", clean(name))
		}
		if b.warning != "" {
			i.note("%s", b.warning)
		}
		count := plural(len(b.names), b.one, b.all)
		question := fmt.Sprintf("%s %s?", capitalized(b.verb), count)
		if err := i.ask(ctx, question, b.verb, "to "+b.verb+" "+count, "nothing was done"); err != nil {
			return err
		}
	}
	b.text = func(err error) string { return strings.Join(i.sentences(err), "; ") }
	return i.report(b, b.do(ctx))
}

func capitalized(word string) string { return string(word[0]-'a'+'A') + word[1:] }

func (b bulk) do(ctx context.Context) []bulkOutcome {
	outcomes := make([]bulkOutcome, len(b.names))
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(8)
	one := func(n int) error {
		outcome := bulkOutcome{Name: b.names[n]}
		if err := ctx.Err(); err != nil {
			outcome.Error = err.Error()
		} else if done, err := b.act(n); errors.Is(err, errNothingToDo) {
			outcome.Result = err.Error()
		} else if err != nil {
			outcome.Error = clean(b.text(err))
		} else {
			outcome.Result = done
		}
		mu.Lock()
		defer mu.Unlock()
		outcomes[n] = outcome
		return nil
	}
	for n := range b.names {
		group.Go(func() error { return one(n) })
	}
	_ = group.Wait() // Each outcome has its own error.
	return outcomes
}

func (i *invocation) report(b bulk, outcomes []bulkOutcome) error {
	failed := 0
	for _, outcome := range outcomes {
		if outcome.Error != "" {
			failed++
			i.note("starter: %s: %s", outcome.Name, outcome.Error)
		}
	}
	err := i.emit(outcomes, func(w io.Writer) error {
		for _, outcome := range outcomes {
			if outcome.Error != "" {
				continue
			}
			if _, err := fmt.Fprintf(w, "%s: %s\n", clean(outcome.Name), clean(outcome.Result)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d of %s failed", failed, plural(len(outcomes), b.one, b.all))
	}
	return err
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
