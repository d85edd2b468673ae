package readmodel

import (
	"context"
	"math"
	"time"

	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// Outcomes are those of runs, in the order in which they are told.
func Outcomes(runs ...client.Run) string {
	var o outcomes
	for _, run := range runs {
		o.take(run, "")
	}
	text, _ := o.text(nil, 0)
	return text
}

// Durations are how long some runs took beside the median, in the order of their starts.
func Durations(runs ...client.Run) string {
	var o outcomes
	for _, run := range runs {
		o.take(run, "")
	}
	_, durations := o.text(nil, o.median())
	return durations
}

// LatestOf is the status of the latest of some runs that did something.
func LatestOf(runs ...client.Run) client.RunStatus {
	var o outcomes
	for _, run := range runs {
		o.take(run, "")
	}
	return o.latest().Status
}

// CountMissed counts the missed starts of a job that was made at a time and has had some runs, as
// of a time.
func CountMissed(definition job.Job, created time.Time, runs []client.Run, known time.Time) (int, error) {
	const hash = "one"
	live := &client.Live{Job: definition, DefinitionHash: hash, Schedule: &workflowservice.DescribeScheduleResponse{
		Schedule: &schedulepb.Schedule{}, Info: &schedulepb.ScheduleInfo{CreateTime: timestamppb.New(created)},
	}}
	facts, err := live.StartFacts()
	j := &jobState{schedule: &client.SeenSchedule{Facts: client.Facts{DefinitionHash: hash}}, definition: &definition, definedBy: hash}
	j.starts.define(&definition)
	j.starts.facts, j.starts.factsAt = facts, known
	for _, run := range runs {
		j.outcomes.take(run, hash)
	}
	j.starts.update(j, known)
	return len(j.starts.missed), err
}

// NewWith makes a reader with a client that there is already, whose calls are not bounded.
func NewWith(config Config, c *client.Client) *Reader {
	r := newReader(config)
	r.client = c
	return r
}

// OnlySource has a reader read one source alone, of which a test says what it does.
func (r *Reader) OnlySource(every time.Duration, read func(context.Context) error) {
	r.sources = []*source{{name: "test", every: every, timeout: time.Minute, read: read}}
}

// SetJobs sets the jobs that a reader knows.
func (r *Reader) SetJobs(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.jobs = map[string]*jobState{}
	for _, name := range names {
		r.state.jobs[name] = &jobState{id: name, own: &client.Facts{ID: name, Own: &client.OwnFacts{Run: client.Run{Status: client.RunCompleted}}}}
	}
}

// ShowWaiting shows a one-shot, or a recurring job, with runs, where some services live and
// a look has found something, unless it is nil.
func ShowWaiting(services []client.LiveService, definition job.Job, look *client.Look, runs ...client.Run) *jobsv1.JobOverview {
	s := newState()
	s.workersRead = true
	for _, service := range services {
		s.workers[service.ID()] = &workerState{service: &service}
	}
	j := s.job(definition.ID)
	j.definition = &definition
	facts := client.Facts{ID: definition.ID, Type: definition.Type, Mode: definition.Mode()}
	for _, run := range runs {
		j.outcomes.take(run, "")
		j.looked = looked{run: run.RunID, look: look}
	}
	if definition.Recurring != nil {
		facts.Schedule = &client.ScheduleFacts{}
		j.schedule = &client.SeenSchedule{Facts: facts}
	} else {
		facts.Own = &client.OwnFacts{Run: runs[len(runs)-1]}
		j.own = &facts
	}
	return s.overview(time.Now()).GetJobs()[0]
}

// IntegrationMessage is the overview of an integration config.
var IntegrationMessage = integrationMessage

// Call makes a call of a read, which does work in place of Temporal.
func (r *Reader) Call(read, call context.Context, work func(context.Context) error) error {
	_, reading := newReading(read, r.limiter)
	return r.intercept(context.WithValue(call, readingKey{}, reading), "", nil, nil, nil,
		func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			return work(ctx)
		})
}

// CountTurns gives the client of a reader, and a function that counts the turns that its calls
// have taken since.
func (r *Reader) CountTurns() (*client.Client, func() int) {
	const all = 10_000
	r.limiter = rate.NewLimiter(rate.Every(time.Hour), all)
	return r.client, func() int { return all - int(math.Round(r.limiter.Tokens())) }
}

// AlertsOf are the alerts of an overview for one who has begun just now, and those of a
// second overview a minute later.
func AlertsOf(first, second *jobsv1.Overview, told alerts.State, guess bool, now time.Time) (before, after []*jobsv1.Alert) {
	s := newState()
	s.told = told
	return s.alerts(first, Limits{}.withDefaults(), guess, now), s.alerts(second, Limits{}.withDefaults(), guess, now.Add(time.Minute))
}

// Alike is the text of a job's error without what differs from run to run.
var Alike = alike
