package readmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// now is any time.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(-d)) }

func TestAlerts(t *testing.T) {
	t.Parallel()
	limits := readmodel.Limits{QueueAge: time.Hour, LoadAge: 10 * time.Minute, StationAge: 6 * time.Hour, Stations: map[string]time.Duration{
		"slow.*": 48 * time.Hour, "slow.b/*": 72 * time.Hour, "slow.b/2": 0,
	}}
	ofJob := func(j *jobsv1.JobOverview) *jobsv1.Overview {
		j.Id = "a.b"
		return &jobsv1.Overview{Jobs: []*jobsv1.JobOverview{j}}
	}
	ofQueue := func(q *jobsv1.Queue) *jobsv1.Overview {
		q.Name = "q"
		return &jobsv1.Overview{Queues: []*jobsv1.Queue{q}}
	}
	ofLoad := func(l *jobsv1.Load) *jobsv1.Overview {
		l.Location, l.Flow, l.Mirror = "here", "live", "default"
		return &jobsv1.Overview{Loads: []*jobsv1.Load{l}}
	}
	for name, c := range map[string]struct {
		in      *jobsv1.Overview
		want    string // "" means none
		since   *timestamppb.Timestamp
		actions []jobsv1.AlertAction
	}{
		"nothing": {in: &jobsv1.Overview{}},
		"a server is down": {
			in:   &jobsv1.Overview{Servers: []*jobsv1.ServerHealth{{Name: "nats", SinceTime: ago(time.Minute)}, {Name: "temporal", Up: true}}},
			want: "server-down/nats", // The time is since when this process knows.
		},
		"an InfluxDB is down, since when a load knows": {
			in:   &jobsv1.Overview{Servers: []*jobsv1.ServerHealth{{Name: "influxdb/here:8086", Address: "http://here:8086", SinceTime: ago(time.Minute)}}},
			want: "server-down/influxdb/here:8086", since: ago(time.Minute),
		},
		"a type without a worker": {
			in:   &jobsv1.Overview{UnservedTypes: []*jobsv1.UnservedType{{JobType: "A", Jobs: 2}}},
			want: "no-worker/A",
		},
		"tags without a worker": {
			in:   &jobsv1.Overview{UnservedTags: []*jobsv1.UnservedTags{{JobType: "A", Tags: map[string]string{"zone": "x", "gpu": "y"}, Jobs: 1}}},
			want: "no-worker/A/gpu=y,zone=x",
		},
		"a recurring job fails": {
			in:   ofJob(&jobsv1.JobOverview{Mode: "recurring", Status: jobsv1.JobStatus_JOB_STATUS_FAILING, Failing: &jobsv1.Failing{Failures: 3, Since: ago(time.Hour)}}),
			want: "job-failing/a.b", since: ago(time.Hour), actions: []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_RUN_JOB},
		},
		"a continuous job fails": {
			in:   ofJob(&jobsv1.JobOverview{Mode: "continuous", Status: jobsv1.JobStatus_JOB_STATUS_FAILING, Failing: &jobsv1.Failing{}}),
			want: "job-failing/a.b", actions: []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_RESTART_JOB},
		},
		"a job fails and is paused": {
			in:   ofJob(&jobsv1.JobOverview{Mode: "continuous", Status: jobsv1.JobStatus_JOB_STATUS_PAUSED, Failing: &jobsv1.Failing{}}),
			want: "job-failing/a.b", actions: []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_RESUME_JOB},
		},
		"a success is too old": {
			in:   ofJob(&jobsv1.JobOverview{Mode: "recurring", Freshness: durationpb.New(time.Hour), LastSuccessTime: ago(90 * time.Minute)}),
			want: "job-late/a.b", since: ago(30 * time.Minute), actions: []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_RUN_JOB},
		},
		"a success is fresh": {in: ofJob(&jobsv1.JobOverview{Mode: "recurring", Freshness: durationpb.New(time.Hour), LastSuccessTime: ago(59 * time.Minute)})},
		"a success is too old of a paused job": {
			in: ofJob(&jobsv1.JobOverview{Mode: "recurring", Status: jobsv1.JobStatus_JOB_STATUS_PAUSED, Freshness: durationpb.New(time.Hour), LastSuccessTime: ago(2 * time.Hour)}),
		},
		"the last starts have no run": {
			in:   ofJob(&jobsv1.JobOverview{Mode: "recurring", Outcomes: "CCMM"}),
			want: "starts-missed/a.b", actions: []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_RUN_JOB, jobsv1.AlertAction_ALERT_ACTION_BACKFILL_JOB},
		},
		"it has run since": {in: ofJob(&jobsv1.JobOverview{Mode: "recurring", Outcomes: "CCMMR"})},
		"a queue is halted": {
			in:   ofQueue(&jobsv1.Queue{Status: jobsv1.QueueStatus_QUEUE_STATUS_HALTED, Waiting: 1, OldestTime: ago(2 * time.Hour)}),
			want: "queue-halted/q", actions: []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_RESUME_QUEUE, jobsv1.AlertAction_ALERT_ACTION_SKIP_FAILED_ITEM},
		},
		"a queue has ended": {
			in:   ofQueue(&jobsv1.Queue{Status: jobsv1.QueueStatus_QUEUE_STATUS_ENDED}),
			want: "queue-ended/q", actions: []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_RECOVER_QUEUE},
		},
		"a queue is behind": {
			in:   ofQueue(&jobsv1.Queue{Status: jobsv1.QueueStatus_QUEUE_STATUS_RUNNING, Waiting: 1, OldestTime: ago(61 * time.Minute)}),
			want: "queue-behind/q", since: ago(time.Minute),
		},
		"a queue waits for less than the limit": {
			in: ofQueue(&jobsv1.Queue{Status: jobsv1.QueueStatus_QUEUE_STATUS_RUNNING, Waiting: 1, OldestTime: ago(time.Hour)}),
		},
		"a paused queue waits": {
			in: ofQueue(&jobsv1.Queue{Status: jobsv1.QueueStatus_QUEUE_STATUS_PAUSED, Waiting: 1, OldestTime: ago(2 * time.Hour)}),
		},
		"a load is behind, and a message blocks it": {
			in:   ofLoad(&jobsv1.Load{Status: jobsv1.LoadStatus_LOAD_STATUS_FAILING, Waiting: 9, OldestTime: ago(11 * time.Minute), HeldSequence: 3}),
			want: "load-behind/here/live/default", since: ago(time.Minute), actions: []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_SKIP_HELD_MESSAGE},
		},
		"a load is left alone": {
			in:   ofLoad(&jobsv1.Load{Status: jobsv1.LoadStatus_LOAD_STATUS_DOWN, DownTime: ago(time.Second)}),
			want: "breaker-open/here/live/default", since: ago(time.Second),
		},
		"a load that failed is tried": {
			in:   ofLoad(&jobsv1.Load{Status: jobsv1.LoadStatus_LOAD_STATUS_TRYING, DownTime: ago(time.Second)}),
			want: "breaker-open/here/live/default", since: ago(time.Second),
		},
		"a load refuses most points": {
			in: ofLoad(&jobsv1.Load{
				Status: jobsv1.LoadStatus_LOAD_STATUS_REFUSING, RefusingTime: ago(time.Hour), RecentPoints: 20, RecentRefusedPoints: 12, RefusalClass: "RefusedPoint", RefusalMessage: "field type conflict",
			}),
			want: "points-refused/here/live/default", since: ago(time.Hour),
		},
		"a station is silent": {
			in:   &jobsv1.Overview{Stations: []*jobsv1.StationOverview{{Name: "a.b/1", LastTime: ago(7 * time.Hour)}, {Name: "a.b/2", LastTime: ago(6 * time.Hour)}}},
			want: "station-silent/a.b/1", since: ago(time.Hour),
		},
		"a station may be silent for longer": {
			in: &jobsv1.Overview{Stations: []*jobsv1.StationOverview{
				{Name: "slow.a/1", LastTime: ago(47 * time.Hour)}, {Name: "slow.a/2", LastTime: ago(49 * time.Hour)}, {Name: "slow.b/1", LastTime: ago(70 * time.Hour)},
				{Name: "slow.b/2", LastTime: ago(999 * time.Hour)},
			}},
			want: "station-silent/slow.a/2", since: ago(time.Hour),
		},
		"an integration is not ready": {
			in: &jobsv1.Overview{Integrations: []*jobsv1.IntegrationOverview{
				{Name: "i", State: jobsv1.IntegrationState_INTEGRATION_STATE_NOT_READY, SinceTime: ago(61 * time.Second)},
				{Name: "new", State: jobsv1.IntegrationState_INTEGRATION_STATE_NOT_READY, SinceTime: ago(59 * time.Second)},
				{Name: "j", State: jobsv1.IntegrationState_INTEGRATION_STATE_DISABLED},
				{Name: "k", State: jobsv1.IntegrationState_INTEGRATION_STATE_READY},
			}},
			want: "integration-failing/i", since: ago(61 * time.Second),
		},
		"an integration is degraded": {
			in: &jobsv1.Overview{Integrations: []*jobsv1.IntegrationOverview{
				{Name: "i", State: jobsv1.IntegrationState_INTEGRATION_STATE_DEGRADED, SinceTime: ago(time.Second)},
			}},
			want: "integration-failing/i", since: ago(time.Second),
		},
		"drift":    {in: &jobsv1.Overview{Drift: &jobsv1.DriftOverview{Jobs: 1, JobIds: []string{"a.b"}}}, want: "drift/jobs"},
		"no drift": {in: &jobsv1.Overview{Drift: &jobsv1.DriftOverview{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := readmodel.Alerts(c.in, nil, limits, now)
			if c.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Equal(t, c.want, got[0].GetName())
			require.Equal(t, c.want, readmodel.RuleWord(got[0].GetRule())+"/"+got[0].GetObject())
			require.Equal(t, c.since.String(), got[0].GetFireTime().String())
			require.Equal(t, c.actions, got[0].GetActions())
			require.NotEmpty(t, got[0].GetText())
			require.NotEmpty(t, got[0].GetCure())
			require.Empty(t, got[0].GetCausedBy())
		})
	}
}

