package watchdog

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// Message is what a receiver sends. Its JSON is the body of webhooks: it only ever grows.
type Message struct {
	// ID is the same whenever the message is sent again.
	ID string `json:"id"`
	// Phase is firing or cleared.
	Phase alerts.Phase `json:"phase"`
	// Alert is RULE/OBJECT.
	Alert  string `json:"alert"`
	Rule   string `json:"rule"`
	Object string `json:"object"`
	// Text is one sentence.
	Text string `json:"text"`
	// FireTime is since when it is so, and ClearTime since when it is no more.
	FireTime  time.Time  `json:"fire_time"`
	ClearTime *time.Time `json:"clear_time,omitempty"`
}

func messageOf(r alerts.Record) Message {
	m := Message{ID: r.Message, Phase: r.Phase, Alert: r.Name, Rule: r.Rule, Object: r.Object, Text: r.Text, FireTime: r.Since.UTC()}
	if r.Phase == alerts.Cleared {
		until := r.Until.UTC()
		m.ClearTime = &until
	}
	return m
}

// Receiver sends messages to people. Send tries again by itself as long as that makes sense.
type Receiver interface {
	Send(ctx context.Context, m Message) error
}

// Route sends the messages of some rules to a receiver.
type Route struct {
	Name     string
	Receiver Receiver
	// Rules are words of rules; none means all.
	Rules []string
}

func (r Route) takes(rule string) bool { return len(r.Rules) == 0 || slices.Contains(r.Rules, rule) }

// Log is a receiver that writes a line for each message.
type Log struct{ Logger *slog.Logger }

// Send implements [Receiver].
func (l Log) Send(ctx context.Context, m Message) error {
	args := []any{"alert", m.Alert, "message_id", m.ID, "since", m.FireTime}
	if m.Phase == alerts.Cleared {
		l.Logger.InfoContext(ctx, "an alert has cleared: "+m.Text, args...)
	} else {
		l.Logger.WarnContext(ctx, "an alert fires: "+m.Text, args...)
	}
	return nil
}

// Metrics counts what a watchdog does.
type Metrics interface {
	// Firing sets how many alerts of a rule fire.
	Firing(rule string, alerts int)
	// Notified counts a message by its receiver and whether it was sent.
	Notified(receiver string, sent bool)
}
