package workers_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

// spansOf tells what a run did, and holds its times to what is always so.
func spansOf(t *testing.T, c *client.Client, ref client.RunRef) []client.Span {
	t.Helper()
	detail, err := c.Runs.Get(t.Context(), ref)
	require.NoError(t, err)
	spans, err := c.Runs.Spans(t.Context(), detail)
	require.NoError(t, err)
	for i, span := range spans {
		require.NotZero(t, span.Start, "%+v", spans)
		require.Equal(t, span.End.IsZero(), detail.Status.Open() && i+1 == len(spans), "the last one of a run under way alone goes on: %+v", spans)
		require.False(t, !span.End.IsZero() && span.End.Before(span.Start), "%+v", spans)
		require.False(t, i > 0 && span.Start.Before(spans[i-1].End), "one after the other: %+v", spans)
	}
	return spans
}

// kindsOf are the kinds of spans, without waits for a worker: how long a busy machine takes for
// the next attempt is not what is asked about.
func kindsOf(spans []client.Span) (kinds []client.SpanKind) {
	for _, span := range spans {
		if span.Kind != client.SpanWaitedForWorker {
			kinds = append(kinds, span.Kind)
		}
	}
	return kinds
}

// attemptsIn are the attempts among spans.
func attemptsIn(spans []client.Span) (attempts []client.Span) {
	for _, span := range spans {
		if span.Kind == client.SpanRan {
			attempts = append(attempts, span)
		}
	}
	return attempts
}

// Temporal's history has the last attempt alone: the spans have all of them.
func TestSpansHaveEachAttempt(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	gate := workertest.NewGate(t)
	flaky := job.NewType("Flaky", "testing", "Fails twice.", func(ctx context.Context, run job.Run, _ struct{}) (job.Result, error) {
		switch run.Attempt() {
		case 1:
			return job.Result{}, errors.New("no answer\nand more lines")
		case 2:
			return job.Result{}, job.Retryable("Slow", 700*time.Millisecond, "the answer was late")
		}
		return job.Result{Message: "done"}, workertest.Pass(ctx, run, gate)
	})
	workertest.Run(t, st, workers.Config{Worker: "testing", Types: append(testTypes(), flaky)})
	j := newJob(t, "Flaky", "a", oneShot(), struct{}{})
	j.Options.RetryBackoff = job.Backoff{Initial: job.Duration(300 * time.Millisecond), Max: job.Duration(time.Second), Coefficient: 2}
	ref := startRun(t, c, j)
	stacktest.WaitFor(t, "the third attempt", func() (bool, error) {
		return len(attemptsIn(spansOf(t, c, ref))) == 3, nil
	})
	check := func() {
		spans := spansOf(t, c, ref)
		require.Equal(t, []client.SpanKind{client.SpanRan, client.SpanBackedOff, client.SpanRan, client.SpanBackedOff, client.SpanRan}, kindsOf(spans))
		attempts := attemptsIn(spans)
		require.Equal(t, []any{1, "Error", "no answer"}, []any{attempts[0].Attempt, attempts[0].Class, attempts[0].Reason})
		require.Equal(t, []any{2, "Slow", "the answer was late"}, []any{attempts[1].Attempt, attempts[1].Class, attempts[1].Reason})
		require.Equal(t, []any{3, "", ""}, []any{attempts[2].Attempt, attempts[2].Class, attempts[2].Reason})
		require.GreaterOrEqual(t, attempts[1].Start.Sub(attempts[0].End), 290*time.Millisecond)
		require.GreaterOrEqual(t, attempts[2].Start.Sub(attempts[1].End), 690*time.Millisecond)
		require.NotEmpty(t, attempts[0].Worker)
	}
	check()
	workertest.Open(t, gate)
	requireCompleted(t, c, ref)
	check()

	// One that fails at its last attempt.
	bad := newJob(t, "PanicAtOnce", "b", oneShot(), struct{}{})
	bad.Options.MaxRetryCount = 1
	bad.Options.RetryBackoff = j.Options.RetryBackoff
	failed := startRun(t, c, bad)
	require.Equal(t, client.RunFailed, follow(t, c, failed).Status)
	attempts := attemptsIn(spansOf(t, c, failed))
	require.Equal(t, "Panic", attempts[len(attempts)-1].Class)

	// Those that are ended from outside end with the run.
	ledger := workertest.NewBook(t)
	spec := recordSpec{Ledger: string(ledger), Steps: 2, Gate: workertest.NewGate(t)}
	canceled, terminated := startRun(t, c, newJob(t, "RecordSteps", "canceled", oneShot(), spec)), startRun(t, c, newJob(t, "RecordSteps", "terminated", oneShot(), spec))
	ledger.WaitFor(t, "step", 2)
	require.NoError(t, c.Runs.Cancel(t.Context(), canceled, "by test"))
	require.NoError(t, c.Runs.Terminate(t.Context(), terminated, "by test"))
	follow(t, c, canceled)
	require.Equal(t, "it was asked to stop", attemptsIn(spansOf(t, c, canceled))[0].Reason)
	require.Len(t, attemptsIn(spansOf(t, c, terminated)), 1)
}

