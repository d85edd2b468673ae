package temporalclient

import (
	"context"
	"sync"

	"go.temporal.io/sdk/client"
)

// Late is a client without a connection until [Late.Connect], before which nothing else of
// it may be used.
type Late struct {
	client.Client // nil until it is connected

	settings Settings
	mu       sync.Mutex
}

// NewLate makes a client with settings for [Dial].
func NewLate(s Settings) *Late { return &Late{settings: s} }

// Connect is [Dial], unless the client is connected. dialing is called before, and what it
// gives afterwards; it may be nil.
func (l *Late) Connect(ctx context.Context, dialing func() (done func())) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Client != nil {
		return nil
	}
	if dialing != nil {
		defer dialing()()
	}
	c, err := Dial(ctx, l.settings)
	if err != nil {
		return err
	}
	l.Client = c
	return nil
}

// Close closes the connection, if there is one.
func (l *Late) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Client != nil {
		l.Client.Close()
	}
}
