package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

func (i *invocation) queuesPeekCommand() *cobra.Command {
	var from, limit int
	cmd := &cobra.Command{
		Use:   "peek QUEUE",
		Short: "List the waiting items of a queue",
		Long: `peek lists the waiting items of a queue in the order in which they will run, those
in overflow pages included. AHEAD is how many run before.`,
		Args:              arguments("QUEUE"),
		ValidArgsFunction: i.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 || from < 0 {
				return misuse(cmd, "--from and --limit are not negative")
			}
			answer, err := i.waitingItems(cmd.Context(), args[0], from, limit)
			if err != nil {
				return err
			}
			i.noteEmpty("item", len(answer.GetItems()))
			return i.emit(answer, func(w io.Writer) error {
				t := newTable("AHEAD", "NUMBER", "JOB", "ACCEPTED")
				for _, item := range answer.GetItems() {
					t.add(fmt.Sprint(item.GetAhead()), fmt.Sprint(item.GetSequence()), item.GetJobId(), i.when(toTime(item.GetAcceptTime())))
				}
				return t.write(w)
			})
		},
	}
	cmd.Flags().IntVar(&from, "from", 0, "skip this many items")
	cmd.Flags().IntVar(&limit, "limit", 20, "show at most this many items; 0: all")
	return cmd
}

// waitingItems lists the waiting items of a queue in one answer, but for the first from; limit
// 0 means all.
func (i *invocation) waitingItems(ctx context.Context, queue string, from, limit int) (*jobsv1.ListQueueItemsResponse, error) {
	most := 0
	if limit > 0 {
		most = from + limit
	}
	all, err := listSome(ctx, i.api.Queues.ListQueueItems, &jobsv1.ListQueueItemsRequest{Queue: queue}, most,
		func(all *jobsv1.ListQueueItemsResponse) int { return len(all.GetItems()) })
	if err != nil {
		return nil, err
	}
	all.NextPageToken = "" // --from goes on.
	all.Items = all.GetItems()[min(from, len(all.GetItems())):]
	if limit > 0 {
		all.Items = all.GetItems()[:min(limit, len(all.GetItems()))]
	}
	return all, nil
}
