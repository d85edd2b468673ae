package cli

import (
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// wordOf is the word that people read for a value of an enum of the Job API: running for
// RUN_STATUS_RUNNING; "" if it is unspecified.
func wordOf(value protoreflect.Enum) string {
	values := value.Descriptor().Values()
	found := values.ByNumber(value.Number())
	if found == nil || value.Number() == 0 {
		return ""
	}
	prefix := strings.TrimSuffix(string(values.ByNumber(0).Name()), "UNSPECIFIED")
	return strings.ToLower(strings.TrimPrefix(string(found.Name()), prefix))
}

// modeWord is the word that people read for a mode, one-shot for one_shot.
func modeWord(mode string) string { return strings.ReplaceAll(mode, "_", "-") }

// modeOf is the mode of a job.
func modeOf(j *jobsv1.Job) job.Mode {
	switch j.GetMode().(type) {
	case *jobsv1.Job_OneShot:
		return job.ModeOneShot
	case *jobsv1.Job_Recurring:
		return job.ModeRecurring
	case *jobsv1.Job_Continuous:
		return job.ModeContinuous
	case *jobsv1.Job_Queued:
		return job.ModeQueued
	}
	return ""
}

// query is a filter of the Job API.
type query struct{ terms []string }

// is adds that a field has a value, unless the value is "".
func (q *query) is(field, value string) { q.add(field, "=", value) }

// isNot adds that a field does not have a value.
func (q *query) isNot(field, value string) { q.add(field, "!=", value) }

func (q *query) add(field, operator, value string) {
	if value != "" {
		q.terms = append(q.terms, field+" "+operator+" "+quoted(value))
	}
}

// bound adds that a time is from one on, and before another; zero times are no bounds.
func (q *query) bound(field string, from, before time.Time) {
	for operator, at := range map[string]time.Time{">=": from, "<": before} {
		if !at.IsZero() {
			q.add(field, operator, at.UTC().Format(time.RFC3339Nano))
		}
	}
}

// hasTag adds that there is a tag, with any value if it is "".
func (q *query) hasTag(name, value string) {
	text := quoted(value)
	if value == "" {
		text = "*"
	}
	q.terms = append(q.terms, "tags."+quoted(name)+" = "+text)
}

// String joins the terms.
func (q *query) String() string { return strings.Join(q.terms, " AND ") }

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `*`, `\*`)

func quoted(value string) string { return `"` + escapes.Replace(value) + `"` }
