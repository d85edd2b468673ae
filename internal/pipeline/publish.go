package pipeline

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/tracing"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const (
	// publishWindow is how many messages may wait for their acknowledgement: far
	// more stall the client, far fewer leave the server idle.
	publishWindow = 256
	// publishTimeout is how long an acknowledgement may take.
	publishTimeout = 30 * time.Second
)

// Outgoing is a message to publish.
type Outgoing struct {
	Subject string
	// ID makes the server drop a repeat within its window of two minutes; see [ID].
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

// Ack is what the server says of a message that it has.
type Ack struct {
	// Stream and Sequence are its place; a repeat has that of the message which is
	// there. They are "" and 0 for an item that was in quarantine already.
	Stream   string
	Sequence uint64
	// Duplicate says that it was there before, by its id.
	Duplicate bool
}

// Count adds a message to p.
func (p *Published) Count(ack Ack) {
	if ack.Duplicate {
		p.Duplicates++
	} else {
		p.Stored++
	}
}

// Publish publishes messages as a [Series] of their own in which none corrects
// another: what is a repeat may be anywhere in its stream, and stays there.
func (c *Client) Publish(ctx context.Context, messages []Outgoing) (Published, error) {
	s := c.Series()
	s.anywhere = true
	return s.Publish(ctx, messages)
}

// publish tells what became of each message, in their order.
func (c *Client) publish(ctx context.Context, messages []Outgoing, confirmed func(i int, ack Ack)) (published Published, err error) {
	if len(messages) == 0 {
		return published, nil
	}
	ctx, end := tracing.Call(ctx, "NATS publish",
		"messaging.system", "nats", "messaging.destination.name", messages[0].Subject, "messaging.batch.message_count", strconv.Itoa(len(messages)))
	defer func() { end(err) }()
	if err := c.Ready(ctx); err != nil {
		return published, err
	}
	waiting := make([]jetstream.PubAckFuture, 0, publishWindow)
	done := 0
	next := func() error {
		ack, err := c.confirm(ctx, waiting[0])
		if err != nil {
			return err
		}
		waiting = append(waiting[:0], waiting[1:]...)
		confirmed(done, ack)
		published.Count(ack)
		done++
		return nil
	}
	for _, message := range messages {
		if len(waiting) == publishWindow {
			if err := next(); err != nil {
				return published, err
			}
		}
		future, err := c.send(ctx, message)
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

// orderAttempts bounds how often messages are published for the sake of their order.
const orderAttempts = 5

// Series publishes messages of which a later one may correct an earlier one, and
// sees to it that the later one is the later one in its stream too. Where a message
// was refused for a moment and those after it were not, or the server has forgotten
// the earlier one and not yet the later one, publishing them once more stores the one
// and drops the other as a repeat: the old value would be the last.
type Series struct {
	client   *Client
	last     map[string]uint64 // by stream: the number that nothing may come before
	anywhere bool              // repeats may
	sent     sent
}

// Series begins a series.
func (c *Client) Series() *Series {
	return &Series{client: c, last: map[string]uint64{}, sent: sent{streams: map[string]string{}}}
}

// Publish publishes messages in order, with at most 256 on their way at a time,
// and returns when the server has acknowledged them all. From the first one on whose
// place, new or as a repeat, is before that of an earlier one of the series, they are
// published again with [Behind] ids, and counted once more. After an error some
// may be stored and some not; publishing all of them again is safe.
func (s *Series) Publish(ctx context.Context, messages []Outgoing) (Published, error) {
	var published Published
	for range orderAttempts {
		behind := len(messages)
		before := maps.Clone(s.last)
		more, err := s.client.publish(ctx, messages, func(i int, ack Ack) {
			s.sent.note(messages[i], ack)
			s.begunAnew(before, ack)
			if !s.follows(ack) {
				behind = min(behind, i)
			}
		})
		published.Add(more)
		if err != nil || behind == len(messages) {
			return published, err
		}
		messages = slices.Clone(messages[behind:])
		for i := range messages {
			messages[i].ID = s.behind(messages[i].ID)
		}
	}
	return published, job.Fail(errclass.PipelineUnreachable, "%s: publish to %s: the server has messages in another order than theirs, %d times in a row",
		s.client.address, messages[0].Subject, orderAttempts)
}

// begunAnew forgets where a stream was, if a message shows that it was made anew since,
// and says whether it does: one that is new there without being behind all that the
// stream had before it was sent.
func (s *Series) begunAnew(before map[string]uint64, ack Ack) bool {
	if ack.Duplicate || ack.Sequence > before[ack.Stream] {
		return false
	}
	delete(before, ack.Stream)
	delete(s.last, ack.Stream)
	return true
}

// follows reports whether a message is behind all earlier ones of the series.
func (s *Series) follows(ack Ack) bool {
	switch {
	case s.anywhere && ack.Duplicate:
		return true
	case ack.Sequence < s.last[ack.Stream]:
		return false
	}
	s.last[ack.Stream] = ack.Sequence
	return true
}

// behind is the id of a message that has to come after all that are in the streams.
func (s *Series) behind(id string) string {
	for _, stream := range slices.Sorted(maps.Keys(s.last)) {
		id = Behind(id, stream, s.last[stream])
	}
	return id
}

// Behind is the id under which a message is published once more because its first
// copy is before a number of a stream that it has to follow. A repeat of this one is
// behind that number. Messages without an id stay without.
func Behind(id, stream string, sequence uint64) string {
	if id == "" {
		return ""
	}
	return ID(id, "behind", stream, strconv.FormatUint(sequence, 10))
}

// CheckSize reports a message that exceeds the server's limit, with the error that
// publishing it would end with.
func (c *Client) CheckSize(message Outgoing) error {
	limit := c.nc.MaxPayload()
	whole := nats.Msg{Header: message.header(), Data: message.Body}
	if limit <= 0 || int64(whole.Size()) <= limit {
		return nil
	}
	return c.tooLarge("publish to " + message.Subject)
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
	future, err := c.send(ctx, message)
	if err != nil {
		return Sent{}, c.failed(ctx, "publish to "+message.Subject, err)
	}
	return Sent{client: c, future: future}, nil
}

// Wait returns when the server has acknowledged the message, or refused it.
func (s Sent) Wait(ctx context.Context) (Ack, error) {
	return s.client.confirm(ctx, s.future)
}

// send sends a message, unless ctx has ended: a context that finds its end only when
// it is asked must not let a whole window through first.
func (c *Client) send(ctx context.Context, message Outgoing) (jetstream.PubAckFuture, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	options := []jetstream.PublishOpt{
		jetstream.WithStallWait(publishTimeout),
		// The library would send a message that no stream took once more by itself, behind
		// those that were sent meanwhile. It is the caller who knows what follows it.
		jetstream.WithRetryAttempts(0),
	}
	if message.once {
		options = append(options, jetstream.WithExpectLastSequencePerSubject(0))
	}
	return c.js.PublishMsgAsync(&nats.Msg{Subject: message.Subject, Header: message.header(), Data: message.Body}, options...)
}

// header is a copy of the header, with the id.
func (m Outgoing) header() nats.Header {
	header := nats.Header{}
	maps.Copy(header, m.Header)
	if m.ID != "" {
		header.Set(jetstream.MsgIDHeader, m.ID)
	}
	return header
}

// confirm waits for the acknowledgement of a message.
func (c *Client) confirm(ctx context.Context, future jetstream.PubAckFuture) (Ack, error) {
	select {
	case ack := <-future.Ok():
		result := metrics.ResultStored
		if ack.Duplicate {
			result = metrics.ResultDuplicate
		}
		metrics.PipelineSent.Inc(ack.Stream, result)
		return Ack{Stream: ack.Stream, Sequence: ack.Sequence, Duplicate: ack.Duplicate}, nil
	case err := <-future.Err():
		if isStale(err) {
			return Ack{Duplicate: true}, nil
		}
		return Ack{}, c.failed(ctx, "publish to "+future.Msg().Subject, err)
	case <-ctx.Done():
		return Ack{}, ctx.Err()
	}
}

// isStale reports whether a message was refused since its subject holds another one than
// was expected.
func isStale(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
