package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

const loadsSkipHelp = `skip puts the message that blocks a location into quarantine, so that the loader
continues after it. It asks first. A message blocks a location if the mirror refuses
it and accepted all messages before it; starter loads names it.

The loader skips the message when it tries the mirror again, within a minute: it
stores it in quarantine, then acknowledges it. The command waits for that. If the wait
is interrupted, the request remains. starter quarantine replay publishes the message
again.`

func (i *invocation) loadsSkipCommand() *cobra.Command {
	var operation string
	var mirror string
	var flags verbFlags
	cmd := &cobra.Command{
		Use:   "skip LOCATION",
		Short: "Put the message that blocks a location into quarantine",
		Long:  loadsSkipHelp,
		Args:  arguments("LOCATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			answer, err := i.listLoads(ctx, args[0])
			if err != nil {
				return err
			}
			load, err := heldLoad(args[0], slices.DeleteFunc(answer.GetLoads(), func(l *jobsv1.Load) bool {
				return (operation != "" && l.GetFlow() != operation) || (mirror != "" && l.GetMirror() != mirror)
			}))
			if err != nil {
				return err
			}
			a := flags.args(verbs.SkipHeldMessage, load.GetLocation(), load.GetFlow(), load.GetMirror())
			if !flags.yes {
				question := clean(fmt.Sprintf("%s It is message %d on %s: %s: %s", verbs.SkipHeldMessage.Ask(verbs.To(loadName(load))),
					load.GetHeldSequence(), load.GetHeldSubject(), load.GetErrorClass(), load.GetErrorMessage()))
				if err := i.ask(ctx, question, "loads skip", "to skip the message", "nothing was skipped"); err != nil {
					return err
				}
			}
			a.With = &jobsv1.SkipHeldMessageRequest{Sequence: load.GetHeldSequence()}
			done, err := i.do(ctx, verbs.SkipHeldMessage, a)
			if err != nil {
				return err
			}
			asked, _ := done.Answer.(*jobsv1.SkipHeldMessageResponse) // The row has this type.
			if err := i.awaitSkip(ctx, load, asked.GetSequence()); err != nil {
				return err
			}
			return i.reportSkip(ctx, load, asked)
		},
	}
	cmd.Flags().Var(choose(&operation, api.Flows()...), "operation", "flow of the location: "+strings.Join(api.Flows(), ", "))
	cmd.Flags().Var(nameValue{&mirror}, "mirror", "mirror of the location")
	flags.register(cmd, verbs.SkipHeldMessage)
	flags.registerYes(cmd)
	completeFixed(cmd, "operation", api.Flows()...)
	return cmd
}

// heldLoad finds the load of a location that a message blocks.
func heldLoad(location string, loads []*jobsv1.Load) (*jobsv1.Load, error) {
	held := slices.DeleteFunc(slices.Clone(loads), func(l *jobsv1.Load) bool { return !verbs.SkipHeldMessage.Applies(verbs.OfLoad(l)) })
	switch len(held) {
	case 1:
		return held[0], nil
	case 0:
		text := "no message blocks location " + location
		for _, l := range loads {
			if l.GetFailures() > 0 {
				text += fmt.Sprintf("; the error of %s is not about a message: %s: %s", loadName(l), l.GetErrorClass(), l.GetErrorMessage())
			}
		}
		return nil, errors.New(clean(text))
	}
	names := make([]string, len(held))
	for n, l := range held {
		names[n] = fmt.Sprintf("%s by message %d", loadName(l), l.GetHeldSequence())
	}
	return nil, fmt.Errorf("several loads are blocked, so give --mirror or --operation: %s", strings.Join(names, ", "))
}

// awaitSkip waits until the loader is done with the message.
func (i *invocation) awaitSkip(ctx context.Context, load *jobsv1.Load, sequence int64) error {
	line, began := i.newProgress(), time.Now()
	defer line.clear()
	tick := time.NewTicker(waitPoll)
	defer tick.Stop()
	for {
		answer, err := i.listLoads(ctx, load.GetLocation())
		if err == nil && slices.ContainsFunc(answer.GetLoads(), func(l *jobsv1.Load) bool {
			return loadName(l) == loadName(load) && l.GetDoneSequence() >= sequence
		}) {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		line.show("waiting until the loader tries the mirror again", time.Since(began))
		select {
		case <-tick.C:
		case <-ctx.Done():
			i.note("The request remains: the loader skips message %d when it tries mirror %s again.", sequence, load.GetMirror())
			return ctx.Err()
		}
	}
}

// reportSkip shows where the message is.
func (i *invocation) reportSkip(ctx context.Context, load *jobsv1.Load, asked *jobsv1.SkipHeldMessageResponse) error {
	list, err := listAll(ctx, i.api.Quarantine.ListQuarantineItems, &jobsv1.ListQuarantineItemsRequest{Filter: api.SkippedItems(load)})
	if err != nil {
		return err
	}
	var found *jobsv1.QuarantineItem // If several mirrors skip a message, its item has the error of the first.
	for _, item := range list.GetItems() {
		if found == nil && item.GetOriginSequence() == asked.GetSequence() && item.GetOriginSubject() == asked.GetSubject() {
			found = item
		}
	}
	return i.emit(asked, func(io.Writer) error {
		message := fmt.Sprintf("Message %d on %s", asked.GetSequence(), asked.GetSubject())
		switch {
		case found == nil:
			return i.print("%s was stored in the meantime.", message)
		case found.GetTarget() != load.GetAddress():
			return i.print("%s no longer blocks %s. It is in quarantine, as item %d of %s.", message, loadName(load), found.GetId(), clean(found.GetTarget()))
		}
		return i.print("%s is in quarantine, as item %d: %s", message, found.GetId(), clean(load.GetErrorMessage()))
	})
}
