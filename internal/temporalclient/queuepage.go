package temporalclient

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/contract"
)

// ErrNotQueuePage says that a workflow under the id of a page is not that page.
var ErrNotQueuePage = errors.New("it is not the overflow page of the queue")

// ReadQueuePage reads a page from the history of its workflow, which needs no worker. It gives a
// serviceerror.NotFound if there is none.
func ReadQueuePage(ctx context.Context, c sdk.Client, in contract.ReadPageInput) (contract.QueuePage, error) {
	var page contract.QueuePage
	id := contract.QueuePageWorkflowID(in.Queue, in.Instance, in.Page)
	events := c.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !events.HasNext() {
		return page, fmt.Errorf("workflow %s has no history", id)
	}
	started, err := events.Next()
	if err != nil {
		return page, err
	}
	if err := DecodeOnly(started.GetWorkflowExecutionStartedEventAttributes().GetInput(), &page); err != nil {
		return page, fmt.Errorf("workflow %s: %w: %w", id, ErrNotQueuePage, err)
	}
	if len(page.Items) == 0 || page.Queue != in.Queue || page.First != in.Page {
		return page, fmt.Errorf("workflow %s: %w", id, ErrNotQueuePage)
	}
	return page, nil
}
