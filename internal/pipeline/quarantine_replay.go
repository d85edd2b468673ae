package pipeline

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// replayWindow is how many items are replayed at a time, bodies in memory.
const replayWindow = 32

// Replayed counts what became of items.
type Replayed struct {
	Published int // in their stream again, and out of quarantine
	Missing   int // not in quarantine any more
	Refused   int // can only be dropped, see [Item.Replayable]
}

// Replay publishes items again where they came from, in the order given, and
// removes each from quarantine when its stream has acknowledged it. What is refused
// again comes back as a new item. Bodies go out as they are; a header marks them as
// published before.
//
// After an error, or the end of ctx, some items are replayed and the others are
// still in quarantine. A few may be both: one that could not be removed, and those
// behind one that failed, since they have to follow it. To replay such an item again
// within two minutes publishes it no second time, unless it would be before one that
// it follows. Done, if not nil, is called with the counts so far, now and then.
func (c *Client) Replay(ctx context.Context, ids []uint64, done func(Replayed)) (Replayed, error) {
	var counts Replayed
	stream, err := c.quarantine(ctx, "replay items")
	if err != nil {
		return counts, err
	}
	if stream == nil {
		counts.Missing = len(ids)
		return counts, nil
	}
	if err := c.Ready(ctx); err != nil {
		return counts, err
	}
	series := c.Series()
	for start := 0; start < len(ids); start += replayWindow {
		if ctx.Err() != nil {
			return counts, ctx.Err()
		}
		if err := series.replay(ctx, stream, ids[start:min(start+replayWindow, len(ids))], &counts); err != nil {
			return counts, err
		}
		if done != nil {
			done(counts)
		}
	}
	return counts, nil
}

// replay replays items, behind all that the series has replayed before.
func (s *Series) replay(ctx context.Context, stream jetstream.Stream, ids []uint64, counts *Replayed) error {
	c := s.client
	items := make([]Item, len(ids))
	err := each(ctx, ids, func(n int, id uint64) error {
		item, err := c.item(ctx, stream, id)
		if errors.Is(err, ErrNoItem) {
			return nil
		}
		items[n] = item
		return err
	})
	if err != nil {
		return err
	}
	now := time.Now()
	before := maps.Clone(s.last)
	var failed error
	var sent []Item
	var waiting []jetstream.PubAckFuture
	for _, item := range items {
		switch {
		case item.ID == 0:
			counts.Missing++
			continue
		case item.Replayable() != nil:
			counts.Refused++
			continue
		}
		future, err := c.send(ctx, item.outgoing(now, ""))
		if err != nil {
			failed = c.failed(ctx, "publish to "+item.OriginSubject, err)
			break
		}
		sent, waiting = append(sent, item), append(waiting, future)
	}
	// What is in its stream leaves the quarantine, also when the rest fails or the
	// caller has gone. What is there behind one that is not stays, to follow it.
	var acknowledged []uint64
	for n, future := range waiting {
		if err := s.awaitCopy(ctx, future, sent[n], now, before); err != nil {
			failed = err
			break
		}
		acknowledged = append(acknowledged, sent[n].ID)
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishTimeout)
	defer cancel()
	_, err = c.removeAll(finish, stream, acknowledged)
	if err == nil {
		counts.Published += len(acknowledged)
	}
	if failed == nil {
		failed = err
	}
	return failed
}

// awaitCopy waits until the stream has the copy of an item, behind those of the
// items before it. Before is where streams were when the copy was sent.
func (s *Series) awaitCopy(ctx context.Context, future jetstream.PubAckFuture, item Item, now time.Time, before map[string]uint64) error {
	c := s.client
	what := "publish to " + item.OriginSubject
	there := before // when the copy in hand was sent
	for range orderAttempts {
		select {
		case answer := <-future.Ok():
			ack := Ack{Stream: answer.Stream, Sequence: answer.Sequence, Duplicate: answer.Duplicate}
			if s.begunAnew(there, ack) {
				delete(before, ack.Stream) // what was sent with this one is told of it
			}
			// A stream that was made anew counts from 1. If the copy were refused, it would
			// be taken for the item itself, which is removed now; a second copy is not.
			again := item.outgoing(now, "again")
			if ack.Sequence != item.OriginSequence {
				if s.follows(ack) {
					return nil
				}
				again.ID = s.behind(again.ID)
			}
			there = maps.Clone(s.last)
			var err error
			if future, err = c.send(ctx, again); err != nil {
				return c.failed(ctx, what, err)
			}
		case err := <-future.Err():
			return c.failed(ctx, what, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return job.Fail(errclass.PipelineUnreachable, "%s: %s: no copy of item %d is behind the one before it", c.address, what, item.ID)
}

// outgoing is the message of an item that is published again. Its id is that of the
// item and not of the content, which the stream may have seen a moment ago.
func (i Item) outgoing(now time.Time, variant string) Outgoing {
	return Outgoing{
		Subject: i.OriginSubject,
		ID:      ID("replay", i.subject, strconv.FormatUint(i.ID, 10), strconv.FormatInt(i.stored.UnixNano(), 10), variant),
		Body:    i.Body,
		Header:  nats.Header{HeaderReplay: []string{now.UTC().Format(time.RFC3339)}},
	}
}
