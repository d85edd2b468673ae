package workers_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// promise notes what a caller was promised for jobs, in any order.
func promise(promised []acknowledged, jobs []job.Job, receipts []contract.EnqueueReceipt) []acknowledged {
	for i, receipt := range receipts {
		promised = append(promised, acknowledged{receipt.Sequence, jobs[i].ID})
	}
	return promised
}

func bySequence(promised []acknowledged) []acknowledged {
	sort.Slice(promised, func(a, b int) bool { return promised[a].sequence < promised[b].sequence })
	return promised
}

// TestQueueUnderForcedContinueAsNew lets eight producers fill a queue that
// continues as new every hundred events and has small pages: six by single messages
// and by batches, two by signals, which are answered by nobody. Signals are what
// gets lost when a workflow continues as new while one of its coroutines holds them.
func TestQueueUnderForcedContinueAsNew(t *testing.T) {
	t.Parallel()
	const producers, signaling = 8, 2
	items := stacktest.Size(160, 2000)
	st := stacktest.StartOwn(t, "--only", "temporal", "--history-events", "100")
	startWorker(t, st)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	t.Logf("%d items", items)
	seeds := stacktest.Random(t)
	startPaged(t, c, "forced", 20, contract.QueueState{})

	began := time.Now()
	var mu sync.Mutex
	var promised []acknowledged
	var wait sync.WaitGroup
	signaled := make([][]job.Job, signaling)
	for producer := range producers {
		random := rand.New(rand.NewPCG(seeds.Uint64(), 0))
		jobs := recordJobs(t, "forced", fmt.Sprintf("p%d-", producer), items/producers, ledger)
		if producer < signaling {
			signaled[producer] = jobs
			wait.Go(func() { signalAll(t, c, "forced", jobs) })
			continue
		}
		wait.Go(func() {
			for len(jobs) > 0 {
				n := min(1+random.IntN(4), len(jobs))
				receipts, err := c.Queues.EnqueueAll(t.Context(), jobs[:n], client.EnqueueOptions{}, func(int) {})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				promised = promise(promised, jobs[:n], receipts)
				mu.Unlock()
				jobs = jobs[n:]
			}
		})
	}
	wait.Wait()
	t.Logf("%d items in after %s", items, time.Since(began).Round(time.Millisecond))
	all := int64(items / producers * producers)
	stacktest.WaitWithin(t, 40*time.Minute, "the last item", func() (bool, error) { return ledger.Count(t, "end") >= int(all), nil })
	state := waitEmpty(t, c, "forced")
	require.Equal(t, all, state.Accepted)
	require.Equal(t, all, state.Completed)
	require.Empty(t, state.DeadLetters)
	order := requireAlone(t, ledger)
	require.Len(t, order, int(all), "each ran, and once")
	requireOrder(t, order, bySequence(promised))
	for _, jobs := range signaled {
		var sent []acknowledged
		for _, j := range jobs {
			sent = append(sent, acknowledged{jobID: j.ID})
		}
		requireOrder(t, order, sent)
	}
	t.Logf("all ran after %s: %d runs of the workflow, the last item in a page has number %d",
		time.Since(began).Round(time.Millisecond), state.Generation+1, state.Overflow.Last)
	require.Greater(t, state.Generation, items/100)
}

