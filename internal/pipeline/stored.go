package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// StreamState is what a stream holds.
type StreamState struct {
	// Created is when the stream was made; a stream that is deleted and made again
	// is a new incarnation, and counts from 1 again.
	Created time.Time
	// First and Last are the numbers of the first and last message. With none left,
	// First is Last+1.
	First, Last uint64
}

// ErrNoStream is what the error of a look at a stream wraps that the server does not
// have. To look makes none: what is missing may be on another server.
var ErrNoStream = jetstream.ErrStreamNotFound

// existing looks a stream up, and makes none.
func (c *Client) existing(ctx context.Context, name string) (jetstream.Stream, error) {
	if err := c.Reach(ctx); err != nil {
		return nil, err
	}
	stream, err := c.js.Stream(ctx, name)
	if err != nil {
		return nil, c.failed(ctx, "look at stream "+name, err)
	}
	return stream, nil
}

// StreamState looks at a stream; see [ErrNoStream].
func (c *Client) StreamState(ctx context.Context, name string) (StreamState, error) {
	stream, err := c.existing(ctx, name)
	if err != nil {
		return StreamState{}, err
	}
	info := stream.CachedInfo()
	return StreamState{Created: info.Created.UTC(), First: info.State.FirstSeq, Last: info.State.LastSeq}, nil
}

// ConsumerState is how far a durable consumer got.
type ConsumerState struct {
	Name     string
	Metadata map[string]string
	// Subject is the one that it consumes, "" if there are several or none.
	Subject string
	// AckFloor is the number in the stream up to which everything is acknowledged.
	AckFloor uint64
	// Unanswered is how many messages are with a reader, or were.
	Unanswered int
	// Pending is how many are not acknowledged, with those that no reader has taken.
	Pending uint64
}

// ConsumerStates lists the consumers of a stream; see [ErrNoStream].
func (c *Client) ConsumerStates(ctx context.Context, name string) ([]ConsumerState, error) {
	stream, err := c.existing(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.consumers(ctx, stream)
}

func (c *Client) consumers(ctx context.Context, stream jetstream.Stream) ([]ConsumerState, error) {
	var states []ConsumerState
	lister := stream.ListConsumers(ctx)
	for info := range lister.Info() {
		states = append(states, ConsumerState{
			Name: info.Name, Metadata: info.Config.Metadata, Subject: info.Config.FilterSubject,
			AckFloor: info.AckFloor.Stream, Unanswered: info.NumAckPending, Pending: info.NumPending + uint64(info.NumAckPending),
		})
	}
	if err := lister.Err(); err != nil {
		return nil, c.failed(ctx, "list the consumers of stream "+stream.CachedInfo().Config.Name, err)
	}
	return states, nil
}

// Consumed reports whether a stream has a durable consumer of a subject. A consumer stays when
// its job is stopped. A server that does not tell gives no reason to warn: it counts as one.
func (c *Client) Consumed(ctx context.Context, stream, subject string) bool {
	consumers, err := c.ConsumerStates(ctx, stream)
	return err != nil || slices.ContainsFunc(consumers, func(s ConsumerState) bool { return s.Subject == subject })
}

// Stored is a message as a stream holds it.
type Stored struct {
	Sequence uint64
	// Time is when the stream took it.
	Time    time.Time
	Subject string
	Header  nats.Header
	Body    []byte
}

// StoredMessage is the stored form of a message that a consumer delivered.
func StoredMessage(message jetstream.Msg) (Stored, error) {
	meta, err := message.Metadata()
	if err != nil {
		return Stored{}, fmt.Errorf("a message on %s does not come from a stream: %w", message.Subject(), err)
	}
	return Stored{
		Sequence: meta.Sequence.Stream, Time: meta.Timestamp.UTC(),
		Subject: message.Subject(), Header: message.Headers(), Body: message.Data(),
	}, nil
}

// TimeOf says when a stream took a message; false if it does not hold it any more.
func (c *Client) TimeOf(ctx context.Context, stream string, sequence uint64) (time.Time, bool, error) {
	if err := c.Ready(ctx); err != nil {
		return time.Time{}, false, err
	}
	s, err := c.js.Stream(ctx, stream)
	if err != nil {
		return time.Time{}, false, c.failed(ctx, "look at stream "+stream, err)
	}
	message, err := s.GetMsg(ctx, sequence)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return time.Time{}, false, nil
	case err != nil:
		return time.Time{}, false, c.failed(ctx, fmt.Sprintf("look at message %d of stream %s", sequence, stream), err)
	}
	return message.Time.UTC(), true, nil
}

// rangeFetch is how many messages of a range are asked for at a time.
const rangeFetch = 500

// Limit bounds what is read at a time: once one of the two is reached, no more is
// read. Zero for no bound.
type Limit struct {
	Messages int
	Bytes    int64
}

// Range reads the messages of a stream with numbers from first to last, in order,
// and says whether that is all of them, or the limit was reached before. What the
// stream does not hold any more is left out. With subjects it reads those on them alone.
func (c *Client) Range(ctx context.Context, stream string, first, last uint64, limit Limit, subjects ...string) (messages []Stored, all bool, err error) {
	if err := c.Ready(ctx); err != nil {
		return nil, false, err
	}
	state, err := c.StreamState(ctx, stream)
	if err != nil {
		return nil, false, err
	}
	if last = min(last, state.Last); first > last {
		return nil, true, nil
	}
	what := fmt.Sprintf("read messages %d to %d of stream %s", first, last, stream)
	consumer, err := c.js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		AckPolicy:         jetstream.AckNonePolicy,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		FilterSubjects:    subjects,
		InactiveThreshold: time.Minute,
		MemoryStorage:     true,
		OptStartSeq:       first,
	})
	if err != nil {
		return nil, false, c.failed(ctx, what, err)
	}
	defer func() {
		// One that stays is removed by the server.
		_ = c.js.DeleteConsumer(context.WithoutCancel(ctx), stream, consumer.CachedInfo().Name)
	}()
	delivered, size := uint64(0), int64(0)
	for left := consumer.CachedInfo().NumPending; left > 0; {
		batch, err := consumer.Fetch(int(min(rangeFetch, left, last-first+1)), jetstream.FetchMaxWait(publishTimeout))
		if err != nil {
			return nil, false, c.failed(ctx, what, err)
		}
		before := delivered
		for message := range batch.Messages() {
			meta, err := message.Metadata()
			if err != nil {
				return nil, false, c.failed(ctx, what, err)
			}
			// Nothing is acknowledged, so what gets lost on the way is not sent again, and
			// would look as if the stream did not have it.
			if delivered++; meta.Sequence.Consumer != delivered {
				return nil, false, job.Fail(errclass.PipelineUnreachable, "%s: %s: a message was lost on the way", c.address, what)
			}
			if meta.Sequence.Stream > last {
				return messages, true, nil
			}
			stored, err := StoredMessage(message)
			if err != nil {
				return nil, false, err
			}
			messages = append(messages, stored)
			size += int64(len(stored.Body))
			if left = meta.NumPending; meta.Sequence.Stream == last {
				return messages, true, nil
			}
			if (limit.Messages > 0 && len(messages) >= limit.Messages) || (limit.Bytes > 0 && size >= limit.Bytes) {
				return messages, left == 0, nil
			}
		}
		if err := batch.Error(); err != nil {
			return nil, false, c.failed(ctx, what, err)
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if delivered == before {
			return nil, false, job.Fail(errclass.PipelineUnreachable, "%s: %s: no answer within %s", c.address, what, publishTimeout)
		}
	}
	return messages, true, nil
}
