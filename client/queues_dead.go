package client

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// DeadRetry is what became of the dead letters that RetryDead was given.
type DeadRetry struct {
	// Retried are the letters whose jobs are in the queue again, and Receipts their places.
	Retried  []contract.DeadLetter
	Receipts []contract.EnqueueReceipt
	// Later are letters of jobs that are retried with another spec: they can be retried
	// when that has ended.
	Later []contract.DeadLetter
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
// left. A queue holds a job with one spec: of a job that failed with several, the letters
// with the first spec are retried. Letters that are not retried stay. It reports how many
// of how many are done. Beside an error it gives what was done before.
func (c *QueueClient) RetryDead(ctx context.Context, queue string, letters []contract.DeadLetter, report func(done, all int)) (DeadRetry, error) {
	letters, later := retriedDeadLetters(letters)
	outcome := DeadRetry{Later: later}
	items := make([]contract.EnqueueItem, len(letters))
	lacking := make([]string, len(letters))
	err := temporalclient.Each(len(letters), 0, func(i int) (err error) {
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
		receipts, err := c.putIn(ctx, queue, sendable[:n], newRequestID())
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
		report(len(outcome.Retried)+len(outcome.Left), len(letters))
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

// latestDeadLetters leaves one dead letter of each job and spec, in the order of a queue,
// which is that of the failures: the latest, since its run has the last position.
func latestDeadLetters(letters []contract.DeadLetter) []contract.DeadLetter {
	type work struct{ jobID, definitionHash string }
	latest := map[work]int{}
	for i, letter := range letters {
		latest[work{letter.JobID, letter.DefinitionHash}] = i
	}
	var kept []contract.DeadLetter
	for i, letter := range letters {
		if latest[work{letter.JobID, letter.DefinitionHash}] == i {
			kept = append(kept, letter)
		}
	}
	return kept
}

// retriedDeadLetters are those of latestDeadLetters that can be retried at once, in their
// order: of a job that has failed with several specs only those with the first. The
// others are left for later.
func retriedDeadLetters(letters []contract.DeadLetter) (retried, later []contract.DeadLetter) {
	specs := map[string]string{}
	for _, letter := range latestDeadLetters(letters) {
		first, known := specs[letter.JobID]
		if known && letter.DefinitionHash != first {
			later = append(later, letter)
			continue
		}
		specs[letter.JobID] = letter.DefinitionHash
		retried = append(retried, letter)
	}
	return retried, later
}
