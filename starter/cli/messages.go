package cli

import (
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dendrascience/dendra-jobs/api"
)

// wordOf is the word that people read for a value of an enum of the Job API: running for
// RUN_STATUS_RUNNING; "" if it is unspecified.
func wordOf(value protoreflect.Enum) string { return api.Word(value) }

// wordsOf are the words of all values of an enum, without the unspecified one.
func wordsOf(enum protoreflect.Enum) []string {
	var list []string
	for values, n := enum.Descriptor().Values(), 1; n < values.Len(); n++ {
		list = append(list, wordOf(enum.Type().New(values.Get(n).Number())))
	}
	return list
}

// modeWord is the word that people read for a mode, one-shot for one_shot.
func modeWord(mode string) string { return strings.ReplaceAll(mode, "_", "-") }

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
