package pipeline

import (
	"context"
	"errors"
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
	var published Published
	if len(messages) == 0 {
		return published, nil
	}
	if err := c.Ready(ctx); err != nil {
		return published, err
	}
	waiting := make([]jetstream.PubAckFuture, 0, publishWindow)
	for _, message := range messages {
		if len(waiting) == publishWindow {
			if err := c.settle(ctx, waiting[0], &published); err != nil {
				return published, err
			}
			waiting = append(waiting[:0], waiting[1:]...)
		}
		future, err := c.send(message)
		if err != nil {
			return published, c.failed(ctx, "publish to "+message.Subject, err)
		}
		waiting = append(waiting, future)
	}
	for _, future := range waiting {
		if err := c.settle(ctx, future, &published); err != nil {
			return published, err
		}
	}
	return published, nil
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
