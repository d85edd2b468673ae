package pipeline

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Order is how far the messages of a consumer have come without a gap since it was
// rewound.
type Order struct{ sequence, delivered uint64 }

// Follows takes the next messages, and says whether they are those. A gap, or one
// that is older than the last, means that a message was given up on since it was
// delivered, lost on its way, or taken by another reader: used now, an old value
// could overwrite its correction, and an acknowledgement that counts for all before
// it could count for a message that nobody had.
func (o *Order) Follows(messages []jetstream.Msg) (bool, error) {
	for _, message := range messages {
		sequence, delivery, err := Place(message)
		if err != nil {
			return false, err
		}
		if sequence <= o.sequence || delivery != o.delivered+1 {
			return false, nil
		}
		o.sequence, o.delivered = sequence, delivery
	}
	return true, nil
}

// FetchInOrder is Fetch for readers that finish what they have taken before they
// take more, in the order of the stream: after [Consumer.Rewind], they get no
// message before all earlier ones. Where one is missing, or comes late, none is
// given: the consumer is rewound, and rewound says how many come again. What a fetch
// brings is bounded to a few megabytes, or two messages of the largest size.
func (r *Consumer) FetchInOrder(ctx context.Context, n int, wait time.Duration, stop <-chan struct{}) (messages []jetstream.Msg, rewound int, err error) {
	messages, err = r.FetchBytes(ctx, n, r.client.MaxFetchBytes(), wait, stop)
	if err != nil {
		return nil, 0, err
	}
	follows, err := r.order.Follows(messages)
	if err != nil {
		return nil, 0, r.client.failed(ctx, "fetch from consumer "+r.name, err)
	}
	if follows {
		return messages, 0, nil
	}
	rewound, err = r.Rewind(ctx)
	return nil, rewound, err
}
