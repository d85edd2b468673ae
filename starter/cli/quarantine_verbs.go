package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// maxIDs is how many IDs a command takes.
const maxIDs = 1000

// verbBatch is how many items a call replays or drops: a call is short, and shows progress.
const verbBatch = 2000

// chooseItems reads the items of the arguments or filters.
func chooseItems(cmd *cobra.Command, args []string, flags *itemFlags) (a verbs.Args, err error) {
	given := flags.given(cmd)
	switch {
	case len(args) == 0 && given == "":
		return a, misuse(cmd, "give ID, or filters such as --class, or --all")
	case len(args) > 0 && given != "":
		return a, misuse(cmd, "give either ID or --%s", given)
	case len(args) > maxIDs:
		return a, misuse(cmd, "%d IDs are more than %d: use filters", len(args), maxIDs)
	}
	if a.Sequences, err = itemIDs(cmd, args); err != nil {
		return a, err
	}
	if err := flags.filter.Check(); err != nil {
		return a, misuse(cmd, "%s", err)
	}
	if len(args) == 0 {
		a.Filter = flags.message()
	}
	return a, nil
}

func (i *invocation) quarantineReplayCommand() *cobra.Command {
	return i.quarantineVerbCommand(verbs.ReplayQuarantineItems, verbHelp{"Publish items again on their original subjects", `replay publishes items again on their original subjects, oldest first, and removes
each from quarantine when its stream has stored it. It asks first. A message that is
rejected again becomes an item with another ID. If replay is interrupted, the other
items stay in quarantine.

Records of vendors that never became messages (stage extract) cannot be replayed, and
neither can items with a truncated body.`})
}

func (i *invocation) quarantineDropCommand() *cobra.Command {
	return i.quarantineVerbCommand(verbs.DropQuarantineItems, verbHelp{
		"Remove items for good", "drop removes items from quarantine. It asks first, because it cannot be undone.",
	})
}

// itemsAnswer is the answer of a verb on items.
type itemsAnswer struct {
	proto.Message
	count, missing int32 // missing are those that someone else has removed
	lastID         int64
	left           []*jobsv1.QuarantineItem // that cannot be replayed
	leftCount      int32
}

func readItemsAnswer(done verbs.Done) itemsAnswer {
	switch a := done.Answer.(type) {
	case *jobsv1.ReplayQuarantineItemsResponse:
		return itemsAnswer{a, a.GetReplayCount(), a.GetMissingCount(), a.GetLastId(), a.GetLeft(), a.GetLeftCount()}
	case *jobsv1.DropQuarantineItemsResponse:
		return itemsAnswer{Message: a, count: a.GetDropCount(), lastID: a.GetLastId()}
	}
	return itemsAnswer{} // The two rows have these types.
}

// message is the joined answer of several calls.
func (a itemsAnswer) message() proto.Message {
	if _, replayed := a.Message.(*jobsv1.ReplayQuarantineItemsResponse); replayed {
		return &jobsv1.ReplayQuarantineItemsResponse{
			ReplayCount: a.count, MissingCount: a.missing, LastId: a.lastID, Left: a.left, LeftCount: a.leftCount,
		}
	}
	return &jobsv1.DropQuarantineItemsResponse{DropCount: a.count, LastId: a.lastID}
}

// quarantineVerbCommand makes the command of a verb that is done to items.
func (i *invocation) quarantineVerbCommand(v *verbs.Verb, help verbHelp) *cobra.Command {
	var chosen itemFlags
	var flags verbFlags
	cmd := &cobra.Command{
		Use: word(v) + " [ID...]", Short: help.short, Long: help.long,
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := chooseItems(cmd, args, &chosen)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			a.Reason, a.Preview = flags.reason, true
			preview, err := i.do(ctx, v, a)
			if err != nil {
				return err
			}
			counted := readItemsAnswer(preview)
			if err := i.noteLeft(a, counted); err != nil {
				return err
			}
			if counted.count == 0 {
				i.note("There is nothing to %s.", word(v))
			} else if !flags.yes {
				count := plural(int(counted.count), "item", "items")
				if err := i.ask(ctx, preview.Text, v.Command, "to "+word(v)+" "+count, "nothing was done"); err != nil {
					return err
				}
			}
			if a.Preview = false; a.Filter != nil {
				a.Filter.BeforeId = counted.lastID + 1 // Not the items that came after the question.
			}
			all, err := i.doItems(ctx, v, a, counted)
			done := v.Meaning(a, all.message())
			if all.missing > 0 {
				done.Text += fmt.Sprintf(", %d removed by someone else", all.missing)
			}
			if err != nil {
				done.Text += fmt.Sprintf(", at most %d left in quarantine", counted.count-all.count-all.missing)
			}
			if failed := i.tell(done); failed != nil {
				return failed
			}
			return err
		},
	}
	chosen.register(i, cmd)
	cmd.Flags().BoolVar(&chosen.all, "all", false, "all items")
	flags.register(cmd, v)
	flags.registerYes(cmd)
	return cmd
}

// doItems does a verb to the items in several calls, and joins the answers.
func (i *invocation) doItems(ctx context.Context, v *verbs.Verb, a verbs.Args, counted itemsAnswer) (itemsAnswer, error) {
	all := itemsAnswer{Message: counted.Message, left: counted.left, leftCount: counted.leftCount}
	a.With = &jobsv1.ReplayQuarantineItemsRequest{MaxCount: verbBatch}
	if v == verbs.DropQuarantineItems {
		a.With = &jobsv1.DropQuarantineItemsRequest{MaxCount: verbBatch}
	}
	line, began := i.newProgress(), time.Now()
	defer line.clear()
	for all.count+all.missing < counted.count {
		done, err := i.do(ctx, v, a)
		if err != nil {
			return all, err
		}
		some := readItemsAnswer(done)
		all.count += some.count
		all.missing += some.missing
		all.lastID = max(all.lastID, some.lastID)
		if some.count+some.missing == 0 {
			break // Someone else has removed the others.
		}
		if line.terminal {
			line.show(fmt.Sprintf("%d of %s", all.count, plural(int(counted.count), "item", "items")), time.Since(began))
		}
	}
	return all, nil
}

// noteLeft tells of items that cannot be replayed. If they were named, it is an error, and
// none is.
func (i *invocation) noteLeft(a verbs.Args, counted itemsAnswer) error {
	left := counted.left
	if len(left) == 0 {
		return nil
	}
	if a.Filter == nil {
		return joinTexts(left)
	}
	i.note("%s cannot be replayed, the first: %s.", plural(int(counted.leftCount), "item", "items"), clean(left[0].GetNotReplayable()))
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
