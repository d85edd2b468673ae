package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// event is what has changed.
type event struct {
	// Topics name what other views read again: alerts, queues, queue:NAME, job:ID, and so on.
	Topics []string `json:"topics"`
	// Again asks for everything again: the browser's state is too old, or another process's.
	Again bool `json:"again,omitempty"`
	// Rows are the rows of the grid that changed, by their ids.
	Rows    map[string]string `json:"rows,omitempty"`
	Removed []string          `json:"removed,omitempty"`
	// Ended is how many jobs have ended.
	Ended int32 `json:"ended,omitempty"`
	// Parts are other parts of the grid's view that changed, by their ids.
	Parts  map[string]string `json:"parts,omitempty"`
	Alerts int               `json:"alerts"`
	Title  string            `json:"title,omitempty"`
	// Lines are rows of the log of a run that have come.
	Lines []string `json:"lines,omitempty"`
}

// Pauses of a stream: browsers get changes at most that often, and a sign of life when there
// are none.
const (
	pause    = 200 * time.Millisecond
	lifeSign = 20 * time.Second
)

// EventsPath is that of the stream of what changes, which goes on until someone ends it.
const EventsPath = "/events"

// events sends what changes: of the overview, or of one run.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	// A stream goes on for as long as someone looks.
	_ = control.SetWriteDeadline(time.Time{}) // Not every connection has one.
	messages, ended := make(chan message), make(chan struct{})
	defer close(ended)
	go func() {
		defer close(messages)
		err := p.follow(r, func(m message) bool {
			select {
			case messages <- m:
				return true
			case <-ended:
				return false
			}
		})
		if err != nil && !errors.Is(err, io.EOF) && r.Context().Err() == nil {
			p.Logger.DebugContext(r.Context(), "a stream of events ended", "error", err)
		}
	}()
	if _, err := io.WriteString(w, "retry: 1000\n\n"); err != nil || control.Flush() != nil {
		return
	}
	alive := time.NewTicker(lifeSign)
	defer alive.Stop()
	for {
		text := ": \n\n"
		select {
		case <-r.Context().Done():
			return
		case <-alive.C:
		case m, ok := <-messages:
			if !ok {
				return
			}
			data, err := json.Marshal(m.event)
			if err != nil {
				p.Logger.ErrorContext(r.Context(), "an event cannot be written", "error", err)
				return
			}
			text = fmt.Sprintf("id: %s\ndata: %s\n\n", m.id, data)
		}
		if _, err := io.WriteString(w, text); err != nil || control.Flush() != nil {
			return
		}
		if strings.HasPrefix(text, "id") {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(pause): // What changes meanwhile comes as one.
			}
		}
	}
}

// message is an event with its id.
type message struct {
	id    string
	event *event
}

func (p *Page) follow(r *http.Request, send func(message) bool) error {
	if name := r.URL.Query().Get("run"); name != "" {
		return p.followRun(r, name, send)
	}
	return p.followOverview(r, send)
}

// followOverview sends what changes since the browser's revision.
func (p *Page) followOverview(r *http.Request, send func(message) bool) error {
	values := r.URL.Query()
	runs := readRuns(values)
	last := r.Header.Get("Last-Event-ID")
	if last == "" {
		last = values.Get("revision")
	}
	revision, known := p.readRevision(last)
	stream, err := p.API.Overview.WatchOverview(r.Context(), &jobsv1.WatchOverviewRequest{Runs: int32(runs), Revision: revision})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }() // Nobody listens any more.
	sent := map[string]string{}
	for {
		changes, err := stream.Receive()
		if err != nil {
			return err
		}
		made, err := newEvent(p.role(r), changes, values)
		if err != nil {
			return err
		}
		if err := p.addFailures(r, made); err != nil {
			return err
		}
		if !changes.GetDelta() {
			// A browser that has this very revision has it all.
			if known && revision == changes.GetOverview().GetRevision() {
				continue
			}
			made = &event{Again: true, Topics: []string{"all"}, Alerts: newAlerts(verbs.RoleNone, changes.GetOverview().GetAlerts(), 0).NeedYou()}
			clear(sent) // The browser may read other parts.
		}
		made.leaveOut(sent)
		if !send(message{p.revision(changes.GetOverview()), made}) {
			return nil
		}
	}
}

