package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

// JobQueuePage keeps waiting items of a deep queue, in its input, until the queue
// has taken them back and releases it. Everyone reads them from the history, so
// that a page which someone terminated is lost only when its history is deleted.
// A cancel request does not end it.
func JobQueuePage(ctx workflow.Context, page contract.QueuePage) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	var b strings.Builder
	fmt.Fprintf(&b, "**queue %s** · %d items, the first of which is #%d\n", page.Queue, len(page.Items), page.First)
	for _, item := range page.Items {
		fmt.Fprintf(&b, "\n- #%d %s", item.Sequence, item.Job.ID)
	}
	workflow.SetCurrentDetails(ctx, b.String())
	workflow.GetSignalChannel(ctx, contract.SignalReleasePage).Receive(ctx, nil)
	return nil
}

// mustOverflow reports whether pages have to be started: the tail has a full page, or the
// head runs low and nothing but the tail is left. What is in the tail goes through a
// page in any case, since that is where repeats are found.
func (q *queue) mustOverflow() bool {
	if len(q.Tail) == 0 || q.cannotStartPages() || len(q.Overflow.Pages) >= contract.MaxQueuePages {
		return false
	}
	return q.isFull(q.Tail) || q.low() && len(q.Overflow.Pages) == 0
}

// isFull reports whether items make at least a page.
func (q *queue) isFull(items []contract.QueueItem) bool {
	return len(items) >= q.PageSize.Items || sizeOf(items) >= q.PageSize.Bytes
}

// cannotStartPages reports whether the queue is halted, and a page could not be started.
func (q *queue) cannotStartPages() bool {
	return q.Halted != nil && (q.Overflow.StartFailed || q.Halted.Item == nil && q.Halted.Page == 0)
}

// pagesAtOnce is how many pages are started at once.
const pagesAtOnce = 8

// startsManyPages reports whether the tail has more than the pages that can be started at
// once: no more items are taken in until they have started.
func (q *queue) startsManyPages() bool {
	return q.mustOverflow() &&
		(len(q.Tail) >= pagesAtOnce*q.PageSize.Items || sizeOf(q.Tail) >= pagesAtOnce*q.PageSize.Bytes)
}

// startPages starts pages with the first items of the tail. These stay in the tail
// until their pages have started: messages are taken in meanwhile.
func (q *queue) startPages(ctx workflow.Context) {
	pages := q.nextPages()
	q.startingPage = pages[0].First
	starts := make([]workflow.Future, len(pages))
	for i, page := range pages {
		starts[i] = workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID:            contract.QueuePageWorkflowID(q.Name, q.Instance, page.First),
			TaskQueue:             contract.QueuesTaskQueue,
			WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
			TypedSearchAttributes: contract.QueueAttributes(q.Name),
			StaticSummary:         fmt.Sprintf("queue %s · %d items from #%d", q.Name, len(page.Items), page.First),
		}), contract.JobQueuePageType, page).GetChildWorkflowExecution()
	}
	var failed error
	var started []contract.QueuePage
	for i, page := range pages {
		err := starts[i].Get(ctx, nil)
		switch {
		case failed != nil && err == nil:
			// It comes after one that has not started: it is made again with that.
			q.Overflow.Released = append(q.Overflow.Released, page.First)
		case failed == nil && err != nil:
			failed = err
			q.Overflow.StartFailed = q.Halted != nil
			q.halt(contract.Halt{Since: workflow.Now(ctx), Error: fmt.Sprintf("overflow page %d cannot be started: %s", page.First, err)})
		case err == nil:
			started = append(started, page)
		}
	}
	q.startingPage = 0
	q.addPages(started)
}

// nextPages cuts the tail into pages. One that is not full is made only if it is the
// only one.
func (q *queue) nextPages() []contract.QueuePage {
	var pages []contract.QueuePage
	for rest := q.Tail; len(rest) > 0 && len(pages) < pagesAtOnce; {
		n := q.fits(rest)
		if n == len(rest) && !q.isFull(rest) && len(pages)+len(q.Overflow.Pages) > 0 {
			break
		}
		pages = append(pages, contract.QueuePage{Queue: q.Name, First: rest[0].Sequence, Items: slices.Clone(rest[:n])})
		rest = rest[n:]
	}
	return pages
}

// fits is how many of the first items make a page.
func (q *queue) fits(items []contract.QueueItem) int {
	bytes := 0
	for n, item := range items {
		if bytes += item.Bytes; n == q.PageSize.Items || n > 0 && bytes > q.PageSize.Bytes {
			return n
		}
	}
	return len(items)
}

