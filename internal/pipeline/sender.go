package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// senderWaiting is how many messages wait while NATS is away. What comes then is lost.
	senderWaiting = 1000
	// senderClose is how long the end of a process waits for its last messages.
	senderClose = 2 * time.Second
)

// Sender sends messages that nobody waits for: what NATS does not take is lost.
type Sender struct {
	client   *Client
	logger   *slog.Logger
	what     string
	lost     func()
	messages chan *nats.Msg
	cancel   context.CancelFunc
	ended    sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// NewSender makes a sender that works until it is closed, or ctx ends. What says what is sent, in
// the plural, for the log: "the logs of runs". It calls lost for each message that is lost.
func NewSender(ctx context.Context, client *Client, logger *slog.Logger, what string, lost func()) *Sender {
	ctx, cancel := context.WithCancel(ctx)
	s := &Sender{client: client, logger: logger, what: what, lost: lost, messages: make(chan *nats.Msg, senderWaiting), cancel: cancel}
	s.ended.Go(func() { s.send(ctx) })
	return s
}

// Send takes a message. It does not wait: one for which there is no room is lost.
func (s *Sender) Send(subject string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.lost()
		return
	}
	select {
	case s.messages <- &nats.Msg{Subject: subject, Data: body}:
	default:
		s.lost()
	}
}

// Close sends what is left, for at most two seconds.
func (s *Sender) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.messages)
	}
	s.mu.Unlock()
	timeout := time.AfterFunc(senderClose, s.cancel)
	s.ended.Wait()
	timeout.Stop()
	s.cancel()
}

// send publishes the messages in their order.
func (s *Sender) send(ctx context.Context) {
	var js jetstream.JetStream
	kept := true
	for message := range s.messages {
		err := s.client.Ready(ctx)
		if err == nil && js == nil {
			js, err = jetstream.New(s.client.JetStream().Conn(),
				jetstream.WithPublishAsyncMaxPending(senderWaiting),
				jetstream.WithPublishAsyncTimeout(publishTimeout),
				jetstream.WithPublishAsyncErrHandler(func(jetstream.JetStream, *nats.Msg, error) { s.lost() }))
		}
		if err == nil {
			_, err = js.PublishMsgAsync(message, jetstream.WithRetryAttempts(0))
		}
		if err != nil {
			s.lost()
		}
		if kept != (err == nil) && ctx.Err() == nil { // told once, and once again
			kept = err == nil
			if kept {
				s.logger.Info(s.what + " are kept again")
			} else {
				s.logger.Warn(s.what+" are not kept", "error", err)
			}
		}
	}
	if js == nil {
		return
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-ctx.Done():
	}
}
