package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Delivery is a message that a consumer delivered, and that wants an answer.
type Delivery struct {
	Stored
	// Number is that of the delivery. A consumer counts its deliveries without gaps.
	Number uint64

	answers Answers
}

// Answers tell the source of a delivery what became of it.
type Answers interface {
	// Ack says that the message is done with. It does not wait.
	Ack() error
	// AckSync is Ack, and returns when the source has noted it.
	AckSync(ctx context.Context) error
	// InProgress says that the message is still worked on, and need not come again yet.
	InProgress() error
	// Reject gives the message back, to be delivered again.
	Reject() error
}

// NewDelivery makes a delivery whose answers go elsewhere than to a server.
func NewDelivery(stored Stored, number uint64, answers Answers) *Delivery {
	return &Delivery{Stored: stored, Number: number, answers: answers}
}

// InProgress says that the message is still worked on, and need not come again yet.
func (d *Delivery) InProgress() error { return d.answers.InProgress() }

// Reject gives the message back, to be delivered again.
func (d *Delivery) Reject() error { return d.answers.Reject() }

// Acknowledge says that messages are done with, in their order, and returns when their
// source has noted the last one, and so all. It sends nothing once ctx has ended: the
// messages may be another reader's by then.
func Acknowledge(ctx context.Context, messages []*Delivery) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, message := range messages {
		var err error
		if i < len(messages)-1 {
			err = message.answers.Ack()
		} else {
			err = message.answers.AckSync(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// delivered reads a message that came to a subscription.
func delivered(message *nats.Msg) (*Delivery, error) {
	meta, err := message.Metadata()
	if err != nil {
		return nil, fmt.Errorf("a message on %s does not come from a stream: %w", message.Subject, err)
	}
	return &Delivery{
		Stored: Stored{
			Sequence: meta.Sequence.Stream, Time: meta.Timestamp.UTC(),
			Subject: message.Subject, Header: message.Header, Body: message.Data,
		},
		Number: meta.Sequence.Consumer, answers: toServer{message},
	}, nil
}

// ackTimeout is how long the server may take to answer an acknowledgement.
const ackTimeout = 10 * time.Second

// toServer answers the server.
type toServer struct{ message *nats.Msg }

func (s toServer) Ack() error        { return s.message.Ack() }
func (s toServer) InProgress() error { return s.message.InProgress() }
func (s toServer) Reject() error     { return s.message.Nak() }

func (s toServer) AckSync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	return s.message.AckSync(nats.Context(ctx))
}