// addPages takes the items of pages that have started off the tail. Some may
// have left it meanwhile.
func (q *queue) addPages(pages []contract.QueuePage) {
	for _, page := range pages {
		q.Overflow.Pages = append(q.Overflow.Pages, page.First)
		q.Overflow.Last = page.Items[len(page.Items)-1].Sequence
	}
	if len(pages) > 0 {
		q.Tail = slices.DeleteFunc(slices.Clone(q.Tail), func(item contract.QueueItem) bool { return item.Sequence <= q.Overflow.Last })
		q.WaitingBytes = sizeOf(q.Waiting) + sizeOf(q.Tail)
	}
	q.dropEmptyPages()
}

// low reports whether the head of the queue should be filled up.
func (q *queue) low() bool {
	return len(q.Waiting) <= q.PageSize.Items/4 && sizeOf(q.Waiting) <= q.PageSize.Bytes/4
}

// halt stops the queue over its pages, unless it is halted already: then what is
// wrong with the pages is found again afterwards.
func (q *queue) halt(halt contract.Halt) {
	if q.Halted == nil {
		q.Halted = &halt
	}
}

// mustReadPage reports whether the first page should be read.
func (q *queue) mustReadPage() bool {
	return q.low() && len(q.Overflow.Pages) > 0 && q.reading == nil && q.Halted == nil
}

// readPage begins to read the first page, while items run.
func (q *queue) readPage(ctx workflow.Context) {
	first := q.Overflow.Pages[0]
	q.reading = workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           contract.QueuesTaskQueue,
		StartToCloseTimeout: 30 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumInterval: 10 * time.Second},
		Summary:             fmt.Sprintf("items from #%d", first),
	}), contract.ReadPageActivity, contract.ReadPageInput{Queue: q.Name, Instance: q.Instance, Page: first})
	q.readingPage, q.startedWhileReading = first, nil
}

// takePage appends the items of the page that was read to the head, without repeats.
func (q *queue) takePage(ctx workflow.Context) {
	var page contract.ReadPageOutput
	err := q.reading.Get(ctx, &page)
	first, started := q.readingPage, q.startedWhileReading
	q.reading, q.readingPage, q.startedWhileReading = nil, 0, nil
	if len(q.Overflow.Pages) == 0 || q.Overflow.Pages[0] != first {
		return // Purged meanwhile.
	}
	if err != nil {
		q.halt(contract.Halt{
			Since: workflow.Now(ctx), Error: contract.ErrorReason(err),
			Page: first, Items: q.Overflow.CountBetween(first, q.Overflow.End(0)),
		})
		return
	}
	for _, item := range page.Items {
		if !q.Overflow.Waits(item.Sequence) {
			continue
		}
		work := item.Work()
		ran := slices.Contains(page.Ran, item.Sequence) || slices.Contains(started, work)
		if !ran && !q.joinsHead(item, work) {
			q.Waiting = append(q.Waiting, item)
			q.WaitingBytes += item.Bytes
			continue
		}
		q.finish(contract.FinishedItem{
			Sequence: item.Sequence, JobID: item.Job.ID, Status: contract.ItemSkipped, Accepted: item.Accepted,
			Ended: workflow.Now(ctx), RequestID: item.RequestID, Error: "it was in the queue already when it was put in",
		})
	}
	q.dropFirstPage()
}

// joinsHead reports whether the same work runs, or waits at an earlier place. One run does
// what both ask for.
func (q *queue) joinsHead(item contract.QueueItem, work string) bool {
	if q.Running != nil && q.Running.Work() == work || q.Halted != nil && q.Halted.Item != nil && q.Halted.Item.Work() == work {
		return true
	}
	for i := range q.Waiting {
		if q.Waiting[i].Job.ID == item.Job.ID && q.Waiting[i].Work() == work {
			q.Waiting[i].AllowRerun = q.Waiting[i].AllowRerun || item.AllowRerun
			return true
		}
	}
	return false
}

// releaseAtOnce is how many pages are ended at once.
const releaseAtOnce = 20

// releasePages ends pages in which nothing waits any more. One that has ended is left so.
func (q *queue) releasePages(ctx workflow.Context) {
	n := min(len(q.Overflow.Released), releaseAtOnce)
	signals := make([]workflow.Future, n)
	for i, first := range q.Overflow.Released[:n] {
		id := contract.QueuePageWorkflowID(q.Name, q.Instance, first)
		signals[i] = workflow.SignalExternalWorkflow(ctx, id, "", contract.SignalReleasePage, nil)
	}
	for _, future := range signals {
		if err := future.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Info("a page of the queue had ended before", "queue", q.Name, "error", err)
		}
	}
	q.Overflow.Released = slices.Clone(q.Overflow.Released[n:])
}
