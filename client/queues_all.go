package client

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// QueueResult is a queue that was asked for, or why it is not known.
type QueueResult struct {
	Name  string
	Queue *Queue
	Err   error
}

// GetAll is [QueueClient.Get] of several queues, some at a time, in their order. Those that there are
// not are left out. Once no worker answers for one, the others are not asked, and have [ErrNoWorker]
// too: all queues have the same workers. One queue's trouble is not that of the others: the error is
// that of a server that is gone, or of the end of ctx.
func (c *QueueClient) GetAll(ctx context.Context, names []string) ([]QueueResult, error) {
	results := make([]QueueResult, len(names))
	var noWorker atomic.Bool
	err := temporalclient.Each(len(names), 0, func(i int) error {
		r := &results[i]
		if r.Name = names[i]; noWorker.Load() {
			r.Err = ErrNoWorker
			return nil
		}
		r.Queue, r.Err = c.Get(ctx, r.Name)
		if failsAll(ctx, r.Err) {
			return r.Err
		}
		if errors.Is(r.Err, ErrNoWorker) {
			noWorker.Store(true)
		}
		return nil
	})
	if err != nil {
		failed := slices.IndexFunc(results, func(r QueueResult) bool { return failsAll(ctx, r.Err) })
		return nil, results[failed].Err
	}
	return slices.DeleteFunc(results, func(r QueueResult) bool { return errors.Is(r.Err, ErrNotFound) }), nil
}

// failsAll reports whether an error of one call would be that of all others too.
func failsAll(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || temporalclient.ServerGone(err))
}

// eachWaitingIn goes through what waits in queues, in the order it will run, until visit says
// false. Unread are the queues of which not all items are known, with the reason.
func (c *conn) eachWaitingIn(ctx context.Context, names []string, visit func(queue string, item contract.QueueItem) bool) (unread []QueueResult, _ error) {
	results, err := c.queues().GetAll(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		more := true
		if r.Err == nil {
			r.Err = c.eachWaiting(ctx, r.Queue.state, 0, func(item contract.QueueItem) bool {
				more = visit(r.Name, item)
				return more
			})
		}
		switch {
		case failsAll(ctx, r.Err):
			return nil, r.Err
		case r.Err != nil:
			unread = append(unread, r)
		case !more:
			return nil, nil
		}
	}
	return unread, nil
}
