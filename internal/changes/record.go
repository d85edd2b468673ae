package changes

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// Record is a change.
type Record struct {
	// ID numbers the changes. It is that of the stream, which sets it.
	ID     uint64    `json:"-"`
	Time   time.Time `json:"time"`
	Caller string    `json:"caller"`
	Verb   string    `json:"verb"`
	// Kind and Object are what it was done to, and Detail is more of its name. Of a run, Object
	// is its job.
	Kind   string `json:"kind"`
	Object string `json:"object,omitempty"`
	Detail string `json:"detail,omitempty"`
	Reason string `json:"reason,omitempty"`
	Result string `json:"result"`
	// Before and After are the definition of a job, as the Job API has it.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

const (
	// maxText bounds each text in bytes.
	maxText = 1000
	// maxDefinition bounds a definition: a longer one is left out.
	maxDefinition = 128 << 10
)

// bounded is a record that a message has room for.
func (r Record) bounded() Record {
	for _, text := range []*string{&r.Caller, &r.Object, &r.Detail, &r.Reason, &r.Result} {
		*text = job.Cut(*text, maxText)
	}
	if len(r.Before)+len(r.After) > maxDefinition {
		r.Before, r.After = nil, nil
		r.Result += "; the definition is too long to be kept"
	}
	return r
}

// Subject is where the changes of an object are. An empty object means all of the kind.
func Subject(kind, object string) string {
	last := ">"
	if object != "" {
		last = pipeline.Token(object)
	}
	return strings.Join([]string{pipeline.ChangesRoot, kind, last}, ".")
}
