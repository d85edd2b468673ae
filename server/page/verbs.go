package page

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// formTime is how forms write times, in UTC.
const formTime = "2006-01-02T15:04"

// button is a form with one button, or a link.
type button struct {
	Verb, Label, Link string
	Fields            []field
	// Asks says that there is a question before it.
	Asks bool
}

// Name is what the button is called where only one thing is to be told from another.
func (b button) Name() string {
	words := []string{b.Label}
	for _, f := range b.Fields {
		words = append(words, f.Value)
	}
	return strings.Join(words, " ")
}

// buttons are those of the verbs of a list that a role may press, that apply to something, and
// that are done to what the names name.
func buttons(role verbs.Role, list []*verbs.Verb, of verbs.Subject, names ...string) []button {
	var made []button
	for _, v := range verbs.Offered(list, role, of) {
		made = append(made, newButton(v, names...))
	}
	return made
}

func newButton(v *verbs.Verb, names ...string) button {
	b := button{Verb: v.Name, Label: v.Label, Asks: v.Asks()}
	if v.Times { // It has a form, in the view of the job.
		b.Link = jobPath(names[0]) + "#" + v.Name
	}
	for _, name := range names {
		b.Fields = append(b.Fields, field{"name", name})
	}
	return b
}

// with are buttons with more fields.
func with(made []button, more ...field) []button {
	for i := range made {
		made[i].Fields = append(made[i].Fields, more...)
	}
	return made
}

// ofAll are buttons with a text that says what they are done to.
func ofAll(made []button, what string) []button {
	for i, b := range made {
		label, asks := strings.CutSuffix(b.Label, "…")
		made[i].Label = label + " " + what
		if asks {
			made[i].Label += "…"
		}
	}
	return made
}

// role is that of whoever makes a request.
func (p *Page) role(r *http.Request) verbs.Role {
	if p.Role == nil {
		return verbs.RoleAdmin
	}
	return p.Role(r)
}

// offers reports whether a role may press the button of a verb that applies to something.
func offers(role verbs.Role, v *verbs.Verb, of verbs.Subject) bool {
	return len(verbs.Offered([]*verbs.Verb{v}, role, of)) > 0
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// readArgs reads what a form says of a verb.
func readArgs(v *verbs.Verb, values url.Values) (verbs.Args, error) {
	a := verbs.Args{
		Names: values["name"], Reason: values.Get("reason"), Rule: jobsv1.AlertRule(jobsv1.AlertRule_value["ALERT_RULE_"+values.Get("rule")]),
	}
	for _, text := range values["sequence"] {
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return a, badField("sequence")
		}
		a.Sequences = append(a.Sequences, number)
	}
	if len(a.Sequences) == 0 {
		a.Filter = readQuarantineFilter(values)
	}
	if text := values.Get(lastsField); text != "" {
		period, err := api.ParseDuration(text)
		if err != nil {
			return a, badField(lastsField)
		}
		a.For = period
	}
	if !v.Times {
		return a, nil
	}
	var err error
	if values.Has("for") {
		a.End, err = readUntil(values.Get("for"))
		return a, err
	}
	if a.Start, err = time.ParseInLocation(formTime, values.Get("from"), time.UTC); err != nil {
		return a, badField("from")
	}
	if a.End, err = time.ParseInLocation(formTime, values.Get("to"), time.UTC); err != nil {
		return a, badField("to")
	}
	return a, nil
}

// readUntil reads how long something holds: a duration such as 4h, or when it ends.
func readUntil(text string) (time.Time, error) {
	if end, err := time.Parse(time.RFC3339, text); err == nil {
		return end, nil
	}
	length, err := time.ParseDuration(text)
	if err != nil || length <= 0 {
		return time.Time{}, badField("for")
	}
	return time.Now().Add(length), nil
}

// badField is the error of a form whose field cannot be read.
func badField(name string) error {
	return connect.NewError(connect.CodeInvalidArgument, "the field "+name+" cannot be read")
}