// A run moves from a worker that dies, and from one that shuts down: the spans say why.
func TestSpansSayWhyARunMoved(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	first := startService(t, st, "first")
	j := withShortTimeout(newJob(t, "RecordSteps", "a", oneShot(), recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate}))
	ref := startRun(t, c, j)
	waitFirstStep(t, c, ref)
	first.Kill()
	second := startService(t, st, "second")
	ledger.WaitFor(t, "start", 2)
	second.Signal(syscall.SIGTERM)
	startService(t, st, "third")
	ledger.WaitFor(t, "start", 3)
	workertest.Open(t, gate)
	requireCompleted(t, c, ref)

	spans := spansOf(t, c, ref)
	var ran, moved []client.Span
	for _, span := range spans {
		switch span.Kind { //nolint:exhaustive // The others are pauses.
		case client.SpanRan:
			ran = append(ran, span)
		case client.SpanMoved:
			moved = append(moved, span)
		}
	}
	require.Len(t, ran, 3, "%+v", spans)
	require.Equal(t, []any{1, "HeartbeatTimeout"}, []any{ran[0].Attempt, ran[0].Class}, "%+v", spans)
	require.Equal(t, []any{2, "", "the worker shuts down and hands the run over"}, []any{ran[1].Attempt, ran[1].Class, ran[1].Reason}, "%+v", spans)
	require.Equal(t, []any{3, "", ""}, []any{ran[2].Attempt, ran[2].Class, ran[2].Reason}, "%+v", spans)
	require.Len(t, moved, 2, "%+v", spans)
	require.Equal(t, []string{ran[1].Worker, ran[0].Worker + " fell silent"}, []string{moved[0].Worker, moved[0].Reason})
	require.Equal(t, []string{ran[2].Worker, ran[1].Worker + " shut down"}, []string{moved[1].Worker, moved[1].Reason})
}

// What a run waits for before its first attempt is a span of its own.
func TestSpansHaveWaits(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	gate := workertest.NewGate(t)
	spec := recordSpec{Ledger: string(ledger), Steps: 2, Gate: gate}
	ref, err := c.Runs.StartAt(t.Context(), newJob(t, "RecordSteps", "later", oneShot(), spec), contract.StartedByHand, client.StartOptions{At: time.Now().Add(1500 * time.Millisecond)})
	require.NoError(t, err)
	spans := spansOf(t, c, ref)
	require.Equal(t, []any{client.SpanWaited, "for its time"}, []any{spans[0].Kind, spans[0].Reason})
	stacktest.WaitFor(t, "it to wait for a worker", func() (bool, error) {
		spans = spansOf(t, c, ref)
		last := spans[len(spans)-1]
		return last.Kind == client.SpanWaitedForWorker && last.Reason == "no live worker serves RecordSteps", nil
	})
	require.Len(t, spans, 2)

	workertest.Run(t, st, workers.Config{Worker: "testing", Types: testTypes()})
	one, two := newJob(t, "RecordSteps", "one", queuedIn("spans"), spec), newJob(t, "RecordSteps", "two", queuedIn("spans"), recordSpec{Ledger: string(ledger), Steps: 1})
	enqueue(t, c, one, two)
	ledger.WaitFor(t, "step", 2)
	waitOut(t, 200*time.Millisecond)
	workertest.Open(t, gate)
	requireCompleted(t, c, ref)
	turn := client.RunRef{WorkflowID: contract.JobWorkflowID(two.ID)}
	stacktest.WaitFor(t, "the second item", func() (bool, error) {
		_, err := c.Runs.Get(t.Context(), turn)
		return err == nil, nil
	})
	requireCompleted(t, c, turn)
	spans = spansOf(t, c, turn)
	require.Equal(t, []any{client.SpanWaited, "for its turn in queue spans"}, []any{spans[0].Kind, spans[0].Reason})
	require.GreaterOrEqual(t, spans[0].End.Sub(spans[0].Start), 200*time.Millisecond)
	require.Equal(t, client.SpanRan, spans[len(spans)-1].Kind)
}
