package page

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// runPath is the address of a run.
func runPath(name string) string { return "/runs/" + url.PathEscape(name) }

// runView is all about one run.
type runView struct {
	*jobsv1.Run
	Status     string
	Spec       string
	Cursor     string
	Output     string
	Temporal   string
	Buttons    []button
	InProgress bool
	Log        logView
	Story      *spansView
	Durations  *durationsView
	// Notes say what could not be read.
	Notes []string
}

func (p *Page) run(r *http.Request) (*document, error) {
	answer, err := p.API.Runs.GetRun(r.Context(), &jobsv1.GetRunRequest{Name: r.PathValue("name")})
	if err != nil {
		return nil, err
	}
	run := answer.GetRun()
	data := runView{Run: run, Status: word(run.GetStatus()), Temporal: p.temporalLink(run.GetName())}
	if run.GetSpec() != nil {
		data.Spec = indented(run.GetSpec())
	}
	if run.GetCursor() != nil {
		data.Cursor = indented(run.GetCursor())
	}
	if run.GetOutput() != nil {
		data.Output = indented(run.GetOutput())
	}
	data.InProgress = verbs.Open(run.GetStatus())
	data.Buttons = buttons(p.role(r), verbs.RunVerbs(), verbs.OfRun(run), run.GetName())
	now := time.Now()
	data.Story = newSpans(run, now)
	var group errgroup.Group
	group.Go(func() error {
		data.Log = p.log(r.Context(), run.GetName(), readLogQuery(r.URL.Query()))
		return nil // It has a note instead.
	})
	if data.Durations, err = p.durations(r.Context(), run, now); err != nil {
		data.Notes = append(data.Notes, "The other runs of the job cannot be read: "+sentence(err)+".")
	}
	_ = group.Wait()
	data.Log.Follow = data.InProgress
	doc := &document{Title: "Run of " + run.GetJobId(), View: "run", Section: "/", Follow: []string{"job:" + run.GetJobId()}, Data: data}
	if data.InProgress {
		doc.Run = run.GetName()
	}
	return doc, nil
}

// temporalLink is the address of a run in Temporal's Web UI. Empty if there is none: an
// iteration is part of an activity.
func (p *Page) temporalLink(name string) string {
	at := strings.LastIndex(name, "@")
	if p.TemporalUI == "" || at < 0 {
		return ""
	}
	return strings.TrimSuffix(p.TemporalUI, "/") + "/namespaces/" + url.PathEscape(p.Namespace) +
		"/workflows/" + url.PathEscape(name[:at]) + "/" + url.PathEscape(name[at+1:]) + "/history"
}
