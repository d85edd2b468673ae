package client

import (
	"context"
	"slices"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// inPages finds the items of a job that wait in the overflow pages of a queue, in the
// order they will run. It reads all pages: 1,400 of them in a queue of 100,000 items.
func (c *conn) inPages(ctx context.Context, state *contract.QueueState, jobID string) ([]contract.QueueItem, error) {
	var found []contract.QueueItem
	_, err := c.eachInPages(ctx, state, state.Overflow.Pages, func(item contract.QueueItem) bool {
		if item.Job.ID == jobID {
			found = append(found, item)
		}
		return true
	})
	return found, err
}

// eachWaiting goes through what waits in a queue, in the order it will run,
// without the first skip items. It ends early when visit says false.
func (c *conn) eachWaiting(ctx context.Context, state *contract.QueueState, skip int, visit func(contract.QueueItem) bool) error {
	after := func(item contract.QueueItem) bool {
		if skip > 0 {
			skip--
			return true
		}
		return visit(item)
	}
	if !visitAll(state.Waiting, after) {
		return nil
	}
	pages := state.Overflow.Pages
	for i, first := range pages {
		n := state.Overflow.CountBetween(first, state.Overflow.End(i))
		if n > skip {
			break
		}
		skip -= n
		pages = state.Overflow.Pages[i+1:]
	}
	more, err := c.eachInPages(ctx, state, pages, after)
	if more && err == nil {
		visitAll(state.Tail, after)
	}
	return err
}

func visitAll(items []contract.QueueItem, visit func(contract.QueueItem) bool) (more bool) {
	return !slices.ContainsFunc(items, func(item contract.QueueItem) bool { return !visit(item) })
}

// eachInPages goes through what waits in some overflow pages of a queue, until visit
// says false. Pages are read several at a time. They never change: what they say fits
// the state, however old that is.
func (c *conn) eachInPages(
	ctx context.Context, state *contract.QueueState, pages []int64, visit func(contract.QueueItem) bool,
) (more bool, _ error) {
	for chunk := range slices.Chunk(pages, temporalclient.CallLimit) {
		read := make([][]contract.QueueItem, len(chunk))
		err := temporalclient.Each(len(chunk), 0, func(i int) error {
			page, err := temporalclient.ReadQueuePage(ctx, c.temporal, contract.ReadPageInput{Queue: state.Name, Instance: state.Instance, Page: chunk[i]})
			if isNotFound(err) {
				return stateErrorf("overflow page %d of queue %s is not there any more: its items cannot be read", chunk[i], state.Name)
			}
			read[i] = slices.DeleteFunc(page.Items, func(item contract.QueueItem) bool { return !state.Overflow.Waits(item.Sequence) })
			return err
		})
		if err != nil {
			return false, err
		}
		if !visitAll(slices.Concat(read...), visit) {
			return false, nil
		}
	}
	return true, nil
}

// Placed is a waiting item with how many items are ahead of it.
type Placed struct {
	Ahead int `json:"ahead"`
	contract.QueueItem
}

// Peek gives what waits in a queue, in the order it will run, from the given
// place on: 0 is the next. A limit of 0 means all.
func (c *QueueClient) Peek(ctx context.Context, name string, from, limit int) ([]Placed, error) {
	state, err := c.State(ctx, name)
	if err != nil {
		return nil, err
	}
	ahead := from + state.Busy()
	var items []Placed
	err = c.eachWaiting(ctx, state, from, func(item contract.QueueItem) bool {
		items = append(items, Placed{Ahead: ahead + len(items), QueueItem: item})
		return limit == 0 || len(items) < limit
	})
	return items, err
}

// PeekAfter is Peek for the items that come after the one with a number, which need not
// wait any more. Items that someone moves meanwhile may be given twice, or not.
func (c *QueueClient) PeekAfter(ctx context.Context, name string, sequence int64, limit int) ([]Placed, error) {
	state, err := c.State(ctx, name)
	if err != nil {
		return nil, err
	}
	place, gone := 0, int64(0)
	if ahead, waits := state.Position(sequence); waits {
		place = ahead - state.Busy() + 1
	} else {
		gone = sequence // So have those before it.
	}
	var items []Placed
	index := place
	err = c.eachWaiting(ctx, state, place, func(item contract.QueueItem) bool {
		if item.Sequence > gone {
			items = append(items, Placed{Ahead: index + state.Busy(), QueueItem: item})
		}
		index++
		return limit == 0 || len(items) < limit
	})
	return items, err
}
