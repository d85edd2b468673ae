package readmodel

import (
	"context"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// Outcomes are those of runs, in the order in which they are told.
func Outcomes(runs ...client.Run) string {
	var o outcomes
	for _, run := range runs {
		o.take(run, "")
	}
	return o.text(nil)
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
		r.state.jobs[name] = &jobState{id: name, own: &client.JobRow{ID: name, Status: client.JobCompleted}}
	}
}

// ShowWaiting shows jobs as they are where some services live.
func ShowWaiting(services []client.LiveService, jobs ...*jobsv1.JobOverview) []*jobsv1.JobOverview {
	s := newState()
	s.workersRead = true
	for _, service := range services {
		s.workers[service.ID()] = &workerState{service: &service}
	}
	o := &jobsv1.Overview{Jobs: jobs}
	s.showWaiting(o)
	return o.GetJobs()
}

// WhyNotReady says why an integration config is not ready.
var WhyNotReady = whyNotReady

// TakeTurns takes turns of a limit, one after the other.
func TakeTurns(ctx context.Context, perSecond float64, n int) error {
	turns := newTurns(perSecond, burst)
	for range n {
		if err := turns.take(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AlertsOf are the alerts of an overview for one who has begun just now, and those of a
// second overview a minute later.
func AlertsOf(first, second *jobsv1.Overview, told alerts.State, guess bool, now time.Time) (before, after []*jobsv1.Alert) {
	s := newState()
	s.told = told
	return s.alerts(first, Limits{}.withDefaults(), guess, now), s.alerts(second, Limits{}.withDefaults(), guess, now.Add(time.Minute))
}
