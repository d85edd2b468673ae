package stacktest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// Position is how far a consumer of one subject is, in numbers of its stream.
type Position struct {
	Acknowledged uint64 // all messages up to this one are
	Last         uint64 // the last message of its subject; 0 if there is none
}

// Done reports whether the consumer has acknowledged the last message.
func (p Position) Done() bool { return p.Acknowledged >= p.Last }

// PositionOf asks for the position of a consumer. What a consumer itself tells of the
// number that waits is a moment behind. One that is not there is
// [jetstream.ErrConsumerNotFound].
func PositionOf(ctx context.Context, js jetstream.JetStream, stream, consumer string) (Position, error) {
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return Position{}, fmt.Errorf("stream %s: %w", stream, err)
	}
	c, err := s.Consumer(ctx, consumer)
	if err != nil {
		return Position{}, fmt.Errorf("consumer %s of stream %s: %w", consumer, stream, err)
	}
	info := c.CachedInfo()
	position := Position{Acknowledged: info.AckFloor.Stream}
	last, err := s.GetLastMsgForSubject(ctx, info.Config.FilterSubject)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
	case err != nil:
		return Position{}, fmt.Errorf("the last message of %s in stream %s: %w", info.Config.FilterSubject, stream, err)
	default:
		position.Last = last.Sequence
	}
	return position, nil
}

// PublishUntilTaken publishes until another reader has taken a message from a
// consumer, and once more, so that the gap is seen.
func PublishUntilTaken(t testing.TB, taken <-chan jetstream.Msg, publish func()) {
	t.Helper()
	WaitFor(t, "another reader to have taken a message", func() (bool, error) {
		publish()
		select {
		case message := <-taken:
			return message != nil, nil
		default:
			return false, nil
		}
	})
	publish()
}
