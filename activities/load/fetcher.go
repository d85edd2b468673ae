package load

import (
	"context"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/lines"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// fetchSize is how many messages are asked for at a time.
const fetchSize = 1000

// chunk is what one fetch brought.
type chunk struct {
	messages []*pipeline.Delivery
	full     bool // there may be more at once
}

// fetcher fetches messages and makes batches of them, ahead of the writes. It holds
// a chunk that was fetched, a batch that is filled from a chunk, one that is
// written and one that is acknowledged, and nothing more.
type fetcher struct {
	writer  *mirrorWriter
	chunks  chan chunk
	batches chan *batch
	used    chan *batch // to be filled again
}

func newFetcher(w *mirrorWriter) *fetcher {
	return &fetcher{writer: w, chunks: make(chan chunk), batches: make(chan *batch), used: make(chan *batch, 3)}
}

// fetch takes messages until the mirror writer is to leave or ctx ends.
func (f *fetcher) fetch(ctx context.Context) error {
	defer close(f.chunks)
	w := f.writer
	n := min(fetchSize, w.iteration.spec.BatchPoints)
	order := w.consumer.Order()
	full := false
	for !w.iteration.draining(w) {
		// No longer than the iteration, since nothing else ends the wait at its end.
		wait := min(max(w.iteration.spec.BatchAge.Std(), pipeline.MinFetch), max(time.Until(w.iteration.End()), slowWrite))
		messages, err := w.consumer.FetchBytes(ctx, n, w.iteration.pipeline.MaxFetchBytes(), wait, w.iteration.Stopping())
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !order.Follows(messages) {
			return errOutOfOrder
		}
		wasFull := full
		full = len(messages) == n
		if len(messages) == 0 && !wasFull {
			continue
		}
		// One without messages says that those before it need not wait for more.
		select {
		case f.chunks <- chunk{messages, full}:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// encode makes batches of chunks: a batch is full with spec.BatchPoints or with as
// many bytes as one write may have, and done when there is nothing more at once or
// its first message has waited for spec.BatchAge.
func (f *fetcher) encode(ctx context.Context) {
	defer close(f.batches)
	w := f.writer
	decoder := lines.NewDecoder(w.iteration.rules)
	var b *batch
	var begun time.Time
	send := func() bool {
		select {
		case f.batches <- b:
			b = nil
			return true
		case <-ctx.Done():
			return false
		}
	}
	for c := range f.chunks {
		for _, message := range c.messages {
			if b == nil {
				b, begun = f.empty(), time.Now()
			}
			b.add(decoder, message)
			if b.lines >= w.iteration.spec.BatchPoints || b.bytes >= int(w.maxBytes.Load()) {
				if !send() {
					return
				}
			}
		}
		if b != nil && (!c.full || time.Since(begun) >= w.iteration.spec.BatchAge.Std()) && !send() {
			return
		}
	}
	if b != nil {
		send()
	}
}

// empty gives a batch to fill.
func (f *fetcher) empty() *batch {
	select {
	case b := <-f.used:
		return b
	default:
		return newBatch(f.writer)
	}
}

// recycle takes back a batch that is done with.
func (f *fetcher) recycle(b *batch) {
	b.reset()
	select {
	case f.used <- b:
	default:
	}
}