func TestOwnersAndSeverities(t *testing.T) {
	t.Parallel()
	o := &jobsv1.Overview{
		Servers: []*jobsv1.ServerHealth{{Name: "nats"}},
		Jobs:    []*jobsv1.JobOverview{{Id: "a.a", Owner: "user:ann", Failing: &jobsv1.Failing{}}, {Id: "a.b", Failing: &jobsv1.Failing{}}},
		Queues: []*jobsv1.Queue{
			{Name: "q", Status: jobsv1.QueueStatus_QUEUE_STATUS_HALTED, Halt: &jobsv1.QueueHalt{JobId: "a.a"}},
			{Name: "r", Status: jobsv1.QueueStatus_QUEUE_STATUS_RUNNING, Waiting: 1, OldestTime: ago(2 * time.Hour), Running: &jobsv1.QueueItem{JobId: "a.a"}},
			{Name: "s", Status: jobsv1.QueueStatus_QUEUE_STATUS_ENDED},
		},
		Stations:     []*jobsv1.StationOverview{{Name: "a.a/1", JobId: "a.a", LastTime: ago(48 * time.Hour)}},
		Integrations: []*jobsv1.IntegrationOverview{{Name: "i", Organization: "demo", State: jobsv1.IntegrationState_INTEGRATION_STATE_DEGRADED}},
	}
	replicas := []alerts.Replica{{Name: "x", Settings: "1", Started: now, Renewed: now}, {Name: "y", Settings: "2", Started: now.Add(time.Second), Renewed: now}}
	limits := readmodel.Limits{Severities: map[jobsv1.AlertRule]jobsv1.AlertSeverity{jobsv1.AlertRule_ALERT_RULE_STATION_SILENT: jobsv1.AlertSeverity_ALERT_SEVERITY_CRITICAL}}
	var got []string
	for _, a := range readmodel.Alerts(o, replicas, limits, now) {
		got = append(got, readmodel.EnumWord(a.GetSeverity().Descriptor(), a.GetSeverity().Number())+" "+a.GetName()+" "+a.GetOwner())
	}
	require.Equal(t, []string{
		"critical server-down/nats ", "critical queue-halted/q user:ann", "critical queue-ended/s ", "critical station-silent/a.a/1 user:ann",
		"warning job-failing/a.a user:ann", "warning job-failing/a.b ", "warning queue-behind/r user:ann", "warning integration-failing/i organization:demo",
		"warning settings-differ/y ",
	}, got)
}

func TestTheMostUrgentAlertsComeFirst(t *testing.T) {
	t.Parallel()
	got := readmodel.Alerts(&jobsv1.Overview{
		Drift:   &jobsv1.DriftOverview{Jobs: 1},
		Jobs:    []*jobsv1.JobOverview{{Id: "a.a", Failing: &jobsv1.Failing{}}},
		Servers: []*jobsv1.ServerHealth{{Name: "temporal"}, {Name: "nats"}},
	}, nil, readmodel.Limits{}, now)
	var names []string
	for _, a := range got {
		names = append(names, a.GetName())
	}
	require.Equal(t, []string{"server-down/nats", "server-down/temporal", "job-failing/a.a", "drift/jobs"}, names)
}
