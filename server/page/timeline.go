package page

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// timelineView is the view of all jobs over one clock.
const timelineView = "timeline"

// What a timeline shows: hours back to choose from, the first of which is the usual number,
// and how far it goes ahead.
var timelineHours = []int{6, 1, 24}

const timelineAhead = time.Hour

// Bounds of the runs that are read for a timeline, and of those that are listed below it.
const (
	timelineRuns  = 1000
	timelineLines = 200
)

// timeline is what is shown of all jobs over one clock.
type timeline struct {
	// Begin and End are those of the axis.
	Begin, End time.Time
	Hours      []choice
	hours      int
	// Since and Until are the span that people have chosen, as in the address; "" if none.
	Since, Until string
	// From and To are the span of which the runs are listed.
	From, To time.Time
	Runs     []*jobsv1.Run
	// LeftOut is how many more there are, and More says that there are others still.
	LeftOut int
	More    bool
	Note    string
}

// fields are those of the address.
func (t *timeline) fields() []field {
	fields := []field{{"view", timelineView}, {"since", t.Since}, {"until", t.Until}}
	if t.hours != timelineHours[0] {
		fields = append(fields, field{"hours", strconv.Itoa(t.hours)})
	}
	return fields
}

// readTimeline reads what an address says of a timeline.
func readTimeline(values url.Values, now time.Time) *timeline {
	t := &timeline{hours: timelineHours[0]}
	if n, err := strconv.Atoi(values.Get("hours")); err == nil && slices.Contains(timelineHours, n) {
		t.hours = n
	}
	t.Begin, t.End = now.Add(-time.Duration(t.hours)*time.Hour).Truncate(time.Minute), now.Add(timelineAhead).Truncate(time.Minute)
	// Without a choice it ends with this minute: fields have whole minutes and filters whole
	// seconds, so that now would leave out the latest runs.
	t.From, t.To = t.Begin, now.Truncate(time.Minute).Add(time.Minute)
	since, errSince := time.ParseInLocation(formTime, values.Get("since"), time.UTC)
	until, errUntil := time.ParseInLocation(formTime, values.Get("until"), time.UTC)
	if errSince != nil || errUntil != nil || !since.Before(until) {
		return t
	}
	t.Since, t.Until, t.From, t.To = values.Get("since"), values.Get("until"), since, until
	if since.Before(t.Begin) {
		t.Begin = since
	}
	return t
}

// timelineOf is the document of a timeline. Nothing of it comes by events: the script reads
// it again now and then.
func (p *Page) timelineOf(r *http.Request, data *home) (*document, error) {
	t := readTimeline(r.URL.Query(), time.Now().UTC())
	data.Timeline = t
	data.links()
	for _, n := range slices.Sorted(slices.Values(timelineHours)) {
		t.Hours = append(t.Hours, choice{Value: strconv.Itoa(n), Link: data.link("hours", strconv.Itoa(n)), Chosen: n == t.hours})
	}
	chosen := map[string]bool{}
	for _, line := range data.Rows {
		chosen[line.GetId()] = !line.Hidden
	}
	runs, more, err := p.runsBetween(r.Context(), t.From, t.To)
	if err != nil {
		t.Note = "The runs cannot be read: " + sentence(err) + "."
	}
	t.More = more
	for _, run := range runs {
		if chosen[run.GetJobId()] {
			t.Runs = append(t.Runs, run)
		}
	}
	slices.SortStableFunc(t.Runs, func(a, b *jobsv1.Run) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), b.GetStartTime().AsTime().Compare(a.GetStartTime().AsTime()))
	})
	if t.LeftOut = max(0, len(t.Runs)-timelineLines); t.LeftOut > 0 {
		t.Runs = t.Runs[:timelineLines]
	}
	return &document{Title: homeTitle(data.Alerts.NeedYou()), View: timelineView, Section: "/", Data: data}, nil
}

// first orders runs: those that failed come first.
func first(run *jobsv1.Run) int {
	if failed(run.GetStatus()) {
		return 0
	}
	return 1
}

// failed reports whether a run failed, or was ended from outside.
func failed(status jobsv1.RunStatus) bool {
	switch status {
	case jobsv1.RunStatus_RUN_STATUS_FAILED, jobsv1.RunStatus_RUN_STATUS_TIMED_OUT, jobsv1.RunStatus_RUN_STATUS_TERMINATED:
		return true
	}
	return false
}

