package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// maxIDs is how many IDs a command takes.
const maxIDs = 1000

// verbBatch is how many items a call replays or drops: a call is short, and shows progress.
const verbBatch = 2000

// chosenItems are the items to which a verb applies: those with the ids, else those of the
// filter.
type chosenItems struct {
	ids    []int64
	filter *jobsv1.QuarantineFilter
}

// chooseItems reads the items of the arguments or filters.
func chooseItems(cmd *cobra.Command, args []string, flags *itemFlags) (*chosenItems, error) {
	given := flags.given(cmd)
	switch {
	case len(args) == 0 && given == "":
		return nil, misuse(cmd, "give ID, or filters such as --class, or --all")
	case len(args) > 0 && given != "":
		return nil, misuse(cmd, "give either ID or --%s", given)
	case len(args) > maxIDs:
		return nil, misuse(cmd, "%d IDs are more than %d: use filters", len(args), maxIDs)
	}
	ids, err := itemIDs(cmd, args)
	if err != nil {
		return nil, err
	}
	if err := flags.filter.Check(); err != nil {
		return nil, misuse(cmd, "%s", err)
	}
	if len(ids) > 0 {
		return &chosenItems{ids: ids}, nil
	}
	return &chosenItems{filter: flags.message()}, nil
}

// upTo leaves out items that came after the question.
func (c *chosenItems) upTo(lastID int64) {
	if c.filter != nil {
		c.filter.BeforeId = lastID + 1
	}
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
			chosen, err := chooseItems(cmd, args, &flags)
			if err != nil {
				return err
			}
			clients, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			counted, err := clients.Quarantine.ReplayQuarantineItems(cmd.Context(), &jobsv1.ReplayQuarantineItemsRequest{Ids: chosen.ids, Filter: chosen.filter})
			if err != nil {
				return aboutQuarantined(err)
			}
			if err := i.noteLeft(chosen, counted); err != nil {
				return err
			}
			count := plural(int(counted.GetReplayCount()), "item", "items")
			if counted.GetReplayCount() == 0 {
				i.note("There is nothing to replay.")
			} else if !yes {
				if err := i.ask(cmd.Context(), fmt.Sprintf("Publish %s again?", count), "quarantine replay", "to replay "+count, "nothing was replayed"); err != nil {
					return err
				}
			}
			chosen.upTo(counted.GetLastId())
			answer, err := i.replayItems(cmd.Context(), clients, chosen, int(counted.GetReplayCount()))
			answer.Left, answer.LeftCount = counted.GetLeft(), counted.GetLeftCount()
			if failed := i.emit(answer, func(io.Writer) error {
				text := plural(int(answer.GetReplayCount()), "item", "items") + " replayed"
				if answer.GetMissingCount() > 0 {
					text += fmt.Sprintf(", %d removed by someone else", answer.GetMissingCount())
				}
				if err != nil {
					text += fmt.Sprintf(", at most %d left in quarantine", counted.GetReplayCount()-answer.GetReplayCount()-answer.GetMissingCount())
				}
				return i.print("%s.", text)
			}); failed != nil {
				return failed
			}
			return err
		},
	}
	flags.register(i, cmd)
	cmd.Flags().BoolVar(&flags.all, "all", false, "all items")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// noteLeft tells of items that cannot be replayed. If they were named, it is an error, and
// none is.
func (i *invocation) noteLeft(chosen *chosenItems, counted *jobsv1.ReplayQuarantineItemsResponse) error {
	left := counted.GetLeft()
	if len(left) == 0 {
		return nil
	}
	if chosen.filter == nil {
		return joinTexts(left)
	}
	i.note("%s cannot be replayed, the first: %s.", plural(int(counted.GetLeftCount()), "item", "items"), clean(left[0].GetNotReplayable()))
	return nil
}

// joinTexts is an error with a line for each of the items.
func joinTexts(left []*jobsv1.QuarantineItem) error {
	errs := make([]error, len(left))
	for n, item := range left {
		errs[n] = errors.New(item.GetNotReplayable())
	}
	return errors.Join(errs...)
}

