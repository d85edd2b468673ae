package pipeline

import (
	"context"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

const (
	// MinFetch is the shortest wait of a fetch that can bring anything: a shorter
	// one is over before the server has answered.
	MinFetch = 10 * time.Millisecond
	// fetchSlice is the longest that one request for messages waits at the server.
	// A request cannot be taken back: one that is left alone may still take messages,
	// which come to nobody. So a stop leaves a request this long to end by itself, and
	// the next one is made only if nothing speaks against it.
	fetchSlice = 500 * time.Millisecond
)

// minFetchBytes is what a bound of [Client.MaxFetchBytes] is at least.
const minFetchBytes = 4 << 20

// MaxFetchBytes is a bound for [Consumer.FetchBytes] that any message fits in: 4 MiB, or
// two messages of the largest size that the server takes.
func (c *Client) MaxFetchBytes() int {
	return max(minFetchBytes, 2*int(c.nc.MaxPayload()))
}

// Fetch takes up to n messages, and waits for them no longer than wait, which is
// at least [MinFetch]: fewer, or none, are no error. Where the server is gone, or
// messages get lost on their way, it may take up to five seconds longer. When stop is
// closed, it returns within half a second with those that it has; nil never stops it.
// When ctx ends, it returns at once with its error. What it has then, and what is
// lost, is not acknowledged, and comes again after [Consumer.Rewind].
func (r *Consumer) Fetch(ctx context.Context, n int, wait time.Duration, stop <-chan struct{}) ([]*Delivery, error) {
	return r.FetchBytes(ctx, n, 0, wait, stop)
}

// FetchBytes is Fetch with a bound on what the messages weigh, on the wire, in one
// request to the server: n messages of the largest size may be more than a process
// should hold. It must be more than the largest message; 0 is no bound.
func (r *Consumer) FetchBytes(ctx context.Context, n, bytes int, wait time.Duration, stop <-chan struct{}) ([]*Delivery, error) {
	messages := make([]*Delivery, 0, n)
	pulling, cancel := job.Until(ctx, stop, fetchSlice)
	defer cancel()
	deadline := time.Now().Add(max(wait, MinFetch))
	for slice := max(wait, MinFetch); slice >= MinFetch; slice = time.Until(deadline) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err := r.pull(pulling, &messages, n, bytes, min(slice, fetchSlice))
		if len(messages) == n || (bytes > 0 && sizeOf(messages) >= bytes/2) {
			break
		}
		if err != nil {
			if len(messages) > 0 {
				break // these can be used; the next fetch will tell again
			}
			return nil, r.client.failed(ctx, "fetch from consumer "+r.name, err)
		}
		if closed(stop) {
			break
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return messages, nil
}

func sizeOf(messages []*Delivery) int {
	size := 0
	for _, message := range messages {
		size += len(message.Body)
	}
	return size
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
