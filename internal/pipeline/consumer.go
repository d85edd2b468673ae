package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ConsumerOptions set up a durable consumer.
type ConsumerOptions struct {
	// Name is the durable name: no dots, spaces or wildcards.
	Name string
	// Subject is the one subject that is consumed.
	Subject string
	// AckWait is how long a delivered message may stay unanswered; it must be
	// several times the longest write. Defaults to 90 s.
	AckWait time.Duration
	// MaxAckPending is how many messages may be unanswered at a time. Defaults to
	// 20,000.
	MaxAckPending int
}

// Consumer opens a durable consumer of a stream, and makes or adjusts it if need
// be. It delivers everything from the stream's beginning, wants an explicit
// acknowledgement of every message, and never gives one up: a limit on
// deliveries would leave a silent hole.
func (c *Client) Consumer(ctx context.Context, stream string, options ConsumerOptions) (jetstream.Consumer, error) {
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	if options.AckWait <= 0 {
		options.AckWait = 90 * time.Second
	}
	if options.MaxAckPending <= 0 {
		options.MaxAckPending = 20_000
	}
	consumer, err := c.js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable:       options.Name,
		FilterSubject: options.Subject,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       options.AckWait,
		MaxAckPending: options.MaxAckPending,
		MaxDeliver:    -1,
	})
	if err != nil {
		return nil, c.failed(ctx, fmt.Sprintf("open consumer %s of stream %s", options.Name, stream), err)
	}
	return consumer, nil
}

// Rewind makes a consumer deliver again, in the order of the stream, everything
// from the first message that an earlier reader took and never acknowledged. It
// returns how many there were; with none it does nothing.
//
// Without it those messages would come back one by one when AckWait is over,
// behind newer ones, and an old value could overwrite its correction.
func (c *Client) Rewind(ctx context.Context, consumer jetstream.Consumer) (int, error) {
	info, err := consumer.Info(ctx)
	if err != nil {
		return 0, c.failed(ctx, "look at consumer "+consumer.CachedInfo().Name, err)
	}
	if info.NumAckPending == 0 {
		return 0, nil
	}
	if _, err := c.js.ResetConsumer(ctx, info.Stream, info.Name); err != nil {
		return 0, c.failed(ctx, "rewind consumer "+info.Name, err)
	}
	return info.NumAckPending, nil
}