// replayItems replays the items in several calls, and joins the answers.
func (i *invocation) replayItems(ctx context.Context, clients *api.Clients, chosen *chosenItems, count int) (*jobsv1.ReplayQuarantineItemsResponse, error) {
	all := &jobsv1.ReplayQuarantineItemsResponse{}
	line, began := i.newProgress(), time.Now()
	defer line.clear()
	for done := 0; done < count; {
		answer, err := clients.Quarantine.ReplayQuarantineItems(ctx, &jobsv1.ReplayQuarantineItemsRequest{
			Ids: chosen.ids, Filter: chosen.filter, Force: true, MaxCount: verbBatch,
		})
		if err != nil {
			return all, aboutQuarantined(err)
		}
		all.ReplayCount += answer.GetReplayCount()
		all.MissingCount += answer.GetMissingCount()
		all.LastId = max(all.GetLastId(), answer.GetLastId())
		if answer.GetLastId() == 0 {
			break // Someone else has removed the others.
		}
		done += int(answer.GetReplayCount() + answer.GetMissingCount())
		if line.terminal {
			line.show(fmt.Sprintf("%d of %d replayed", all.GetReplayCount(), count), time.Since(began))
		}
	}
	return all, nil
}

func (i *invocation) quarantineDropCommand() *cobra.Command {
	var flags itemFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "drop [ID...]",
		Short: "Remove items for good",
		Long:  "drop removes items from quarantine. It asks first, because it cannot be undone.",
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := chooseItems(cmd, args, &flags)
			if err != nil {
				return err
			}
			clients, err := i.api(cmd.Context())
			if err != nil {
				return err
			}
			counted, err := clients.Quarantine.DropQuarantineItems(cmd.Context(), &jobsv1.DropQuarantineItemsRequest{Ids: chosen.ids, Filter: chosen.filter})
			if err != nil {
				return aboutQuarantined(err)
			}
			count := plural(int(counted.GetDropCount()), "item", "items")
			if counted.GetDropCount() == 0 {
				i.note("There is nothing to drop.")
			} else if !yes {
				if err := i.ask(cmd.Context(), fmt.Sprintf("Remove %s for good?", count), "quarantine drop", "to drop "+count, "nothing was dropped"); err != nil {
					return err
				}
			}
			chosen.upTo(counted.GetLastId())
			answer, err := i.dropItems(cmd.Context(), clients, chosen, int(counted.GetDropCount()))
			if failed := i.emit(answer, func(io.Writer) error {
				return i.print("%s dropped.", plural(int(answer.GetDropCount()), "item", "items"))
			}); failed != nil {
				return failed
			}
			return err
		},
	}
	flags.register(i, cmd)
	cmd.Flags().BoolVar(&flags.all, "all", false, "all items")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// dropItems drops the items in several calls, and joins the answers.
func (i *invocation) dropItems(ctx context.Context, clients *api.Clients, chosen *chosenItems, count int) (*jobsv1.DropQuarantineItemsResponse, error) {
	all := &jobsv1.DropQuarantineItemsResponse{}
	line, began := i.newProgress(), time.Now()
	defer line.clear()
	for done := 0; done < count; {
		answer, err := clients.Quarantine.DropQuarantineItems(ctx, &jobsv1.DropQuarantineItemsRequest{
			Ids: chosen.ids, Filter: chosen.filter, Force: true, MaxCount: verbBatch,
		})
		if err != nil {
			return all, aboutQuarantined(err)
		}
		all.DropCount += answer.GetDropCount()
		all.LastId = max(all.GetLastId(), answer.GetLastId())
		if answer.GetDropCount() == 0 {
			break // Someone else has removed the others.
		}
		done += int(answer.GetDropCount())
		if line.terminal {
			line.show(fmt.Sprintf("%d of %d dropped", all.GetDropCount(), count), time.Since(began))
		}
	}
	return all, nil
}
