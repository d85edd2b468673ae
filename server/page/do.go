package page

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/verbs"
)

// maxNames is how many names an answer has.
const maxNames = 20

// maxForm bounds a form in bytes.
const maxForm = 1 << 20

// answer is what became of a form: it is done, or it needs a confirmation, or it failed.
type answer struct {
	OK bool `json:"ok"`
	// Ask says that nothing was done: the same form with its Fields does it.
	Ask bool `json:"ask,omitempty"`
	// Reason says that there is a field for why it is done.
	Reason bool `json:"reason,omitempty"`
	// Lasts are how long what is done may last: texts, and values of the field "for".
	Lasts []field `json:"lasts,omitempty"`

	Title string   `json:"title"`
	Text  string   `json:"text"`
	Names []string `json:"names,omitempty"`
	// More is how many names are left out.
	More   int     `json:"more,omitempty"`
	Link   string  `json:"link,omitempty"`
	Action string  `json:"action,omitempty"`
	Fields []field `json:"fields,omitempty"`
	// Back is where people came from.
	Back string `json:"-"`
}

// whyField is the field of a form that has people asked why, though nothing else is asked.
const whyField = "why"

// lastsField is the field of a form that says how long it lasts.
const lastsField = "for"

// lasts are what people choose from. Other durations are for the command line.
var lasts = []field{
	{"until it is resumed", ""}, {"15 minutes", "PT15M"}, {"1 hour", "PT1H"}, {"2 hours", "PT2H"}, {"8 hours", "PT8H"}, {"1 day", "P1D"}, {"1 week", "P7D"},
}

// do does what a button says.
func (p *Page) do(w http.ResponseWriter, r *http.Request) {
	values, ok := p.form(w, r)
	if !ok {
		return
	}
	name := r.PathValue("verb")
	v := verbs.Find(func(v *verbs.Verb) bool { return v.Name == name && v.Label != "" })
	if v == nil {
		p.reply(w, r, http.StatusNotFound, unknown())
		return
	}
	label := title(v)
	args, err := readArgs(v, values)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	confirmed := values.Get("confirmed") == "yes"
	if !confirmed && (v.Question != "" || !values.Has("reason") && (v.ReasonShown || values.Has(whyField) && v.TakesReason())) {
		p.reply(w, r, http.StatusOK, ask(r, v, v.Ask(args), values))
		return
	}
	args.Preview = v.Previews && !confirmed
	if v == verbs.CreateSilence && len(args.Names) > 1 {
		p.silenceAll(w, r, args)
		return
	}
	done, err := v.Do(r.Context(), p.API.Calls, args)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	a := &answer{OK: true, Title: label, Text: done.Text + "."}
	if args.Preview {
		a = ask(r, v, done.Text, values)
	}
	if done.Run != "" {
		a.Link = runPath(done.Run)
	}
	a.name(done.Names)
	p.reply(w, r, http.StatusOK, a)
}

// title is the label of a verb by itself.
func title(v *verbs.Verb) string { return strings.TrimSuffix(v.Label, "…") }

func unknown() *answer { return &answer{Title: "Not done", Text: "There is no such action."} }

// name adds names to an answer, but no more than people read.
func (a *answer) name(names []string) {
	a.Names = names[:min(len(names), maxNames)]
	a.More = len(names) - len(a.Names)
}

// fail answers with an error of the API.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, err error) {
	p.reply(w, r, errorStatus(err), &answer{Title: "Nothing was done", Text: "Nothing was done: " + sentence(err) + "."})
}

// form reads the form of a request.
func (p *Page) form(w http.ResponseWriter, r *http.Request) (url.Values, bool) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		p.reply(w, r, http.StatusBadRequest, &answer{Title: "Not done", Text: "The form cannot be read."})
		return nil, false
	}
	return r.PostForm, true
}

// ask asks whether the form is meant, and why, unless it says so.
func ask(r *http.Request, v *verbs.Verb, text string, values url.Values) *answer {
	a := &answer{Ask: true, Reason: v.TakesReason() && !values.Has("reason"), Title: title(v), Text: text, Action: r.URL.Path}
	if v.TakesDuration() && !values.Has(lastsField) {
		a.Lasts = lasts
	}
	for name, all := range values {
		for _, value := range all {
			if name != "confirmed" && name != "chosen" && name != whyField {
				a.Fields = append(a.Fields, field{name, value})
			}
		}
	}
	a.Fields = append(a.Fields, field{"confirmed", "yes"})
	return a
}

// errorStatus is the HTTP status of an error of the API.
func errorStatus(err error) int {
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument:
		return http.StatusBadRequest
	case connect.CodeNotFound:
		return http.StatusNotFound
	case connect.CodePermissionDenied, connect.CodeUnauthenticated:
		return http.StatusForbidden
	case connect.CodeAlreadyExists, connect.CodeAborted, connect.CodeFailedPrecondition:
		return http.StatusConflict
	}
	return http.StatusBadGateway
}

// wantsJSON reports whether the script sent a form.
func wantsJSON(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "application/json")
}

// encode writes an answer for the script.
func (p *Page) encode(w http.ResponseWriter, r *http.Request, a *answer) {
	if err := json.NewEncoder(w).Encode(a); err != nil {
		p.Logger.DebugContext(r.Context(), "an answer could not be sent", "error", err)
	}
}

// reply answers a form: the script gets JSON, a browser without it a document.
func (p *Page) reply(w http.ResponseWriter, r *http.Request, status int, a *answer) {
	if wantsJSON(r) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		p.encode(w, r, a)
		return
	}
	a.Back = "/"
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host && strings.HasPrefix(from.Path, "/") && !strings.HasPrefix(from.Path, "//") {
		a.Back = from.RequestURI()
	}
	p.write(w, r, status, &document{Title: a.Title, View: "answer", Data: a})
}
