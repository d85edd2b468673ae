package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// jobPath is the address of a job.
func jobPath(id string) string { return "/jobs/" + url.PathEscape(id) }

// jobView is all about one job.
type jobView struct {
	*jobsv1.Job
	Mode    string
	Status  string
	Summary *jobsv1.JobOverview
	Runs    []*jobsv1.Run
	// NextPage is the address of older runs.
	NextPage string
	Linked   *linkedRun
	Next     *jobsv1.ListNextStartsResponse
	// Starts are those of Next that are not held back: those before HeldUntil are.
	Starts     []*timestamppb.Timestamp
	HeldUntil  *timestamppb.Timestamp
	Missed     []*jobsv1.MissedStart
	Counts     *jobsv1.StartCounts
	Definition string
	Changes    []*jobsv1.Change
	Buttons    []button
	// OtherValues is the address of the form that runs it with other values.
	OtherValues string
	// Notes say what could not be read.
	Notes []string
	// Backfill says that there is the form of one. From and To are what it begins with.
	Backfill bool
	From, To string
}

// jobRuns is how many runs the view of a job lists.
const jobRuns = 50

func (p *Page) job(r *http.Request) (*document, error) {
	id, values := r.PathValue("id"), r.URL.Query()
	answer, err := p.API.Jobs.GetJob(r.Context(), &jobsv1.GetJobRequest{Id: id})
	if err != nil {
		return nil, err
	}
	j := answer.GetJob()
	now := time.Now().UTC()
	data := &jobView{
		Job: j, Mode: verbs.OfJob(j).Job.Mode, Status: word(j.GetState().GetStatus()),
		From: now.Add(-p.MissedSince).Format(formTime), To: now.Format(formTime),
	}
	role := p.role(r)
	data.Buttons = buttons(role, verbs.JobVerbs(), verbs.OfJob(j), id)
	if mayCreate(role) {
		data.OtherValues = newPath(j.GetType(), "", id)
	}
	data.Backfill = offers(role, verbs.BackfillJob, verbs.OfJob(j))
	// What cannot be read is told, and leaves the rest to be seen.
	notes := make([]error, 6)
	var group errgroup.Group
	read := func(n int, f func() error) {
		group.Go(func() error {
			notes[n] = f()
			return nil
		})
	}
	var revision string
	read(0, func() error {
		o, err := p.readOverview(r.Context(), defaultRuns)
		if err != nil {
			return err
		}
		revision = p.revision(o)
		for _, one := range o.GetJobs() {
			if one.GetId() == id {
				data.Summary = one
			}
		}
		return nil
	})
	read(1, func() error { return p.jobRuns(r.Context(), data, values) })
	if name := values.Get("run"); name != "" {
		read(2, func() (err error) {
			data.Linked, err = p.window(r.Context(), name, defaultRuns, func(name string) string {
				return jobPath(id) + "?" + url.Values{"run": {name}}.Encode()
			})
			return err
		})
	}
	if data.Mode == "recurring" {
		read(3, func() (err error) {
			data.Next, err = p.API.Jobs.ListNextStarts(r.Context(), &jobsv1.ListNextStartsRequest{Id: id, Count: 10})
			return err
		})
		read(4, func() error { return p.missed(r.Context(), data, now) })
	}
	read(5, func() (err error) {
		data.Changes, err = p.changes(r.Context(), "job_id = "+strconv.Quote(id))
		return err
	})
	data.Definition, err = definition(j)
	if err != nil {
		data.Notes = append(data.Notes, "The definition is shown as JSON: "+err.Error()+".")
	}
	_ = group.Wait() // The errors are in notes.
	data.Starts, data.HeldUntil = startsFrom(data.Next.GetStartTimes(), data.Next.GetHeldUntilTime())
	for n, what := range []string{"The overview", "The runs", "The linked run", "The next starts", "Missed starts", "The history of changes"} {
		if notes[n] != nil {
			data.Notes = append(data.Notes, what+" cannot be read: "+sentence(notes[n])+".")
		}
	}
	return &document{Title: id, View: "job", Section: "/", Revision: revision, Follow: []string{"job:" + id}, Data: data}, nil
}

// startsFrom are the starts that are not held back until a time, and that time if others are.
func startsFrom(next []*timestamppb.Timestamp, until *timestamppb.Timestamp) (starts []*timestamppb.Timestamp, heldUntil *timestamppb.Timestamp) {
	for _, start := range next {
		if until != nil && start.AsTime().Before(until.AsTime()) {
			heldUntil = until
		} else {
			starts = append(starts, start)
		}
	}
	return starts, heldUntil
}

// jobRuns reads a page of the job's runs.
func (p *Page) jobRuns(ctx context.Context, data *jobView, values url.Values) error {
	answer, err := p.API.Runs.ListRuns(ctx, &jobsv1.ListRunsRequest{
		PageSize: jobRuns, PageToken: values.Get("page"), Filter: jobFilter(data.GetId()),
	})
	if err != nil {
		return err
	}
	data.Runs = answer.GetRuns()
	if token := answer.GetNextPageToken(); token != "" {
		data.NextPage = jobPath(data.GetId()) + "?" + url.Values{"page": {token}}.Encode() + "#runs"
	}
	return nil
}

// missed reads the starts that have no run.
func (p *Page) missed(ctx context.Context, data *jobView, now time.Time) error {
	answer, err := p.API.Jobs.ListMissedStarts(ctx, &jobsv1.ListMissedStartsRequest{
		StartTime: timestamppb.New(now.Add(-p.MissedSince)), Filter: "id = " + strconv.Quote(data.GetId()),
	})
	if err != nil {
		return err
	}
	data.Missed = answer.GetMissedStarts()
	if len(answer.GetCounts()) > 0 {
		data.Counts = answer.GetCounts()[0]
	}
	return nil
}

// definition is the table of a jobs file that declares a job. If there is none, the error
// says why, and it is the API's JSON.
func definition(m *jobsv1.Job) (string, error) {
	j, problems := api.Definition(m)
	text, err := jobsfile.TOML(j)
	if len(problems) > 0 {
		err = errors.New(problems[0].String())
	}
	if err != nil {
		declared := proto.CloneOf(m)
		declared.State = nil
		return indented(declared), err
	}
	return text, nil
}

// indented is a message as JSON.
func indented(m proto.Message) string {
	text, err := protojson.Marshal(m)
	if err != nil {
		return err.Error()
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return err.Error()
	}
	return out.String()
}
