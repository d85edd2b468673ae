package page_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectinprocess"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/server/page"
)

// toldOverview serves an overview that a test sets: of a thousand jobs, or of states that no
// test can bring about in time. Everything else of the page's tests is a real stack.
type toldOverview struct {
	mu      sync.Mutex
	is      *jobsv1.Overview
	changes []*jobsv1.JobOverview // of the last revision
	// timeline is when its jobs ran.
	timeline []*jobsv1.JobTimeline
	changed  chan struct{}
}

func (o *toldOverview) state() (*jobsv1.Overview, []*jobsv1.JobOverview, chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return proto.CloneOf(o.is), o.changes, o.changed
}

// change changes one job.
func (o *toldOverview) change(at int, f func(*jobsv1.JobOverview)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(o.is.Jobs[at])
	o.is.Revision++
	o.changes = []*jobsv1.JobOverview{proto.CloneOf(o.is.Jobs[at])}
	close(o.changed)
	o.changed = make(chan struct{})
}

// GetOverview implements the service.
func (o *toldOverview) GetOverview(_ context.Context, r *jobsv1.GetOverviewRequest) (*jobsv1.GetOverviewResponse, error) {
	is, _, _ := o.state()
	for _, j := range is.GetJobs() {
		if n := len(j.GetOutcomes()) - int(r.GetRuns()); n > 0 {
			j.Outcomes, j.Durations = j.GetOutcomes()[n:], j.GetDurations()[n:]
		}
	}
	return &jobsv1.GetOverviewResponse{Overview: is}, nil
}

// WatchOverview implements the service.
func (o *toldOverview) WatchOverview(ctx context.Context, r *jobsv1.WatchOverviewRequest, stream jobsv1connect.OverviewServiceWatchOverviewServerStream) error {
	sent := r.GetRevision()
	for {
		is, changes, changed := o.state()
		if is.GetRevision() != sent {
			delta := is.GetRevision() == sent+1
			if delta {
				is.Jobs = changes
			}
			if err := stream.Send(&jobsv1.WatchOverviewResponse{Overview: is, Delta: delta}); err != nil {
				return err
			}
			sent = is.GetRevision()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// noRuns tells of no run.
type noRuns struct {
	jobsv1connect.UnimplementedRunServiceHandler
}

// ListFailures implements the service.
func (noRuns) ListFailures(context.Context, *jobsv1.ListFailuresRequest) (*jobsv1.ListFailuresResponse, error) {
	return &jobsv1.ListFailuresResponse{StartTime: timestamppb.New(time.Now().Add(-24 * time.Hour))}, nil
}

// GetTimeline implements the service: of what a test sets.
func (o *toldOverview) GetTimeline(context.Context, *jobsv1.GetTimelineRequest) (*jobsv1.GetTimelineResponse, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &jobsv1.GetTimelineResponse{Jobs: o.timeline}, nil
}

// told is a page with an overview that the test sets.
type told struct {
	*toldOverview
	url  string
	page *page.Page

	requestsMu sync.Mutex
	requests   []string
	// slow holds answers back for as long as it is not closed. Nil means not.
	slow chan struct{}
}

// seen are the requests since the last call.
func (d *told) seen() []string {
	d.requestsMu.Lock()
	defer d.requestsMu.Unlock()
	all := d.requests
	d.requests = nil
	return all
}

// holdBack has documents wait until the function that it gives is called.
func (d *told) holdBack() (release func()) {
	d.requestsMu.Lock()
	defer d.requestsMu.Unlock()
	slow := make(chan struct{})
	d.slow = slow
	return func() { close(slow) }
}

func (d *told) ServeHTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.requestsMu.Lock()
		d.requests = append(d.requests, r.Method+" "+r.URL.RequestURI())
		slow := d.slow
		d.requestsMu.Unlock()
		if slow != nil && r.URL.Path == "/" {
			select {
			case <-slow:
			case <-r.Context().Done():
			}
		}
		next.ServeHTTP(w, r)
	})
}

// tell serves a page with jobs.
func tell(t *testing.T, jobs int) *told {
	t.Helper()
	d := &told{toldOverview: &toldOverview{changed: make(chan struct{}), is: &jobsv1.Overview{
		Revision: 1, ReadTime: timestamppb.Now(), Jobs: manyJobs(jobs),
		Servers: []*jobsv1.ServerHealth{{Name: "temporal", Up: true}, {Name: "nats", ErrorMessage: "no route"}},
		Alerts: []*jobsv1.Alert{{
			Name: "job-failing/extract_a.0001", Rule: jobsv1.AlertRule_ALERT_RULE_JOB_FAILING, Object: "extract_hobo_time_frame.station-0001",
			Text: "Its latest 3 runs failed: the server answers with 503.", FireTime: timestamppb.New(time.Now().Add(-time.Hour)),
			Actions:  []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_RUN_JOB},
			Severity: jobsv1.AlertSeverity_ALERT_SEVERITY_WARNING, Owner: "organization:demo",
		}},
		Queues: []*jobsv1.Queue{{Name: "late", Status: jobsv1.QueueStatus_QUEUE_STATUS_RUNNING, Waiting: 3, RanLastHour: 60}},
	}}}
	server := connect.NewServer()
	jobsv1connect.RegisterOverviewServiceHandler(server, d.toldOverview)
	jobsv1connect.RegisterRunServiceHandler(server, noRuns{})
	to := connect.NewClient(connectinprocess.New(server))
	clients := &api.Clients{Overview: jobsv1connect.NewOverviewServiceClient(to), Runs: jobsv1connect.NewRunServiceClient(to)}
	d.page = page.New(page.Config{API: clients})
	d.url = stacktest.Serve(t, d.ServeHTTP(d.page))
	return d
}

// manyJobs are jobs with outcomes as they are: most runs complete.
func manyJobs(n int) []*jobsv1.JobOverview {
	now := time.Now()
	jobs := make([]*jobsv1.JobOverview, n)
	statuses := []jobsv1.JobStatus{
		jobsv1.JobStatus_JOB_STATUS_SCHEDULED, jobsv1.JobStatus_JOB_STATUS_FAILING, jobsv1.JobStatus_JOB_STATUS_RUNNING,
		jobsv1.JobStatus_JOB_STATUS_PAUSED, jobsv1.JobStatus_JOB_STATUS_SCHEDULED,
	}
	random := uint32(1)
	for i := range jobs {
		outcomes, durations := []byte(strings.Repeat("C", 100)), make([]byte, 100)
		for at := range outcomes {
			durations[at] = "123445555556667789"[random>>8%18]
			random = random*1664525 + 1013904223
			if r := random >> 24; r < 30 {
				outcomes[at] = "FFFTXMHPKC"[r%10]
			}
		}
		status := statuses[i%len(statuses)]
		if status == jobsv1.JobStatus_JOB_STATUS_RUNNING {
			outcomes[99] = 'R'
		}
		jobs[i] = &jobsv1.JobOverview{
			Id: fmt.Sprintf("extract_hobo_time_frame.station-%04d", i), Type: "ExtractHoboTimeFrame", Mode: "recurring", Status: status,
			Provider: "toml", Owner: fmt.Sprintf("organization:org-%d", i%7), Outcomes: string(outcomes),
			Durations: string(durations), Schedule: "every 15 min",
			NextStartTime:  timestamppb.New(now.Add(time.Duration(random>>20) * time.Second)),
			MedianDuration: durationpb.New(time.Duration(random>>18) * time.Millisecond),
		}
	}
	return jobs
}
