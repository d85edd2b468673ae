package client

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
)

// DeadRetry is what became of the dead letters that RetryDead was given.
type DeadRetry struct {
	// Retried are the letters whose jobs are in the queue again, and Receipts their places.
	Retried  []contract.DeadLetter
	Receipts []contract.EnqueueReceipt
	// Left are those that cannot be retried.
	Left []KeptDeadLetter
}

// KeptDeadLetter is a dead letter that cannot be retried, and stays.
type KeptDeadLetter struct {
	DeadLetter contract.DeadLetter
	// Why is one sentence: its definition is kept nowhere, or the queue refuses it.
	Why string
}

func (d *DeadRetry) leave(letter contract.DeadLetter, format string, args ...any) {
	d.Left = append(d.Left, KeptDeadLetter{letter, fmt.Sprintf(format, args...)})
}

// RetryDead puts the jobs of dead letters into their queue again, at its end, and
// takes the letters away. Each goes on at the last position that its latest run has
// left. There is one item for each of RetriedDeadLetters; dead letters that these leave stay,
// and so do those that cannot be retried, which are named. It reports how many are
// done. Beside an error it gives what was done before.
func (c *QueueClient) RetryDead(ctx context.Context, queue string, letters []contract.DeadLetter, report func(done int)) (DeadRetry, error) {
	letters, _ = RetriedDeadLetters(letters)
	var outcome DeadRetry
	items := make([]contract.EnqueueItem, len(letters))
	lacking := make([]string, len(letters))
	err := Each(len(letters), func(i int) (err error) {
		items[i], lacking[i], err = c.deadItem(ctx, letters[i])
		return err
	})
	if err != nil {
		return outcome, err
	}
	var sent []contract.DeadLetter
	var sendable []contract.EnqueueItem
	for i, letter := range letters {
		if lacking[i] != "" {
			outcome.leave(letter, "%s", lacking[i])
			continue
		}
		sent, sendable = append(sent, letter), append(sendable, items[i])
	}
	for alone := 0; len(sendable) > 0; alone-- {
		n := batchOf(sendable)
		if alone > 0 {
			n = 1
		}
		receipts, err := c.putIn(ctx, queue, sendable[:n], NewRequestID())
		refused, ok := errors.AsType[*temporal.ApplicationError](err)
		switch {
		case ok && refused.Type() == contract.ErrorTypeItemRefused && n > 1:
			alone = n + 1 // One of them is refused: the others come one by one.
			continue
		case ok && refused.Type() == contract.ErrorTypeItemRefused:
			outcome.leave(sent[0], "%s", refused.Message())
		case err != nil:
			return outcome, err
		default:
			outcome.Retried = append(outcome.Retried, sent[:n]...)
			outcome.Receipts = append(outcome.Receipts, receipts...)
		}
		sent, sendable = sent[n:], sendable[n:]
		report(len(outcome.Retried) + len(outcome.Left))
	}
	return outcome, nil
}

// deadItem is the item that retries a dead letter, or one sentence on what it lacks.
func (c *conn) deadItem(ctx context.Context, letter contract.DeadLetter) (item contract.EnqueueItem, lacks string, err error) {
	item = contract.EnqueueItem{DeadLetter: letter.Sequence}
	if letter.RunID == "" {
		return item, "no run of it was started, which would have its definition", nil
	}
	run, err := c.runs().Get(ctx, RunRef{WorkflowID: contract.JobWorkflowID(letter.JobID), RunID: letter.RunID})
	switch {
	case errors.Is(err, ErrNotFound):
		return item, "its run, which has its definition, is older than runs are kept", nil
	case err != nil:
		return item, "", err
	case run.Job == nil:
		return item, "its run does not carry its definition", nil
	}
	item.Job, item.RetryOf, item.Cursor = *run.Job, letter.RunID, run.Cursor
	return item, "", nil
}