// signalAll puts jobs into a queue by signals, one after the other.
func signalAll(t *testing.T, c *client.Client, queue string, jobs []job.Job) {
	t.Helper()
	for _, j := range jobs {
		err := c.Temporal().SignalWorkflow(t.Context(), contract.QueueWorkflowID(queue), "", contract.SignalEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: j}}})
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// TestDeepQueueSurvivesKills starts pages while the worker and the stack are
// killed, and drains them through more kills. One page is terminated by hand.
func TestDeepQueueSurvivesKills(t *testing.T) {
	t.Parallel()
	items := stacktest.Size(120, 400)
	random := stacktest.Random(t)
	st := stacktest.StartOwn(t, "--only", "temporal", "--history-events", "100")
	worker := startWorker(t, st)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	startPaged(t, c, "deep", 8, contract.QueueState{Paused: true})
	jobs := recordJobs(t, "deep", "i", items, ledger)
	put := make(chan []acknowledged)
	go func() {
		var promised []acknowledged
		defer func() { put <- promised }()
		for rest := jobs; len(rest) > 0; rest = rest[min(7, len(rest)):] {
			batch := rest[:min(7, len(rest))]
			// A producer that gets an error asks again with the same keys.
			for attempt := 0; ; attempt++ {
				receipts, err := c.Queues.EnqueueAll(t.Context(), batch, client.EnqueueOptions{}, func(int) {})
				if err == nil {
					promised = promise(promised, batch, receipts)
					break
				}
				if attempt == 30 || t.Context().Err() != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	stacktest.WaitFor(t, "pages", func() (bool, error) {
		state, err := c.Queues.State(t.Context(), "deep")
		return err == nil && len(state.Overflow.Pages) > 1+random.IntN(4), nil
	})
	worker.Kill()
	worker = startWorker(t, st)
	st.Kill()
	st.Restart(t)
	promised := bySequence(<-put)
	require.Len(t, promised, items)

	state := workertest.WaitQueue(t, c, "deep", "all items", func(s *contract.QueueState) bool { return s.Depth() == items })
	require.Greater(t, len(state.Overflow.Pages), 10)
	page := state.Overflow.Pages[random.IntN(len(state.Overflow.Pages))]
	require.NoError(t, c.Temporal().TerminateWorkflow(t.Context(), contract.QueuePageWorkflowID("deep", state.Instance, page), "", "by test"))

	_, err := c.Queues.Resume(t.Context(), "deep")
	require.NoError(t, err)
	ledger.WaitFor(t, "end", 20+random.IntN(30))
	worker.Kill()
	worker = startWorker(t, st)
	ledger.WaitFor(t, "end", 70+random.IntN(30))
	st.Kill()
	worker.Kill()
	st.Restart(t)
	startWorker(t, st)
	state = waitEmpty(t, c, "deep")
	require.EqualValues(t, items, state.Completed, "a page that was terminated is read from its history")
	requireSerial(t, promised, ledger)
	stacktest.WaitFor(t, "the pages to end", func() (bool, error) {
		count, err := c.Temporal().CountWorkflow(t.Context(), countRequest(st, contract.JobQueuePageType))
		return err == nil && count.GetCount() == 0, err
	})
}

// TestDeepQueueFindsAndMovesWhatIsInPages works with jobs that wait in overflow pages.
func TestDeepQueueFindsAndMovesWhatIsInPages(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	startPaged(t, c, "known", 8, contract.QueueState{Paused: true})
	const items = 400 // 49 pages.
	jobs := recordJobs(t, "known", "i", items, ledger)
	_, err := c.Queues.EnqueueAll(t.Context(), jobs, client.EnqueueOptions{}, func(int) {})
	require.NoError(t, err)

	// A part of the file again, and one job by fifty callers at once: what waits in pages
	// gets another number, and is skipped at its turn.
	receipts, err := c.Queues.EnqueueAll(t.Context(), jobs[:20], client.EnqueueOptions{}, func(int) {})
	require.NoError(t, err)
	for i, receipt := range receipts {
		require.Equal(t, i < 8, receipt.Duplicate, "the head is known at once")
	}
	const repeats = 12
	removed, err := c.Queues.Purge(t.Context(), "known", items+1, 0)
	require.NoError(t, err)
	require.Equal(t, repeats, removed)
	copies := 0
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			receipt, err := c.Queues.Enqueue(t.Context(), jobs[10], client.EnqueueOptions{})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if !receipt.Duplicate {
				copies++
			}
		})
	}
	wait.Wait()
	require.Positive(t, copies)

	summary, err := c.Queues.MoveToFront(t.Context(), "known", jobs[200].ID)
	require.NoError(t, err)
	require.Equal(t, items+copies, summary.Waiting)
	_, err = c.Queues.CancelItem(t.Context(), "known", jobs[300].ID)
	require.NoError(t, err)
	_, err = c.Queues.CancelItem(t.Context(), "known", jobs[300].ID)
	require.ErrorIs(t, err, client.ErrNotInQueue)
	live, err := c.Jobs.Live(t.Context(), jobs[250].ID)
	require.NoError(t, err)
	require.EqualValues(t, 251, live.Waiting.Sequence)
	detail, err := c.Jobs.Get(t.Context(), jobs[250].ID)
	require.NoError(t, err)
	require.Equal(t, 250, detail.Ahead)
	receipt, err := c.Queues.Enqueue(t.Context(), jobs[300], client.EnqueueOptions{})
	require.NoError(t, err)
	require.Equal(t, contract.EnqueueReceipt{Sequence: int64(items + repeats + copies + 1), Ahead: items + copies - 1}, receipt, "what was canceled may come again")
	removed, err = c.Queues.Purge(t.Context(), "known", 21, 390)
	require.NoError(t, err)
	require.Equal(t, 369, removed, "the moved one keeps its number")

	peeked, err := c.Queues.Peek(t.Context(), "known", 0, 0)
	require.NoError(t, err)
	var want, got []string
	for _, j := range slices.Concat(jobs[:20], jobs[390:], jobs[300:301]) {
		want = append(want, j.ID)
	}
	for i, item := range peeked {
		require.Equal(t, i, item.Ahead)
		if item.Sequence <= items || item.Job.ID != jobs[10].ID {
			got = append(got, item.Job.ID)
		}
	}
	require.Equal(t, want, got)
	require.Len(t, peeked, len(want)+copies)
	_, err = c.Queues.Resume(t.Context(), "known")
	require.NoError(t, err)
	waitEmpty(t, c, "known")
	var ran []string
	for _, e := range ledger.Read(t) {
		if e.What == "start" {
			ran = append(ran, e.JobID)
		}
	}
	require.Equal(t, want, ran)
}

