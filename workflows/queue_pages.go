package workflows

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// QueuePage is the input of a JobQueuePage workflow: waiting items of a deep
// queue. It never changes.
type QueuePage struct {
	Queue string `json:"queue"`
	// First is the number of the first item, and of the page.
	First int64       `json:"first"`
	Items []QueueItem `json:"items"`
	// Chapter, of the last page of a chapter, has the ids in all its pages.
	Chapter []PageIndex `json:"chapter,omitempty"`
}

// JobQueuePage keeps waiting items of a deep queue, in its input, until the queue
// has taken them over and releases it. Everyone reads them from the history, so
// that a page which someone terminated is lost only when its history is deleted.
// A cancel request does not end it.
func JobQueuePage(ctx workflow.Context, page QueuePage) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	var b strings.Builder
	fmt.Fprintf(&b, "**queue %s** · %d items, the first of which is #%d\n", page.Queue, len(page.Items), page.First)
	for _, item := range page.Items {
		fmt.Fprintf(&b, "\n- #%d %s", item.Sequence, item.Job.ID)
	}
	workflow.SetCurrentDetails(ctx, b.String())
	workflow.GetSignalChannel(ctx, SignalReleasePage).Receive(ctx, nil)
	return nil
}

// mustPark says that the tail has a full page.
func (q *queue) mustPark() bool {
	if q.Paging == nil || len(q.Tail) == 0 || q.cannotPark() || len(q.Parked.Pages) >= MaxQueuePages {
		return false
	}
	return len(q.Tail) >= q.Paging.Items || sizeOf(q.Tail) >= q.Paging.Bytes
}

// cannotPark says that the queue is halted, and a page could not be started.
func (q *queue) cannotPark() bool {
	return q.Halted != nil && (q.Parked.Stuck || q.Halted.Item == nil && q.Halted.Page == 0)
}

// stuckChange names the change by which a page that cannot be started, while the
// queue is halted over something else, is not tried again and again.
const stuckChange = "stuck-pages"

// parkAtOnce is how many pages are started at once.
const parkAtOnce = 8

// park starts pages with the first items of the tail. These stay in the tail
// until their pages have started: messages are taken in meanwhile.
func (q *queue) park(ctx workflow.Context) {
	if q.Parked.Epoch == "" {
		q.Parked.Epoch = epoch(workflow.GetInfo(ctx))
	}
	pages := q.nextPages()
	q.Parked.starting = pages[0].First
	started := make([]workflow.Future, len(pages))
	for i, page := range pages {
		started[i] = workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID:            contract.QueuePageWorkflowID(q.Name, q.Parked.Epoch, page.First),
			TaskQueue:             contract.QueuesTaskQueue,
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
			TypedSearchAttributes: contract.QueueAttributes(q.Name),
			StaticSummary:         fmt.Sprintf("queue %s · %d items from #%d", q.Name, len(page.Items), page.First),
		}), contract.JobQueuePageType, page).GetChildWorkflowExecution()
	}
	var failed error
	var parked []QueuePage
	for i, page := range pages {
		err := started[i].Get(ctx, nil)
		switch {
		case failed != nil && err == nil:
			// It comes after one that has not started: it is made again with that.
			q.Parked.Released = append(q.Parked.Released, page.First)
		case failed == nil && err != nil:
			failed = err
			q.Parked.Stuck = q.Halted != nil && workflow.GetVersion(ctx, stuckChange, workflow.DefaultVersion, 1) != workflow.DefaultVersion
			q.halt(Halt{Since: workflow.Now(ctx), Error: fmt.Sprintf("page %d cannot be parked: %s", page.First, err)})
		case err == nil:
			parked = append(parked, page)
		}
	}
	q.Parked.starting = 0
	q.haveParked(parked)
}

// nextPages cuts the tail into pages. What is left over, less than a page, stays.
func (q *queue) nextPages() []QueuePage {
	var pages []QueuePage
	index := append([]PageIndex(nil), q.Parked.Index...)
	for rest := q.Tail; len(pages) < parkAtOnce; {
		n := q.fits(rest)
		if n == len(rest) && n < q.Paging.Items && sizeOf(rest) < q.Paging.Bytes {
			break // Not a full page.
		}
		page := QueuePage{Queue: q.Name, First: rest[0].Sequence, Items: append([]QueueItem(nil), rest[:n]...)}
		if index = append(index, newPageIndex(page.First, page.Items)); len(index) >= chapterPages {
			page.Chapter, index = index, nil
		}
		pages = append(pages, page)
		if rest = rest[n:]; len(rest) == 0 {
			break
		}
	}
	return pages
}

// fits is how many of the first items make a page.
func (q *queue) fits(items []QueueItem) int {
	bytes := 0
	for n, item := range items {
		if bytes += item.size(); n == q.Paging.Items || n > 0 && bytes > q.Paging.Bytes {
			return n
		}
	}
	return len(items)
}

// haveParked takes the items of pages that have started off the tail. Some may
// have left it meanwhile.
func (q *queue) haveParked(pages []QueuePage) {
	if len(pages) == 0 {
		return
	}
	for _, page := range pages {
		q.Parked.Pages = append(q.Parked.Pages, PageRef{First: page.First, Index: page.Chapter != nil})
		q.Parked.Last = page.Items[len(page.Items)-1].Sequence
		q.Parked.Index = append(q.Parked.Index, newPageIndex(page.First, page.Items))
		if page.Chapter != nil {
			q.Parked.Index = nil
		}
	}
	var kept []QueueItem
	for _, item := range q.Tail {
		if item.Sequence > q.Parked.Last {
			kept = append(kept, item)
		}
	}
	q.Tail = kept
	q.WaitingBytes = sizeOf(q.Waiting) + sizeOf(q.Tail)
}

