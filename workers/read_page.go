package workers

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// ReadPage is the activity that reads the items of a page, and looks which of them ran
// since they were accepted. It fails for good if the page is not there, or is not one.
func ReadPage(ctx context.Context, in contract.ReadPageInput) (contract.ReadPageOutput, error) {
	c := activity.GetClient(ctx)
	id := contract.QueuePageWorkflowID(in.Queue, in.Instance, in.Page)
	page, err := temporalclient.ReadQueuePage(ctx, c, in)
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return contract.ReadPageOutput{}, temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("workflow %s is not there any more: the items of that page cannot be read", id), contract.ErrorTypePageNotFound, err)
	case errors.Is(err, temporalclient.ErrNotQueuePage):
		return contract.ReadPageOutput{}, temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrorTypePageUnreadable, err)
	case err != nil:
		return contract.ReadPageOutput{}, err
	}
	ran, err := ranSince(ctx, c, in.Instance, page.Items)
	return contract.ReadPageOutput{Items: page.Items, Ran: ran}, err
}

// describedAtOnce bounds the runs that are described at once.
const describedAtOnce = 8

// ranSince gives the numbers of the items whose work the queue has started since they
// were accepted.
func ranSince(ctx context.Context, c sdk.Client, instance string, items []contract.QueueItem) ([]int64, error) {
	ran := make([]bool, len(items))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(describedAtOnce)
	for i, item := range items {
		group.Go(func() error {
			latest, err := c.DescribeWorkflowExecution(ctx, contract.JobWorkflowID(item.Job.ID), "")
			var notFound *serviceerror.NotFound
			if errors.As(err, &notFound) {
				return nil
			}
			if err == nil {
				of, job := itemOfRun(latest.GetWorkflowExecutionInfo().GetMemo())
				ran[i] = contract.IsRepeat(item, instance, of, job)
			}
			return err
		})
	}
	err := group.Wait()
	var numbers []int64
	for i, item := range items {
		if ran[i] {
			numbers = append(numbers, item.Sequence)
		}
	}
	return numbers, err
}

// itemOfRun reads which item a run is, and its job, from the run's memo. Of a run that
// no queue has started it gives neither.
func itemOfRun(memo *commonpb.Memo) (of contract.ItemOfRun, ran job.Job) {
	ran, ok := temporalclient.MemoDefinition(memo)
	if !ok || !temporalclient.MemoField(memo, contract.MemoItem, &of) {
		return contract.ItemOfRun{}, job.Job{}
	}
	return of, ran
}
