package watchdog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// Notice tells of one alert.
type Notice struct {
	// ID is the same whenever the alert is told again after a failure.
	ID string `json:"id"`
	// Phase is firing or cleared.
	Phase alerts.Phase `json:"phase"`
	// Alert is RULE/OBJECT.
	Alert  string `json:"alert"`
	Rule   string `json:"rule"`
	Object string `json:"object"`
	// Severity is critical, warning or info.
	Severity string `json:"severity"`
	// Owner is empty if there is none.
	Owner string `json:"owner,omitempty"`
	// Text is one sentence.
	Text string `json:"text"`
	// Link leads to the files of an export. The log does not have it.
	Link string `json:"link,omitempty"`
	// FireTime is since when it is so, and ClearTime since when it is no more.
	FireTime  time.Time  `json:"fire_time"`
	ClearTime *time.Time `json:"clear_time,omitempty"`
}

// Message is what a receiver sends: the alerts of one phase that fire or clear at about the
// same time. Its JSON is the body of webhooks: it only ever grows. Its own fields are those of
// the first alert. Of several alerts, ID is that of all together, and Text counts them.
type Message struct {
	Notice
	// Alerts are all of them, the most urgent first.
	Alerts []Notice `json:"alerts"`
}

func noticeOf(r alerts.Record) Notice {
	n := Notice{
		ID: r.Message, Phase: r.Phase, Alert: r.Name, Rule: r.Rule, Object: r.Object, Severity: r.Severity, Owner: r.Owner, Text: r.Text, Link: r.Link, FireTime: r.Since.UTC(),
	}
	if r.Phase == alerts.Cleared {
		until := r.Until.UTC()
		n.ClearTime = &until
	}
	return n
}

// messageOf makes a message of alerts of one phase, of which there is one at least. The ID
// follows from the alerts: whoever takes over all of them sends it with the same one.
func messageOf(notices []Notice) Message {
	notices = slices.SortedFunc(slices.Values(notices), func(x, y Notice) int {
		return cmp.Or(cmp.Compare(readmodel.EnumOf[jobsv1.AlertSeverity](x.Severity), readmodel.EnumOf[jobsv1.AlertSeverity](y.Severity)),
			cmp.Compare(readmodel.RuleOf(x.Rule), readmodel.RuleOf(y.Rule)), strings.Compare(x.Object, y.Object))
	})
	m := Message{Notice: notices[0], Alerts: notices}
	if len(notices) == 1 {
		return m
	}
	hash, names := sha256.New(), make([]string, len(notices))
	for n, notice := range notices {
		names[n] = notice.Alert
		_, _ = hash.Write([]byte(notice.ID)) // It takes all.
	}
	m.ID = hex.EncodeToString(hash.Sum(nil)[:16])
	verb := "fire"
	if m.Phase == alerts.Cleared {
		verb = "have cleared"
	}
	m.Text = job.Cut(fmt.Sprintf("%d alerts %s: %s", len(notices), verb, strings.Join(names, ", ")), maxText)
	return m
}

// maxText bounds the text of several alerts in bytes.
const maxText = 500

// Receiver sends messages to people. Send tries again by itself as long as that makes sense.
type Receiver interface {
	Send(ctx context.Context, m Message) error
}

// Route sends some alerts to a receiver. Of each list, none means all.
type Route struct {
	Name     string
	Receiver Receiver
	// Rules and Severities are words.
	Rules, Severities []string
	// Owners may have "", for alerts without an owner.
	Owners []string
}

func (r Route) takes(n Notice) bool {
	fits := func(list []string, value string) bool { return len(list) == 0 || slices.Contains(list, value) }
	return fits(r.Rules, n.Rule) && fits(r.Severities, n.Severity) && fits(r.Owners, n.Owner)
}

// Log is a receiver that writes a line for each alert.
type Log struct{ Logger *slog.Logger }

// Send implements [Receiver].
func (l Log) Send(ctx context.Context, m Message) error {
	for _, n := range m.Alerts {
		args := []any{"alert", n.Alert, "severity", n.Severity, "message_id", n.ID, "since", n.FireTime}
		switch {
		case n.Phase == alerts.Cleared:
			l.Logger.InfoContext(ctx, "an alert has cleared: "+n.Text, args...)
		case readmodel.RuleOf(n.Rule) == runEnded:
			l.Logger.InfoContext(ctx, "a run has ended: "+n.Text, args...)
		default:
			l.Logger.WarnContext(ctx, "an alert fires: "+n.Text, args...)
		}
	}
	return nil
}

// Metrics counts what a watchdog does.
type Metrics interface {
	// Firing sets how many alerts of a rule fire.
	Firing(rule string, alerts int)
	// Notified counts a message by its receiver and whether it was sent.
	Notified(receiver string, sent bool)
	// Heartbeat sets when the URL of the heartbeat took a call last.
	Heartbeat(taken time.Time)
}
