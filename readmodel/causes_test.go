package readmodel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// failing is a job that fails, and whose success is too old.
func failing(id, class, text string) *jobsv1.JobOverview {
	jobType, _, _ := strings.Cut(id, ".")
	return &jobsv1.JobOverview{
		Id: id, Type: jobType, Mode: "recurring", Status: jobsv1.JobStatus_JOB_STATUS_FAILING,
		Failing:   &jobsv1.Failing{Failures: 3, Since: ago(time.Hour), ErrorClass: class, ErrorMessage: text, Run: "job/" + id + "@1"},
		Freshness: durationpb.New(time.Minute), LastSuccessTime: ago(time.Hour),
	}
}

func load(location, address, class string) *jobsv1.Load {
	return &jobsv1.Load{
		Location: location, Flow: "live", Mirror: "default", JobId: "load." + location, Address: address, ErrorClass: class, ErrorMessage: "no",
		Status: jobsv1.LoadStatus_LOAD_STATUS_DOWN, DownTime: ago(time.Hour), OldestTime: ago(time.Hour), Waiting: 3,
	}
}

func TestCauses(t *testing.T) {
	t.Parallel()
	influx := &jobsv1.ServerHealth{Name: "influxdb/db:80", Address: "http://db:80"}
	nats := &jobsv1.ServerHealth{Name: "nats", Address: "nats://elsewhere"}
	refused := "influx http://db:80: dial tcp: connection refused"
	for name, c := range map[string]struct {
		in   *jobsv1.Overview
		want map[string]string // of the alerts that are explained, by what
	}{
		"InfluxDB is away": {
			in: &jobsv1.Overview{
				Servers: []*jobsv1.ServerHealth{influx},
				Loads:   []*jobsv1.Load{load("a", "http://db:80", errclass.InfluxUnreachable)},
				Jobs:    []*jobsv1.JobOverview{failing("load.a", errclass.InfluxUnreachable, "location a: "+refused), failing("tables.b", errclass.InfluxUnreachable, refused)},
			},
			want: map[string]string{
				"breaker-open/a/live/default": "server-down/influxdb/db:80", "load-behind/a/live/default": "server-down/influxdb/db:80",
				"job-failing/load.a": "server-down/influxdb/db:80", "job-late/load.a": "server-down/influxdb/db:80",
				"job-failing/tables.b": "server-down/influxdb/db:80", "job-late/tables.b": "server-down/influxdb/db:80",
			},
		},
		"another InfluxDB is away": {
			in: &jobsv1.Overview{
				Servers: []*jobsv1.ServerHealth{influx},
				Jobs: []*jobsv1.JobOverview{
					failing("tables.b", errclass.InfluxUnreachable, "influx http://db:8086: refused"), failing("tables.c", errclass.InfluxUnreachable, "influx http://other.db:80: refused"),
					failing("tables.d", errclass.Unclassified, refused),
				},
			},
			want: map[string]string{
				"job-late/tables.b": "job-failing/tables.b", "job-late/tables.c": "job-failing/tables.c", "job-late/tables.d": "job-failing/tables.d",
			},
		},
		"InfluxDB refuses a load": {
			in: &jobsv1.Overview{
				Servers: []*jobsv1.ServerHealth{{Name: "influxdb/db:80", Up: true}},
				Loads:   []*jobsv1.Load{load("a", "http://db:80", errclass.InfluxConfig)},
				Jobs:    []*jobsv1.JobOverview{failing("load.a", errclass.InfluxConfig, "401")},
			},
			want: map[string]string{
				"load-behind/a/live/default": "breaker-open/a/live/default", "job-failing/load.a": "breaker-open/a/live/default",
				"job-late/load.a": "breaker-open/a/live/default",
			},
		},
		"NATS is away": {
			in: &jobsv1.Overview{
				Servers: []*jobsv1.ServerHealth{nats},
				Jobs:    []*jobsv1.JobOverview{failing("x.a", errclass.PipelineUnreachable, "NATS is known here by another address")},
			},
			want: map[string]string{"job-failing/x.a": "server-down/nats", "job-late/x.a": "server-down/nats"},
		},
		"no worker": {
			in: &jobsv1.Overview{
				UnservedTypes: []*jobsv1.UnservedType{{JobType: "x", Jobs: 2}},
				UnservedTags:  []*jobsv1.UnservedTags{{JobType: "y", Tags: map[string]string{"site": "ridge"}, Jobs: 1}},
				Jobs: []*jobsv1.JobOverview{
					{Id: "x.a", Type: "x", Mode: "recurring", Outcomes: "CWM", Freshness: durationpb.New(time.Minute), LastSuccessTime: ago(time.Hour)},
					{Id: "y.a", Type: "y", Mode: "recurring", Outcomes: "CWM", Bind: map[string]string{"site": "ridge"}},
					{Id: "y.b", Type: "y", Mode: "recurring", Outcomes: "CWM", Bind: map[string]string{"site": "creek"}},
				},
				Stations: []*jobsv1.StationOverview{{Name: "x.a/one", JobId: "x.a", LastTime: ago(48 * time.Hour)}},
			},
			want: map[string]string{
				"starts-missed/x.a": "no-worker/x", "job-late/x.a": "no-worker/x", "station-silent/x.a/one": "no-worker/x",
				"starts-missed/y.a": "no-worker/y/site=ridge",
			},
		},
		"a job of an integration fails": {
			in: &jobsv1.Overview{
				Jobs: []*jobsv1.JobOverview{{
					Id: "x.a", Type: "x", Mode: "recurring", Provider: "integration.one",
					Failing: &jobsv1.Failing{ErrorClass: errclass.HobolinkToken, Run: "job/x.a@1"},
				}},
				Integrations: []*jobsv1.IntegrationOverview{
					{Name: "one", State: jobsv1.IntegrationState_INTEGRATION_STATE_DEGRADED}, {Name: "two", State: jobsv1.IntegrationState_INTEGRATION_STATE_DEGRADED},
				},
				Stations: []*jobsv1.StationOverview{{Name: "x.a/one", JobId: "x.a", LastTime: ago(48 * time.Hour)}},
			},
			want: map[string]string{"integration-failing/one": "job-failing/x.a", "station-silent/x.a/one": "job-failing/x.a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := readmodel.Alerts(c.in, nil, readmodel.Limits{}, now)
			got, names := map[string]string{}, map[string]bool{}
			for _, a := range list {
				names[a.GetName()] = true
				if a.GetCausedBy() != "" {
					got[a.GetName()] = a.GetCausedBy()
				}
				require.NotEmpty(t, a.GetCure(), a.GetName())
				if a.GetRule() == jobsv1.AlertRule_ALERT_RULE_JOB_FAILING {
					require.Equal(t, "job/"+a.GetObject()+"@1", a.GetRun())
					require.NotEmpty(t, a.GetFailure())
				}
			}
			require.Equal(t, c.want, got)
			for _, cause := range got {
				require.True(t, names[cause], cause)
				require.Empty(t, got[cause], "it is the first cause")
			}
			held := 0
			for _, g := range readmodel.GroupAlerts(list) {
				require.Empty(t, g.GetCausedBy())
				held += 1 + len(g.Alike) + len(g.HoldsUp)
			}
			require.Len(t, list, held, "each alert is in one group")
		})
	}
}

