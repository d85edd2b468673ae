package pipeline

import (
	"context"
	"errors"
	"iter"

	"github.com/nats-io/nats.go/jetstream"
)

// errWatchEnded is of a read whose connection was closed.
var errWatchEnded = errors.New("the connection was closed")

// Entries are the latest entries of the keys of a bucket that a pattern takes, ">" for all, in
// the order in which they were written. Keys that were deleted are left out. After an error
// nothing follows.
//
// The server tells the end of what there is too early while a key is written: its former entry
// is away and its new one still to come. So keys are counted, and the new one is waited for.
func (c *Client) Entries(ctx context.Context, bucket, pattern string) iter.Seq2[jetstream.KeyValueEntry, error] {
	return func(yield func(jetstream.KeyValueEntry, error) bool) {
		kv, err := c.js.KeyValue(ctx, bucket)
		if err != nil {
			yield(nil, err)
			return
		}
		watcher, err := kv.Watch(ctx, pattern)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = watcher.Stop() }() // It ends with the connection at the latest.
		seen, want := map[string]struct{}{}, -1
		for want < 0 || len(seen) < want {
			var entry jetstream.KeyValueEntry
			var open bool
			select {
			case entry, open = <-watcher.Updates():
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
			switch {
			case !open:
				yield(nil, errWatchEnded)
				return
			case entry == nil:
				if want, err = c.keys(ctx, bucket, pattern); err != nil {
					yield(nil, err)
					return
				}
			default:
				_, again := seen[entry.Key()] // It was written since.
				seen[entry.Key()] = struct{}{}
				if !again && entry.Operation() == jetstream.KeyValuePut && !yield(entry, nil) {
					return
				}
			}
		}
	}
}

// keys counts the keys that a pattern takes, deleted ones included whose marks are still kept.
func (c *Client) keys(ctx context.Context, bucket, pattern string) (int, error) {
	stream, err := c.js.Stream(ctx, "KV_"+bucket)
	if err != nil {
		return 0, err
	}
	if pattern == ">" {
		return int(stream.CachedInfo().State.NumSubjects), nil //nolint:gosec // a count of keys
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter("$KV."+bucket+"."+pattern))
	if err != nil {
		return 0, err
	}
	return len(info.State.Subjects), nil
}
