package changes

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// Keeper sends changes to NATS.
type Keeper struct {
	client *pipeline.Client
	logger *slog.Logger

	mu     sync.Mutex
	sender *pipeline.Sender // nil before the first change
	closed bool
}

// NewKeeper makes a keeper that connects when there is a change.
func NewKeeper(client *pipeline.Client, logger *slog.Logger) *Keeper {
	return &Keeper{client: client, logger: logger}
}

// Keep takes a change. It does not wait.
func (k *Keeper) Keep(record Record) {
	body, err := json.Marshal(record.bounded())
	if err != nil {
		k.logger.Error("a change is not kept", "verb", record.Verb, "error", err)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	if k.sender == nil {
		k.sender = pipeline.NewSender(context.Background(), k.client, k.logger, "changes", func() {})
	}
	k.sender.Send(Subject(record.Kind, cmp.Or(record.Object, "_")), body)
}

// Close sends what is left, for at most two seconds.
func (k *Keeper) Close() {
	k.mu.Lock()
	sender := k.sender
	k.closed = true
	k.mu.Unlock()
	if sender != nil {
		sender.Close()
	}
}
