package pipeline

import (
	"context"
	"time"
)

// Order is how far the messages of a consumer have come without a gap since it was
// rewound.
type Order struct{ sequence, delivered uint64 }

// Follows takes the next messages, and says whether they are those. A gap, or one
// that is older than the last, means that a message was given up on since it was
// delivered, lost on its way, or taken by another reader: used now, an old value
// could overwrite its correction, and an acknowledgement that counts for all before
// it could count for a message that nobody had.
func (o *Order) Follows(messages []*Delivery) bool {
	for _, message := range messages {
		if message.Sequence <= o.sequence || message.Number != o.delivered+1 {
			return false
		}
		o.sequence, o.delivered = message.Sequence, message.Number
	}
	return true
}

// FetchInOrder is Fetch for readers that finish what they have taken before they
// take more, in the order of the stream: after [Consumer.Rewind], they get no
// message before all earlier ones. Where one is missing, or comes late, none is
// given: the consumer is rewound, and rewound says how many come again. What a fetch
// brings is bounded to a few megabytes, or two messages of the largest size.
func (r *Consumer) FetchInOrder(ctx context.Context, n int, wait time.Duration, stop <-chan struct{}) (messages []*Delivery, rewound int, err error) {
	messages, err = r.FetchBytes(ctx, n, r.client.MaxFetchBytes(), wait, stop)
	if err != nil {
		return nil, 0, err
	}
	if r.order.Follows(messages) {
		return messages, 0, nil
	}
	rewound, err = r.Rewind(ctx)
	return nil, rewound, err
}