// TestTurnOfARepeat follows a repeat of an item in an overflow page: to the run of that
// item, whether it is awaited before the item's turn or after it.
func TestTurnOfARepeat(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	const queue, others = "repeat-awaited", 20
	startPaged(t, c, queue, 4, contract.QueueState{Paused: true})
	jobs := recordJobs(t, queue, "i", 12, ledger)
	_, err := c.Queues.EnqueueAll(t.Context(), jobs, client.EnqueueOptions{}, func(int) {})
	require.NoError(t, err)
	workertest.WaitQueue(t, c, queue, "overflow pages", func(s *contract.QueueState) bool { return len(s.Overflow.Pages) == 2 })
	first := jobs[8]
	receipt, err := c.Queues.Enqueue(t.Context(), first, client.EnqueueOptions{})
	require.NoError(t, err)
	require.Equal(t, contract.EnqueueReceipt{Sequence: 13, Ahead: 12}, receipt, "it is not recognized here")

	turns := make(chan client.Turn, 1)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		turn, err := c.Queues.AwaitTurn(t.Context(), first, receipt.Sequence, func(int) {})
		if err != nil {
			t.Error(err)
		}
		turns <- turn
	})
	_, err = c.Queues.Resume(t.Context(), queue)
	require.NoError(t, err)
	waiting.Wait()
	state := waitEmpty(t, c, queue)
	require.EqualValues(t, 1, state.Skipped)
	run, err := c.Runs.Get(t.Context(), client.RunRef{WorkflowID: contract.JobWorkflowID(first.ID)})
	require.NoError(t, err)
	require.Equal(t, client.RunCompleted, run.Status)
	require.Equal(t, run.RunRef, *(<-turns).Run)

	turn, err := c.Queues.AwaitTurn(t.Context(), first, receipt.Sequence, func(int) {})
	require.NoError(t, err)
	require.Equal(t, run.RunRef, *turn.Run)
	require.Equal(t, contract.ItemSkipped, turn.Finished.Status)

	_, err = c.Queues.EnqueueAll(t.Context(), recordJobs(t, queue, "o", others, ledger), client.EnqueueOptions{}, func(int) {})
	require.NoError(t, err)
	waitEmpty(t, c, queue)
	turn, err = c.Queues.AwaitTurn(t.Context(), first, receipt.Sequence, func(int) {})
	require.NoError(t, err)
	require.Equal(t, run.RunRef, *turn.Run, "the queue has forgotten how the item ended")
}

// occupyPage starts a workflow under the id of a page that is none.
func occupyPage(t *testing.T, c *client.Client, id string) {
	t.Helper()
	_, err := c.Temporal().ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{ID: id, TaskQueue: "nowhere"}, "Nothing", "not a page")
	require.NoError(t, err)
	t.Cleanup(func() {
		// It may have been ended by the test itself.
		_ = c.Temporal().TerminateWorkflow(context.Background(), id, "", "end of test")
	})
}

