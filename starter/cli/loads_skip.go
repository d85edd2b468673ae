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

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

const loadsSkipHelp = `skip puts the message that blocks a location into quarantine, so that the loader
continues after it. It asks first. A message blocks a location if the mirror refuses
it and accepted all messages before it; starter loads names it.

The loader skips the message when it tries the mirror again, within a minute: it
stores it in quarantine, then acknowledges it. The command waits for that. If the wait
is interrupted, the request remains. starter quarantine replay publishes the message
again.`

// skipPoll is the interval at which the command checks for the acknowledgement.
const skipPoll = 500 * time.Millisecond

// skipped is the result for a message, as JSON.
type skipped struct {
	Operation pipeline.Operation `json:"operation"`
	Location  string             `json:"location"`
	Mirror    string             `json:"mirror"`
	Subject   string             `json:"subject"`
	Sequence  uint64             `json:"sequence"`
	Class     string             `json:"class"`
	Reason    string             `json:"reason"`
	// Item is its number in quarantine; 0 if the mirror stored it in the meantime. If
	// several mirrors skip a message, its item has the error of the first.
	Item uint64 `json:"item,omitempty"`
	// ItemTarget is the server of that first mirror, if it is another one.
	ItemTarget string `json:"item_target,omitempty"`
}

func (i *invocation) loadsSkipCommand() *cobra.Command {
	var operation pipeline.Operation
	var mirror string
	var yes bool
	cmd := &cobra.Command{
		Use:   "skip LOCATION",
		Short: "Put the message that blocks a location into quarantine",
		Long:  loadsSkipHelp,
		Args:  arguments("LOCATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			client, err := i.connectPipeline(ctx)
			if err != nil {
				return err
			}
			loads, err := findLoads(ctx, client, args[0])
			if err != nil {
				return err
			}
			load, err := heldLoad(args[0], slices.DeleteFunc(loads, func(l pipeline.Load) bool {
				return (operation != "" && l.Operation != operation) || (mirror != "" && l.Mirror != mirror)
			}))
			if err != nil {
				return err
			}
			held := load.Breaker.Held
			if !yes {
				question := clean(fmt.Sprintf("Put message %d on %s into quarantine? It blocks %s: %s: %s",
					held.Sequence, held.Subject, loadName(load), load.Breaker.Class, load.Breaker.Reason))
				if err := i.ask(ctx, question, "loads skip", "to skip the message", "nothing was skipped"); err != nil {
					return err
				}
			}
			if err := client.RequestSkip(ctx, load.Consumer(), *held); err != nil {
				return err
			}
			if err := i.awaitSkip(ctx, client, load); err != nil {
				return err
			}
			return i.reportSkip(ctx, client, load)
		},
	}
	cmd.Flags().Var(choose(&operation, pipeline.Operations()...), "operation", "flow of the location: "+strings.Join(words(pipeline.Operations()), ", "))
	cmd.Flags().Var(nameValue{&mirror}, "mirror", "mirror of the location")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	completeFixed(cmd, "operation", words(pipeline.Operations())...)
	return cmd
}

// heldLoad finds the load of a location that a message blocks.
func heldLoad(location string, loads []pipeline.Load) (pipeline.Load, error) {
	held := slices.DeleteFunc(slices.Clone(loads), func(l pipeline.Load) bool { return l.Breaker.Held == nil || l.Waiting == 0 })
	switch len(held) {
	case 1:
		return held[0], nil
	case 0:
		text := "no message blocks location " + location
		for _, l := range loads {
			if l.Breaker.Failures > 0 {
				text += fmt.Sprintf("; the error of %s is not about a message: %s: %s", loadName(l), l.Breaker.Class, l.Breaker.Reason)
			}
		}
		return pipeline.Load{}, errors.New(clean(text))
	}
	names := make([]string, len(held))
	for n, l := range held {
		names[n] = fmt.Sprintf("%s by message %d", loadName(l), l.Breaker.Held.Sequence)
	}
	return pipeline.Load{}, fmt.Errorf("several loads are blocked, so give --mirror or --operation: %s", strings.Join(names, ", "))
}

// awaitSkip waits until the loader has acknowledged the message.
func (i *invocation) awaitSkip(ctx context.Context, client *pipeline.Client, load pipeline.Load) error {
	line, began := i.newProgress(), time.Now()
	defer line.clear()
	tick := time.NewTicker(skipPoll)
	defer tick.Stop()
	for {
		done, err := client.Acknowledged(ctx, load.Consumer(), load.Breaker.Held.Sequence)
		if err != nil || done {
			return err
		}
		line.show("waiting until the loader tries the mirror again", time.Since(began))
		select {
		case <-tick.C:
		case <-ctx.Done():
			i.note("The request remains: the loader skips message %d when it tries mirror %s again.", load.Breaker.Held.Sequence, load.Mirror)
			return ctx.Err()
		}
	}
}

// reportSkip shows where the message is.
func (i *invocation) reportSkip(ctx context.Context, client *pipeline.Client, load pipeline.Load) error {
	held := load.Breaker.Held
	outcome := skipped{
		Operation: load.Operation, Location: load.Location, Mirror: load.Mirror,
		Subject: held.Subject, Sequence: held.Sequence, Class: load.Breaker.Class, Reason: load.Breaker.Reason,
	}
	filter := pipeline.ItemFilter{Stage: pipeline.StageLoad, Operation: load.Operation, Location: load.Location, Class: pipeline.ClassSkipped}
	err := client.Items(ctx, filter, func(item pipeline.Item) error {
		if item.OriginSequence == held.Sequence && item.OriginSubject == held.Subject {
			outcome.Item, outcome.ItemTarget = item.ID, ""
			if item.Target != load.Address {
				outcome.ItemTarget = item.Target
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return i.emit(outcome, func(io.Writer) error {
		switch {
		case outcome.Item == 0:
			return i.print("Message %d on %s was stored in the meantime.", held.Sequence, held.Subject)
		case outcome.ItemTarget != "":
			return i.print("Message %d on %s no longer blocks %s. It is in quarantine, as item %d of %s.",
				held.Sequence, held.Subject, loadName(load), outcome.Item, clean(outcome.ItemTarget))
		}
		return i.print("Message %d on %s is in quarantine, as item %d: %s", held.Sequence, held.Subject, outcome.Item, clean(outcome.Reason))
	})
}
