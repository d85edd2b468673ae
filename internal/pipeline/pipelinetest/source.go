// Package pipelinetest gives messages from memory, for tests of what a reader does with
// them, and finds and leaves messages on a server. What the server does is tested with it.
package pipelinetest

import (
	"context"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// Source stands in for a [pipeline.Consumer], and records the answers that it gets.
// Its methods may be called from several goroutines.
type Source struct {
	// Forgets says that acknowledgements have no effect.
	Forgets bool

	mu           sync.Mutex
	messages     []*pipeline.Delivery
	next         int
	acknowledged []uint64
	inProgress   []uint64
}

// NewSource gives bodies as messages 1, 2, … of a subject, a second apart.
func NewSource(subject string, since time.Time, bodies ...string) *Source {
	s := &Source{}
	for i, body := range bodies {
		number := uint64(i) + 1
		s.messages = append(s.messages, pipeline.NewDelivery(pipeline.Stored{
			Sequence: number, Time: since.Add(time.Duration(i) * time.Second), Subject: subject, Body: []byte(body),
		}, number, answers{s, number}))
	}
	return s
}

// Messages are all messages of the source.
func (s *Source) Messages() []*pipeline.Delivery { return s.messages }

// Acknowledged are the numbers of the acknowledgements, in their order.
func (s *Source) Acknowledged() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acknowledged
}

// InProgress are the numbers of the messages that were said to be in progress.
func (s *Source) InProgress() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inProgress
}

// Rewind gives all messages again.
func (s *Source) Rewind(context.Context) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	given := s.next
	s.next = 0
	return given, nil
}

// Order is that of a source that was rewound.
func (s *Source) Order() pipeline.Order { return pipeline.Order{} }

// FetchBytes gives up to n of the next messages, and never waits.
func (s *Source) FetchBytes(_ context.Context, n, _ int, _ time.Duration, _ <-chan struct{}) ([]*pipeline.Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.next
	s.next = min(len(s.messages), from+n)
	return s.messages[from:s.next], nil
}

// Ack acknowledges messages: the last one stands for all.
func (s *Source) Ack(ctx context.Context, messages []*pipeline.Delivery) error {
	return pipeline.Acknowledge(ctx, messages[len(messages)-1:])
}

// AckNoted reports whether an acknowledgement had an effect.
func (s *Source) AckNoted(context.Context, *pipeline.Delivery) (bool, error) { return !s.Forgets, nil }

// answers are those to one message.
type answers struct {
	source *Source
	number uint64
}

func (a answers) Ack() error {
	a.source.mu.Lock()
	defer a.source.mu.Unlock()
	a.source.acknowledged = append(a.source.acknowledged, a.number)
	return nil
}

func (a answers) AckSync(context.Context) error { return a.Ack() }

func (a answers) InProgress() error {
	a.source.mu.Lock()
	defer a.source.mu.Unlock()
	a.source.inProgress = append(a.source.inProgress, a.number)
	return nil
}

func (a answers) Reject() error { return nil }
