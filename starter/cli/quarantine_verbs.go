package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// chosenItems are the items to which a verb applies.
type chosenItems struct {
	client *pipeline.Client
	ids    []uint64
	// refused counts the items that match the filters but that the verb refuses, and
	// reason is the error of the first.
	refused int
	reason  error
}

// chooseItems finds the items of the arguments or filters. Items of arguments must exist,
// and the verb must accept all of them.
func (i *invocation) chooseItems(cmd *cobra.Command, args []string, flags *itemFlags, check func(pipeline.Item) error) (*chosenItems, error) {
	given := flags.given(cmd)
	switch {
	case len(args) == 0 && given == "":
		return nil, misuse(cmd, "give ID, or filters such as --class, or --all")
	case len(args) > 0 && given != "":
		return nil, misuse(cmd, "give either ID or --%s", given)
	}
	ids, err := itemIDs(cmd, args)
	if err != nil {
		return nil, err
	}
	if err := flags.filter.Check(); err != nil {
		return nil, misuse(cmd, "%s", err)
	}
	client, err := i.connectPipeline(cmd.Context())
	if err != nil {
		return nil, err
	}
	chosen := &chosenItems{client: client, ids: ids}
	if len(args) > 0 {
		var problems []error
		for _, id := range ids {
			item, err := client.Item(cmd.Context(), id)
			if errors.Is(err, pipeline.ErrNoItem) {
				problems = append(problems, aboutQuarantined(err))
				continue
			}
			if err != nil {
				return nil, err
			}
			if err := check(item); err != nil {
				problems = append(problems, err)
			}
		}
		return chosen, errors.Join(problems...)
	}
	line, began := i.newProgress(), time.Now()
	defer line.clear()
	seen := 0
	return chosen, client.Items(cmd.Context(), flags.filter, func(item pipeline.Item) error {
		if seen++; seen%5000 == 0 && line.terminal {
			line.show(fmt.Sprintf("%d items so far", seen), time.Since(began))
		}
		if err := check(item); err != nil {
			if chosen.refused++; chosen.reason == nil {
				chosen.reason = err
			}
			return nil
		}
		chosen.ids = append(chosen.ids, item.ID)
		return nil
	})
}

// replayOutcome is the result of a replay, as JSON.
type replayOutcome struct {
	Replayed int `json:"replayed"`
	Missing  int `json:"missing,omitempty"` // removed by someone else
	Left     int `json:"left,omitempty"`    // cannot be replayed
}

func (i *invocation) quarantineReplayCommand() *cobra.Command {
	var flags itemFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "replay [ID...]",
		Short: "Publish items again on their original subjects",
		Long: `replay publishes items again on their original subjects, oldest first, and removes
each from quarantine when its stream has stored it. It asks first. A message that is
rejected again becomes an item with another ID. If replay is interrupted, the other
items stay in quarantine.

Records of vendors that never became messages (stage extract) cannot be replayed, and
neither can items with a truncated body.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := i.chooseItems(cmd, args, &flags, pipeline.Item.Replayable)
			if err != nil {
				return err
			}
			if chosen.refused > 0 {
				i.note("%s cannot be replayed, the first: %s.", plural(chosen.refused, "item", "items"), clean(chosen.reason.Error()))
			}
			if len(chosen.ids) == 0 {
				i.note("There is nothing to replay.")
			} else if !yes {
				question := fmt.Sprintf("Publish %s again?", plural(len(chosen.ids), "item", "items"))
				if err := i.ask(cmd.Context(), question, "quarantine replay", "to replay "+plural(len(chosen.ids), "item", "items"), "nothing was replayed"); err != nil {
					return err
				}
			}
			counts, err := i.replayItems(cmd.Context(), chosen)
			outcome := replayOutcome{counts.Published, counts.Missing, chosen.refused + counts.Refused}
			failed := i.emit(outcome, func(io.Writer) error {
				text := plural(outcome.Replayed, "item", "items") + " replayed"
				if outcome.Missing > 0 {
					text += fmt.Sprintf(", %d removed by someone else", outcome.Missing)
				}
				if left := len(chosen.ids) - counts.Published - counts.Missing; err != nil {
					text += fmt.Sprintf(", %d left in quarantine", left)
				}
				return i.print("%s.", text)
			})
			return errors.Join(err, failed)
		},
	}
	flags.register(i, cmd)
	cmd.Flags().BoolVar(&flags.all, "all", false, "all items")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (i *invocation) replayItems(ctx context.Context, chosen *chosenItems) (pipeline.Replayed, error) {
	if len(chosen.ids) == 0 {
		return pipeline.Replayed{}, nil
	}
	line, began := i.newProgress(), time.Now()
	defer line.clear()
	return chosen.client.Replay(ctx, chosen.ids, func(counts pipeline.Replayed) {
		if line.terminal {
			line.show(fmt.Sprintf("%d of %d replayed", counts.Published, len(chosen.ids)), time.Since(began))
		}
	})
}

// dropOutcome is the result of a drop, as JSON.
type dropOutcome struct {
	Dropped int `json:"dropped"`
}

func (i *invocation) quarantineDropCommand() *cobra.Command {
	var flags itemFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "drop [ID...]",
		Short: "Remove items for good",
		Long:  "drop removes items from quarantine. It asks first, because it cannot be undone.",
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := i.chooseItems(cmd, args, &flags, func(pipeline.Item) error { return nil })
			if err != nil {
				return err
			}
			count := plural(len(chosen.ids), "item", "items")
			if len(chosen.ids) == 0 {
				i.note("There is nothing to drop.")
			} else if !yes {
				if err := i.ask(cmd.Context(), fmt.Sprintf("Remove %s for good?", count), "quarantine drop", "to drop "+count, "nothing was dropped"); err != nil {
					return err
				}
			}
			dropped, err := i.dropItems(cmd.Context(), chosen)
			failed := i.emit(dropOutcome{dropped}, func(io.Writer) error {
				return i.print("%s dropped.", plural(dropped, "item", "items"))
			})
			return errors.Join(err, failed)
		},
	}
	flags.register(i, cmd)
	cmd.Flags().BoolVar(&flags.all, "all", false, "all items")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (i *invocation) dropItems(ctx context.Context, chosen *chosenItems) (int, error) {
	line, began := i.newProgress(), time.Now()
	defer line.clear()
	return chosen.client.Drop(ctx, chosen.ids, func(done int) {
		if line.terminal {
			line.show(fmt.Sprintf("%d of %d dropped", done, len(chosen.ids)), time.Since(began))
		}
	})
}
