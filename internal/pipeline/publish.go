package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// publishWindow is how many messages may wait for their acknowledgement: far
	// more stall the client, far fewer leave the server idle.
	publishWindow = 256
	// publishTimeout is how long an acknowledgement may take.
	publishTimeout = 30 * time.Second
)

// ClassTooLarge is the class of errors about a message that exceeds the server's
// limit; no retry helps.
const ClassTooLarge = "MessageTooLarge"

// Outgoing is a message to publish.
type Outgoing struct {
	Subject string
	// ID makes the server drop a repeat within its window of ten minutes; see [ID].
	ID     string
	Body   []byte
	Header nats.Header

	// once refuses the message if its subject already holds one.
	once bool
}

// Published counts what became of messages.
type Published struct {
	Stored     int64 // new in the stream
	Duplicates int64 // already there, by their id
}

// Add adds other to p.
func (p *Published) Add(other Published) {
	p.Stored += other.Stored
	p.Duplicates += other.Duplicates
}

// Publish publishes messages in order, with at most 256 on their way at a time,
// and returns when the server has acknowledged them all. After an error some
// may be stored and some not; publishing all of them again is safe.
func (c *Client) Publish(ctx context.Context, messages []Outgoing) (Published, error) {
	return c.publish(ctx, messages, func(int, Published) {})
}

// publish tells what became of each message, in their order.
func (c *Client) publish(ctx context.Context, messages []Outgoing, settled func(i int, one Published)) (Published, error) {
	var published Published
	if len(messages) == 0 {
		return published, nil
	}
	if err := c.Ready(ctx); err != nil {
		return published, err
	}
	waiting := make([]jetstream.PubAckFuture, 0, publishWindow)
	done := 0
	next := func() error {
		var one Published
		if err := c.settle(ctx, waiting[0], &one); err != nil {
			return err
		}
		waiting = append(waiting[:0], waiting[1:]...)
		settled(done, one)
		published.Add(one)
		done++
		return nil
	}
	for _, message := range messages {
		if len(waiting) == publishWindow {
			if err := next(); err != nil {
				return published, err
			}
		}
		future, err := c.send(message)
		if err != nil {
			return published, c.failed(ctx, "publish to "+message.Subject, err)
		}
		waiting = append(waiting, future)
	}
	for len(waiting) > 0 {
		if err := next(); err != nil {
			return published, err
		}
	}
	return published, nil
}

// Series publishes messages of which a later one may correct an earlier one. When
// they are published once more, the server may have forgotten the earlier one and
// not yet the later one: it would store the one and drop the other, and the old
// value would be the last.
type Series struct {
	client *Client
	stored bool
}

// Series begins a series.
func (c *Client) Series() *Series { return &Series{client: c} }

// Publish is [Client.Publish], but what the server drops as a repeat behind one of
// the series that it has stored is published again without an id, and so are those
// of messages after it.
func (s *Series) Publish(ctx context.Context, messages []Outgoing) (Published, error) {
	dropped := len(messages)
	published, err := s.client.publish(ctx, messages, func(i int, one Published) {
		if one.Stored > 0 {
			s.stored = true
		} else if s.stored {
			dropped = min(dropped, i)
		}
	})
	if err != nil || dropped == len(messages) {
		return published, err
	}
	again := slices.Clone(messages[dropped:])
	for i := range again {
		again[i].ID = ""
	}
	more, err := s.client.Publish(ctx, again)
	published.Add(more)
	return published, err
}

// Sent is a message on its way to the server.
type Sent struct {
	client *Client
	future jetstream.PubAckFuture
}

// Send publishes a message without waiting for its acknowledgement. It waits
// only while far too many are on their way already.
func (c *Client) Send(ctx context.Context, message Outgoing) (Sent, error) {
	if err := c.Ready(ctx); err != nil {
		return Sent{}, err
	}
	future, err := c.send(message)
	if err != nil {
		return Sent{}, c.failed(ctx, "publish to "+message.Subject, err)
	}
	return Sent{client: c, future: future}, nil
}

// Wait returns when the server has acknowledged the message, or refused it.
func (s Sent) Wait(ctx context.Context) (Published, error) {
	var published Published
	err := s.client.settle(ctx, s.future, &published)
	return published, err
}

func (c *Client) send(message Outgoing) (jetstream.PubAckFuture, error) {
	options := []jetstream.PublishOpt{jetstream.WithStallWait(publishTimeout)}
	if message.ID != "" {
		options = append(options, jetstream.WithMsgID(message.ID))
	}
	if message.once {
		options = append(options, jetstream.WithExpectLastSequencePerSubject(0))
	}
	header := nats.Header{}
	for key, values := range message.Header {
		header[key] = values
	}
	return c.js.PublishMsgAsync(&nats.Msg{Subject: message.Subject, Header: header, Data: message.Body}, options...)
}

// settle waits for the acknowledgement of a message and counts it.
func (c *Client) settle(ctx context.Context, future jetstream.PubAckFuture, published *Published) error {
	select {
	case ack := <-future.Ok():
		if ack.Duplicate {
			published.Duplicates++
		} else {
			published.Stored++
		}
		return nil
	case err := <-future.Err():
		if isStale(err) {
			published.Duplicates++
			return nil
		}
		return c.failed(ctx, "publish to "+future.Msg().Subject, err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isStale says that a message was refused since its subject holds another one than
// was expected.
func isStale(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
