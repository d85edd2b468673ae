package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// MetadataJob is the key of a consumer's metadata that names the job it belongs to.
const MetadataJob = "dendra-job"

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
	// Metadata is kept with the consumer for those who look at it. Defaults to none.
	Metadata map[string]string
	// InOrder makes an acknowledgement count for all messages before it too, which
	// spares the server half its work. Only readers that take and finish messages in
	// order may ask for it. It cannot be changed later.
	InOrder bool
}

// Consumer reads a stream in order, and remembers on the server how far it got.
type Consumer struct {
	client   *Client
	consumer jetstream.Consumer
	stream   string
	name     string
	inOrder  bool
	order    Order // since the last Rewind
}

// Consumer opens a durable consumer of a stream, and makes or adjusts it if need
// be. It delivers everything from the stream's beginning, wants every message
// acknowledged, and never gives one up: a limit on deliveries would leave a silent
// hole.
func (c *Client) Consumer(ctx context.Context, stream string, options ConsumerOptions) (*Consumer, error) {
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	if options.AckWait <= 0 {
		options.AckWait = 90 * time.Second
	}
	if options.MaxAckPending <= 0 {
		options.MaxAckPending = 20_000
	}
	config := jetstream.ConsumerConfig{
		Durable:       options.Name,
		FilterSubject: options.Subject,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       options.AckWait,
		MaxAckPending: options.MaxAckPending,
		MaxDeliver:    -1,
		Metadata:      options.Metadata,
	}
	if options.InOrder {
		config.AckPolicy = jetstream.AckAllPolicy
	}
	consumer, err := c.js.CreateOrUpdateConsumer(ctx, stream, config)
	if err != nil {
		return nil, c.failed(ctx, fmt.Sprintf("open consumer %s of stream %s", options.Name, stream), err)
	}
	return &Consumer{client: c, consumer: consumer, stream: stream, name: options.Name, inOrder: options.InOrder}, nil
}

// Rewind makes the consumer deliver again, in the order of the stream, everything
// from the first message that an earlier reader took and never acknowledged. It
// returns how many were unanswered; with none it does nothing. [Consumer.Order]
// says from where on messages have to follow each other then.
//
// Without it those messages would come back one by one when AckWait is over,
// behind newer ones, and an old value could overwrite its correction.
func (r *Consumer) Rewind(ctx context.Context) (int, error) {
	info, err := r.consumer.Info(ctx)
	if err != nil {
		return 0, r.client.failed(ctx, "look at consumer "+r.name, err)
	}
	r.order = Order{delivered: info.Delivered.Consumer}
	if info.NumAckPending == 0 {
		return 0, nil
	}
	if _, err := r.client.js.ResetConsumer(ctx, r.stream, r.name); err != nil {
		return 0, r.client.failed(ctx, "rewind consumer "+r.name, err)
	}
	// Deliveries are counted anew. What the answer tells of them may include one that
	// was made since, to whoever still waits for messages.
	r.order = Order{}
	return info.NumAckPending, nil
}

// Order is where the consumer stood when [Consumer.Rewind] was done with it, for
// readers that take messages ahead; [Consumer.FetchInOrder] sees to it by itself.
func (r *Consumer) Order() Order { return r.order }

// Ack acknowledges messages, and returns when the server has noted the last of
// them, and so all. Of a consumer in order, every message that was delivered before the
// last of them is acknowledged as well.
func (r *Consumer) Ack(ctx context.Context, messages []*Delivery) error {
	if r.inOrder && len(messages) > 1 {
		messages = messages[len(messages)-1:]
	}
	if err := Acknowledge(ctx, messages); err != nil {
		return r.client.failed(ctx, "acknowledge to consumer "+r.name, err)
	}
	return nil
}

// AckNoted reports whether the server counts a message of a consumer in order as
// acknowledged. An acknowledgement that an earlier reader sent late, after
// [Consumer.Rewind], has the server take those of this reader for older ones: it answers
// them, and notes nothing, until this reader rewinds as well.
func (r *Consumer) AckNoted(ctx context.Context, message *Delivery) (bool, error) {
	info, err := r.consumer.Info(ctx)
	if err != nil {
		return false, r.client.failed(ctx, "look at consumer "+r.name, err)
	}
	return info.AckFloor.Stream >= message.Sequence, nil
}