// runsBetween lists the latest runs that began between two times, and says whether there are
// more. It is one call, whatever there is.
func (p *Page) runsBetween(ctx context.Context, since, until time.Time) ([]*jobsv1.Run, bool, error) {
	answer, err := p.API.Runs.ListRuns(ctx, &jobsv1.ListRunsRequest{
		PageSize: timelineRuns,
		Filter: "start_time >= " + strconv.Quote(since.UTC().Format(time.RFC3339)) +
			" AND start_time < " + strconv.Quote(until.UTC().Format(time.RFC3339)),
	})
	return answer.GetRuns(), answer.GetNextPageToken() != "", err
}

// lineOfTime is a job on a timeline. Times are in seconds since 1970.
type lineOfTime struct {
	ID   string      `json:"id"`
	Runs []runOfTime `json:"runs"`
	Next []int64     `json:"next"`
}

// runOfTime is a run: its letter, and when it began and ended. It has no end while it is
// under way.
type runOfTime struct {
	Letter string `json:"l"`
	Start  int64  `json:"s"`
	End    int64  `json:"e,omitempty"`
}

// timeline answers with the runs and starts of the jobs that are shown, between two times.
func (p *Page) timeline(w http.ResponseWriter, r *http.Request) {
	answer, err := p.readTimelines(r)
	if err != nil {
		status, doc := p.failed(r, err)
		http.Error(w, doc.Data.(string), status) //nolint:forcetypeassert // That of an error is text.
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		p.Logger.DebugContext(r.Context(), "a timeline was not sent", "error", err)
	}
}

// timelines are those of all jobs that are shown.
type timelines struct {
	Now  int64        `json:"now"`
	Jobs []lineOfTime `json:"jobs"`
	// Note says what is missing.
	Note string `json:"note,omitempty"`
}

func (p *Page) readTimelines(r *http.Request) (*timelines, error) {
	ctx, values := r.Context(), r.URL.Query()
	now := time.Now().UTC()
	t := readTimeline(values, now)
	o, err := p.readOverview(ctx, 1)
	if err != nil {
		return nil, err
	}
	read, err := p.API.Overview.GetTimeline(ctx, &jobsv1.GetTimelineRequest{StartTime: timestamppb.New(t.Begin), EndTime: timestamppb.New(t.End)})
	if err != nil {
		return nil, err
	}
	chosen := map[string]bool{}
	for _, j := range readSelection(values).of(o.GetJobs()) {
		chosen[j.GetId()] = true
	}
	answer := &timelines{Now: now.Unix(), Jobs: []lineOfTime{}}
	missing := map[string]time.Time{} // until when, by job
	var until time.Time
	for _, j := range read.GetJobs() {
		if !chosen[j.GetId()] {
			continue
		}
		if kept := j.GetKeptSinceTime(); kept != nil && kept.AsTime().After(t.Begin) {
			missing[j.GetId()] = kept.AsTime()
			if kept.AsTime().After(until) {
				until = kept.AsTime()
			}
		}
		line := lineOfTime{ID: j.GetId(), Runs: []runOfTime{}, Next: []int64{}}
		for _, run := range j.GetRuns() {
			line.Runs = append(line.Runs, newRunOfTime(run.GetStatus(), run.GetStartTime(), run.GetEndTime()))
		}
		for _, at := range j.GetNextStartTimes() {
			line.Next = append(line.Next, at.GetSeconds())
		}
		answer.Jobs = append(answer.Jobs, line)
	}
	if len(missing) > 0 {
		p.addMissing(ctx, answer, missing, t.Begin, until)
	}
	return answer, nil
}

// addMissing adds runs that the server does not keep in memory: of jobs that run often.
func (p *Page) addMissing(ctx context.Context, answer *timelines, missing map[string]time.Time, since, until time.Time) {
	runs, more, err := p.runsBetween(ctx, since, until)
	switch {
	case err != nil:
		answer.Note = "Earlier runs of jobs that run often cannot be read: " + sentence(err) + "."
	case more:
		answer.Note = "Earlier runs of jobs that run often are left out."
	}
	lines := map[string]int{}
	for i, line := range answer.Jobs {
		lines[line.ID] = i
	}
	for _, run := range runs {
		if run.GetStartTime().AsTime().Before(missing[run.GetJobId()]) {
			line := &answer.Jobs[lines[run.GetJobId()]]
			line.Runs = append(line.Runs, newRunOfTime(run.GetStatus(), run.GetStartTime(), run.GetEndTime()))
		}
	}
}

func newRunOfTime(status jobsv1.RunStatus, start, end *timestamppb.Timestamp) runOfTime {
	return runOfTime{Letter: verbs.Letter(status), Start: start.GetSeconds(), End: end.GetSeconds()}
}