// TestQueueHaltsOverAPageThatItCannotRead puts something else under the id of a
// page: the queue says so, and can give the page up.
func TestQueueHaltsOverAPageThatItCannotRead(t *testing.T) {
	t.Parallel()
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	startPaged(t, c, "unreadable", 8, contract.QueueState{Paused: true})
	_, err := c.Queues.EnqueueAll(t.Context(), recordJobs(t, "unreadable", "i", 40, ledger), client.EnqueueOptions{}, func(int) {})
	require.NoError(t, err)
	state := workertest.WaitQueue(t, c, "unreadable", "pages", func(s *contract.QueueState) bool { return len(s.Overflow.Pages) >= 2 })
	first := state.Overflow.Pages[0]
	page := contract.QueuePageWorkflowID("unreadable", state.Instance, first)
	require.NoError(t, c.Temporal().TerminateWorkflow(t.Context(), page, "", "by test"))
	occupyPage(t, c, page)
	_, err = c.Queues.Resume(t.Context(), "unreadable")
	require.NoError(t, err)
	state = workertest.WaitQueue(t, c, "unreadable", "a halt", func(s *contract.QueueState) bool { return s.Halted != nil })
	require.Equal(t, first, state.Halted.Page)
	require.Contains(t, state.Halted.Reason(), "workflow "+page+": it is not the overflow page of the queue")
	_, err = c.Queues.SkipFailed(t.Context(), "unreadable")
	require.NoError(t, err)
	state = waitEmpty(t, c, "unreadable")
	require.EqualValues(t, 8, state.Lost)
	require.EqualValues(t, 32, state.Completed)
	require.Equal(t, 32, ledger.Count(t, "end"))
}

// TestHaltedQueueDoesNotSpinOverAPageThatCannotBeStarted fails to start a page while
// the queue is halted over an item: it is tried again when the queue goes on.
func TestHaltedQueueDoesNotSpinOverAPageThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	const name = "stuck"
	st := startShared(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	startPaged(t, c, name, 4, contract.QueueState{OnFailure: job.OnFailureHalt})
	fails := newJob(t, "RecordSteps", "fails", queuedIn(name), recordSpec{Ledger: string(ledger), Fail: "Broken"})
	enqueue(t, c, fails)
	workertest.WaitQueue(t, c, name, "a halt", func(s *contract.QueueState) bool { return s.Halted != nil })
	described, err := c.Temporal().DescribeWorkflowExecution(t.Context(), contract.QueueWorkflowID(name), "")
	require.NoError(t, err)
	runID := described.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	// The head takes numbers 2 to 5.
	page := contract.QueuePageWorkflowID(name, runID[:8], 6)
	occupyPage(t, c, page)
	_, err = c.Queues.EnqueueAll(t.Context(), recordJobs(t, name, "i", 9, ledger), client.EnqueueOptions{}, func(int) {})
	require.NoError(t, err)
	workertest.WaitQueue(t, c, name, "a page that is stuck", func(s *contract.QueueState) bool { return s.Overflow.StartFailed })
	failedStarts := func() (n int) {
		events := c.Temporal().GetWorkflowHistory(t.Context(), contract.QueueWorkflowID(name), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			require.NoError(t, err)
			if event.GetEventType() == enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED {
				n++
			}
		}
		return n
	}
	for range 10 { // Each message is a workflow task, in which it could be tried again.
		_, err = c.Queues.Pause(t.Context(), name, "by test")
		require.NoError(t, err)
	}
	require.Equal(t, 1, failedStarts())

	_, err = c.Queues.SkipFailed(t.Context(), name)
	require.NoError(t, err)
	state := workertest.WaitQueue(t, c, name, "a halt over the page", func(s *contract.QueueState) bool { return s.Halted != nil })
	require.Contains(t, state.Halted.Reason(), "overflow page 6 cannot be started")
	require.Equal(t, 2, failedStarts())
	require.NoError(t, c.Temporal().TerminateWorkflow(t.Context(), page, "", "by test"))
	_, err = c.Queues.Resume(t.Context(), name)
	require.NoError(t, err)
	state = waitEmpty(t, c, name)
	require.EqualValues(t, 9, state.Completed)
	require.Equal(t, 9, ledger.Count(t, "end"))
}

func countRequest(st *stacktest.Stack, workflowType string) *workflowservice.CountWorkflowExecutionsRequest {
	return &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: st.Namespace, Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", workflowType),
	}
}