// epoch tells one queue of a name from another.
func epoch(info *workflow.Info) string {
	id := info.FirstRunID
	if id == "" {
		id = info.WorkflowExecution.RunID
	}
	return id[:min(len(id), 8)]
}

// low says that the head of the queue should be filled up.
func (q *queue) low() bool {
	return q.Paging != nil && len(q.Waiting) <= q.Paging.Items/4 && sizeOf(q.Waiting) <= q.Paging.Bytes/4
}

// halt stops the queue over its pages, unless it is halted already: then what is
// wrong with the pages is found again afterwards.
func (q *queue) halt(halt Halt) {
	if q.Halted == nil {
		q.Halted = &halt
	}
}

// refill takes a page's worth of the tail for the head when there are no pages
// between them.
func (q *queue) refill() {
	if q.mustRefill() {
		n := q.fits(q.Tail)
		q.Waiting = append(q.Waiting, q.Tail[:n]...)
		q.Tail = append([]QueueItem(nil), q.Tail[n:]...)
		q.Parked.tidy(q.Tail)
	}
}

func (q *queue) mustRefill() bool {
	return q.low() && len(q.Parked.Pages) == 0 && len(q.Tail) > 0
}

// mustTakeOver says that the next page should be read.
func (q *queue) mustTakeOver() bool {
	return q.low() && len(q.Parked.Pages) > 0 && q.reading == nil && q.Halted == nil
}

// takeOver begins to read the first page, while items run.
func (q *queue) takeOver(ctx workflow.Context) {
	first := q.Parked.Pages[0].First
	if q.Parked.waiting(first, q.Parked.end(0)) == 0 {
		q.Parked.dropFirst(q.Tail)
		return
	}
	id := contract.QueuePageWorkflowID(q.Name, q.Parked.Epoch, first)
	q.reading = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           contract.QueuesTaskQueue,
		StartToCloseTimeout: 30 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumInterval: 10 * time.Second},
		Summary:             fmt.Sprintf("items from #%d", first),
	}), contract.ReadPageActivity, id)
	q.readingPage = first
}

// endTakeOver appends the items of the page that was read to the head.
func (q *queue) endTakeOver(ctx workflow.Context) {
	var items []QueueItem
	err := q.reading.Get(ctx, &items)
	first := q.readingPage
	q.reading, q.readingPage = nil, 0
	if len(q.Parked.Pages) == 0 || q.Parked.Pages[0].First != first {
		return // Purged meanwhile.
	}
	if err != nil {
		q.halt(Halt{
			Since: workflow.Now(ctx), Error: contract.ErrorReason(err),
			Page: first, Items: q.Parked.waiting(first, q.Parked.end(0)),
		})
		return
	}
	for _, item := range items {
		if q.Parked.Waits(item.Sequence) {
			q.Waiting = append(q.Waiting, item)
			q.WaitingBytes += item.size()
		}
	}
	q.Parked.dropFirst(q.Tail)
}

// releaseAtOnce is how many pages are told to end at once.
const releaseAtOnce = 20

// release ends pages that hold nothing any more. One that has ended is left so.
func (q *queue) release(ctx workflow.Context) {
	n := min(len(q.Parked.Released), releaseAtOnce)
	told := make([]workflow.Future, n)
	for i, first := range q.Parked.Released[:n] {
		told[i] = workflow.SignalExternalWorkflow(ctx, contract.QueuePageWorkflowID(q.Name, q.Parked.Epoch, first), "", SignalReleasePage, nil)
	}
	for _, future := range told {
		if err := future.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Info("a page of the queue had ended before", "queue", q.Name, "error", err)
		}
	}
	q.Parked.Released = append([]int64(nil), q.Parked.Released[n:]...)
}

// ReadPage is the activity that reads the items of a page. It fails for good if
// the page is not there, or is not one.
func ReadPage(ctx context.Context, workflowID string) ([]QueueItem, error) {
	page, err := LoadPage(ctx, activity.GetClient(ctx), workflowID)
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return nil, temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("workflow %s is not there any more: the items of that page cannot be read", workflowID), errorTypePageNotFound, err)
	case errors.Is(err, errNoPage):
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), errorTypePageUnreadable, err)
	case err != nil:
		return nil, err
	}
	return page.Items, nil
}

// errNoPage says that a workflow under the id of a page is not that page.
var errNoPage = errors.New("it is not the page that the queue has parked")

// LoadPage reads a page from the history of its workflow, which needs no worker.
// It gives a serviceerror.NotFound if there is none.
func LoadPage(ctx context.Context, c client.Client, workflowID string) (QueuePage, error) {
	var page QueuePage
	events := c.GetWorkflowHistory(ctx, workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !events.HasNext() {
		return page, fmt.Errorf("workflow %s has no history", workflowID)
	}
	started, err := events.Next()
	if err != nil {
		return page, err
	}
	input := started.GetWorkflowExecutionStartedEventAttributes().GetInput()
	if err := converter.GetDefaultDataConverter().FromPayloads(input, &page); err != nil {
		return page, fmt.Errorf("workflow %s: %w: %w", workflowID, errNoPage, err)
	}
	if len(page.Items) == 0 || !strings.HasPrefix(workflowID, contract.QueueWorkflowID(page.Queue)+"/") ||
		!strings.HasSuffix(workflowID, fmt.Sprintf("-%d", page.First)) {
		return page, fmt.Errorf("workflow %s: %w", workflowID, errNoPage)
	}
	return page, nil
}
