package alerts

import "time"

// Phase says what is to be told of an alert.
type Phase string

// The phases of an alert.
const (
	Firing  Phase = "firing"
	Cleared Phase = "cleared"
)

// Record is an alert that fires, or has just cleared.
type Record struct {
	Name   string `json:"name"`
	Rule   string `json:"rule"`
	Object string `json:"object"`
	Text   string `json:"text"`
	// Severity is a word. That and Owner say whom it was told to when it fired.
	Severity string `json:"severity"`
	Owner    string `json:"owner,omitempty"`
	// Link is told beside the text: whoever has it reads what it leads to.
	Link  string `json:"link,omitempty"`
	Phase Phase  `json:"phase"`
	// Message identifies what is told. Each phase, and each time that it is told again, has
	// one of its own.
	Message string `json:"message"`
	// Group is the same for records that are told in one message.
	Group string `json:"group,omitempty"`
	// Since is since when it is so, and Until when it ended.
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
	// Sent says that the message was sent, or given up.
	Sent   bool      `json:"sent"`
	SentAt time.Time `json:"sent_at,omitzero"`
	// Replica wrote it last, and Count grows each time.
	Replica string `json:"replica"`
	Count   int64  `json:"count"`
}