func TestCures(t *testing.T) {
	t.Parallel()
	list := readmodel.Alerts(&jobsv1.Overview{
		Servers: []*jobsv1.ServerHealth{{Name: "influxdb/db:80"}, {Name: "temporal"}},
		Jobs:    []*jobsv1.JobOverview{failing("x.a", errclass.HobolinkToken, "401"), failing("x.b", "OfAnother", "no")},
	}, nil, readmodel.Limits{}, now)
	cures := map[string]string{}
	for _, a := range list {
		cures[a.GetName()] = a.GetCure()
	}
	unreachable, _ := errclass.Find(errclass.InfluxUnreachable)
	token, _ := errclass.Find(errclass.HobolinkToken)
	require.Equal(t, unreachable.Cure, cures["server-down/influxdb/db:80"])
	require.Equal(t, "Start the server, or check its address and the network.", cures["server-down/temporal"])
	require.Equal(t, token.Cure, cures["job-failing/x.a"])
	require.Equal(t, "Read the error and the log of the failed run.", cures["job-failing/x.b"])
}

// TestOneCauseIsOneGroup has an InfluxDB away that 300 jobs need, and two jobs that fail alike
// for another reason.
func TestOneCauseIsOneGroup(t *testing.T) {
	t.Parallel()
	o := &jobsv1.Overview{Servers: []*jobsv1.ServerHealth{{Name: "influxdb/db:80", Address: "http://db:80"}}}
	for n := range 300 {
		location := fmt.Sprintf("l%03d", n)
		o.Loads = append(o.Loads, load(location, "http://db:80", errclass.InfluxUnreachable))
		o.Jobs = append(o.Jobs, failing("load."+location, errclass.InfluxUnreachable, "location "+location+": influx http://db:80: refused"))
	}
	o.Jobs = append(o.Jobs, failing("vendor.a", errclass.HobolinkToken, "401 for a"), failing("vendor.b", errclass.HobolinkToken, "401 for b"))
	groups := readmodel.GroupAlerts(readmodel.Alerts(o, nil, readmodel.Limits{}, now))
	require.Len(t, groups, 2)
	require.Equal(t, "server-down/influxdb/db:80", groups[0].GetName())
	require.Len(t, groups[0].HoldsUp, 1200, "a breaker, a backlog, a failing and a late job for each")
	require.Equal(t, "holds up 300 jobs, 300 loads", groups[0].Extent())
	require.Equal(t, "job-failing/vendor.a", groups[1].GetName())
	require.Len(t, groups[1].Alike, 1)
	require.Len(t, groups[1].HoldsUp, 2, "both are late")
	require.Equal(t, "2 jobs fail alike; 2 more alerts of it", groups[1].Extent())
}