// readRevision reads the id of an event. That of another process is not known.
func (p *Page) readRevision(id string) (int64, bool) {
	text, ok := strings.CutPrefix(id, p.epoch+"-")
	if !ok {
		return 0, false
	}
	revision, err := strconv.ParseInt(text, 10, 64)
	return revision, err == nil && revision > 0
}

// newEvent is the event of changes, for a role and a view.
func newEvent(role verbs.Role, changes *jobsv1.WatchOverviewResponse, view url.Values) (*event, error) {
	o := changes.GetOverview()
	alerts := newAlerts(role, o.GetAlerts(), fewOthers)
	made := &event{Topics: []string{"alerts"}, Alerts: alerts.NeedYou()}
	topic := func(all, one string, names []string) {
		if len(names) > 0 {
			made.Topics = append(made.Topics, all)
			for _, name := range names {
				if one != "" {
					made.Topics = append(made.Topics, one+name)
				}
			}
		}
	}
	topic("jobs", "job:", append(namesOf(o.GetJobs(), (*jobsv1.JobOverview).GetId), changes.GetRemovedJobs()...))
	topic("queues", "queue:", append(namesOf(o.GetQueues(), (*jobsv1.Queue).GetName), changes.GetRemovedQueues()...))
	topic("loads", "", append(namesOf(o.GetLoads(), loadName), changes.GetRemovedLoads()...))
	topic("workers", "", append(namesOf(o.GetWorkers(), (*jobsv1.Worker).GetName), changes.GetRemovedWorkers()...))
	topic("integrations", "", append(namesOf(o.GetIntegrations(), (*jobsv1.IntegrationOverview).GetName), changes.GetRemovedIntegrations()...))
	if view.Get("view") != "home" {
		return made, nil
	}
	made.Title, made.Ended = homeTitle(made.Alerts), o.GetEndedJobs()
	if err := made.addRows(changes, view); err != nil {
		return nil, err
	}
	made.Parts = map[string]string{}
	data := struct {
		*jobsv1.Overview
		Alerts alertList
	}{o, alerts}
	for _, part := range []string{"needs-you", "servers"} {
		text, err := render(part, data)
		if err != nil {
			return nil, err
		}
		made.Parts[part] = string(text)
	}
	return made, nil
}

// ages are texts of times, which change with the clock. The script keeps them up to date.
var ages = regexp.MustCompile(`(<time [^>]*>)[^<]*`)

// leaveOut takes the parts out that are as the stream has sent them last.
func (e *event) leaveOut(sent map[string]string) {
	for part, text := range e.Parts {
		text = ages.ReplaceAllString(text, "$1")
		if sent[part] == text {
			delete(e.Parts, part)
		}
		sent[part] = text
	}
}

// addRows adds the rows of the grid that changed, as the view shows them.
func (e *event) addRows(changes *jobsv1.WatchOverviewResponse, view url.Values) error {
	chosen, laid := readSelection(view), readLayout(view)
	e.Rows = map[string]string{}
	add := func(id, name string, data any) error {
		text, err := render(name, data)
		e.Rows[id] = string(text)
		return err
	}
	for _, id := range changes.GetRemovedJobs() {
		e.Removed = append(e.Removed, "j-"+id)
	}
	for _, name := range changes.GetRemovedQueues() {
		e.Removed = append(e.Removed, "q-"+name)
	}
	for _, j := range changes.GetOverview().GetJobs() {
		if chosen.away(j) {
			e.Removed = append(e.Removed, "j-"+j.GetId())
		} else if err := add("j-"+j.GetId(), "row", newRow(j, laid)); err != nil {
			return err
		}
	}
	for _, q := range changes.GetOverview().GetQueues() {
		if err := add("q-"+q.GetName(), "queue-line", newQueueLine(q, laid)); err != nil {
			return err
		}
	}
	return nil
}

func namesOf[M any](messages []M, name func(M) string) []string {
	names := make([]string, len(messages))
	for i, m := range messages {
		names[i] = name(m)
	}
	return slices.Clip(names)
}
