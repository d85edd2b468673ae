package integration_test

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// pipelineSite is a platform with the worker programs. Its configs write to a database of
// its own.
type pipelineSite struct {
	*site
	database string
}

func newPipelineSite(t *testing.T, database string) *pipelineSite {
	t.Helper()
	st := stacktest.StartNamespace(t)
	c := client.New(st.Dial(t), st.Namespace)
	s := &pipelineSite{
		site:     &site{T: t, stack: st, platform: reconciletest.New(t), client: c, jobs: schedules.NewJobs(c), ledger: ledger{workertest.NewBook(t)}},
		database: database,
	}
	st.Platform = stack.API{URL: s.platform.URL, Token: s.platform.Token}
	// The jobs of two sites have the same names, and so would have the same bookmarks.
	st.NATS = stacktest.StartOwn(t, "--only", "nats").NATS
	for _, name := range []string{"backend", "extract", "load"} {
		w := stacktest.StartProgram(t, st, stacktest.Program{Name: name})
		w.WaitOutput("msg=serving")
	}
	writer, err := influx.NewWriter(influx.Config{URL: st.Influx})
	require.NoError(t, err)
	require.NoError(t, writer.CreateDatabase(t.Context(), database))
	return s
}

func text(value string) *platformv1.VariableValue {
	return &platformv1.VariableValue{Value: &platformv1.VariableValue_StringValue{StringValue: value}}
}

func variable(name string, kind platformv1.VariableType) *platformv1.Variable {
	return &platformv1.Variable{Name: name, Type: kind, Required: true}
}

const (
	stringVariable = platformv1.VariableType_VARIABLE_TYPE_STRING
	configVariable = platformv1.VariableType_VARIABLE_TYPE_CONFIG
	stationScope   = platformv1.IntegrationScope_INTEGRATION_SCOPE_STATION
	secretVariable = platformv1.VariableType_VARIABLE_TYPE_SECRET
)

func (s *pipelineSite) job(jobType string, spec map[string]any) *platformv1.IntegrationJob {
	s.Helper()
	j := s.platform.Job(jobType, spec)
	j.Worker = ""
	return j
}

// load loads a location, whose only load job it is.
func (s *pipelineSite) load(location string) *platformv1.IntegrationJob {
	s.Helper()
	return s.job("LiveLoadInfluxV1", map[string]any{
		"location": location, "influx_url": s.stack.Influx, "batch_age": "PT0.1S",
	})
}

// putTypes makes the types of LDMP configs and of their stations.
func (s *pipelineSite) putTypes() {
	s.Helper()
	s.platform.PutType(&platformv1.IntegrationType{
		Id: "ldmp", Name: "LoggerNet server", Variables: []*platformv1.Variable{variable("server", stringVariable)},
		Jobs: []*platformv1.IntegrationJob{
			s.job("ExtractCampbellScientificLdmp", map[string]any{
				"server": "${server}", "organization": "${organization_slug}", "operation_mode": "${operation_mode}", "stations": []any{},
				"iteration_duration": "PT2S", // A job works again once an iteration has completed.
			}),
			s.job("PrepareCampbellScientificLdmp", map[string]any{
				"organization": "${organization_slug}", "location": s.database, "operation_mode": "${operation_mode}",
			}),
			s.load(s.database),
		},
	})
	server := variable("server", configVariable)
	server.ConfigTypeId = "ldmp"
	s.platform.PutType(&platformv1.IntegrationType{
		Id: "ldmp-station", Name: "LoggerNet station", Scope: stationScope,
		Variables: []*platformv1.Variable{
			server, variable("name", stringVariable), variable("utc_offset", stringVariable), variable("tables", platformv1.VariableType_VARIABLE_TYPE_STRINGS),
		},
		Jobs: []*platformv1.IntegrationJob{
			s.job("ExtractCampbellScientificLdmp", map[string]any{
				"stations": []any{map[string]any{"station": "${station_slug}", "name": "${name}", "utc_offset": "${utc_offset}", "tables": "${tables}"}},
			}),
			s.job("PrepareCampbellScientificLdmp", map[string]any{
				"rules": []any{map[string]any{"station": "${station_slug}", "operation_mode": "${operation_mode}"}},
			}),
		},
	})
}

// putStation makes a config of a station, whose id is the name of the station on the server with
// - for _. Its slug is another: ridge-0 for stn_0.
func (s *pipelineSite) putStation(name, offset string, mode platformv1.OperationMode) string {
	s.Helper()
	id, n := strings.ReplaceAll(name, "_", "-"), strings.TrimPrefix(name, "stn_")
	station := "5b0f155746a1b867a114e04" + n
	s.platform.PutStation(station, "ridge-"+n)
	s.platform.PutConfig(&platformv1.IntegrationConfig{
		Id: id, TypeId: "ldmp-station", StationId: station, Enabled: true, OperationMode: mode, Values: map[string]*platformv1.VariableValue{
			"server": {Value: &platformv1.VariableValue_ConfigId{ConfigId: "ldmp"}}, "name": text(name), "utc_offset": text(offset),
			"tables": {Value: &platformv1.VariableValue_StringsValue{StringsValue: &platformv1.Strings{Values: []string{"TenSec"}}}},
		},
	})
	return id
}

// orchestrate applies the orchestrators of configs, which look at everything often.
func (s *pipelineSite) orchestrate(configs ...string) {
	s.Helper()
	set := job.Set{Provider: job.ProviderIntegration}
	for _, id := range configs {
		j := jobtest.NewJob(integration.Orchestrate(nil), id, job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}},
			reconcile.OrchestratorSpec{ConfigID: id, Window: job.Duration(time.Second), CheckEvery: job.Duration(200 * time.Millisecond)})
		set.Jobs = append(set.Jobs, j)
	}
	_, err := s.jobs.Apply(s.Context(), set)
	require.NoError(s, err)
}

// points counts the points of a measurement.
func (s *pipelineSite) points(measurement string) int {
	s.Helper()
	rows, err := influx.Query(s.Context(), influx.Config{URL: s.stack.Influx}, s.database, fmt.Sprintf("SELECT count(*) FROM %q", measurement))
	require.NoError(s, err)
	if len(rows) == 0 {
		return 0
	}
	require.NotEmpty(s, rows[0].Values)
	return len(rows[0].Values)
}

func (s *pipelineSite) waitForPoints(measurement string) {
	s.Helper()
	stacktest.WaitFor(s, "points of "+measurement, func() (bool, error) { return s.points(measurement) > 0, nil })
}

func (s *pipelineSite) waitForReason(config, conditionType, reason string) *platformv1.Condition {
	s.Helper()
	stacktest.WaitFor(s, fmt.Sprintf("condition %s of config %s to be %s", conditionType, config, reason), func() (bool, error) {
		return s.platform.Condition(config, conditionType).GetReason() == reason, nil
	})
	return s.platform.Condition(config, conditionType)
}

// spec waits until the spec of a job has a text, or has it not.
func (s *pipelineSite) waitForSpec(jobID, part string, has bool) {
	s.Helper()
	stacktest.WaitFor(s, fmt.Sprintf("the spec of %s: %q %v", jobID, part, has), func() (bool, error) {
		live, err := s.client.Jobs.LiveWorkflow(s.Context(), jobID)
		return live != nil && strings.Contains(string(live.Job.Spec), part) == has, err
	})
}

// live are the ids of the jobs of a config.
func (s *pipelineSite) live(config string) []string {
	s.Helper()
	found, err := s.jobs.Find(s.Context(), job.Filter{Provider: job.IntegrationProvider(config)})
	require.NoError(s, err)
	ids := []string{}
	for _, f := range found {
		ids = append(ids, f.ID)
	}
	return ids
}

// loggerNet is a LoggerNet server that can be stopped and started.
type loggerNet struct {
	*ldmptest.Server
	*testing.T
	address string
}

func newLoggerNet(t *testing.T) *loggerNet {
	t.Helper()
	l := &loggerNet{T: t, address: "127.0.0.1:0"}
	l.start()
	t.Cleanup(l.Stop)
	return l
}

func (l *loggerNet) start() {
	l.Helper()
	l.Server = ldmptest.New(ldmptest.Options{Seed: 5, Stations: ldmptest.Stations(3,
		ldmptest.Table{Name: "TenSec", Interval: 10 * time.Second, Since: time.Now().Add(-10 * time.Minute).Truncate(time.Minute)})})
	listener, err := net.Listen("tcp4", l.address)
	require.NoError(l, err)
	l.address = listener.Addr().String()
	l.Server.Start(listener, nil)
}

const (
	extractLdmp = "extract_campbell_scientific_ldmp.ldmp"
	prepareLdmp = "prepare_campbell_scientific_ldmp.ldmp"
	loadLdmp    = "live_load_influx_v1.ldmp"

	testMode = platformv1.OperationMode_OPERATION_MODE_TEST
	liveMode = platformv1.OperationMode_OPERATION_MODE_LIVE
)

// All stations of a LoggerNet server are read over one connection: they come and go, and
// are tried out, each by its own config.
func TestStationsOfAServerAreOneJob(t *testing.T) {
	t.Parallel()
	s, server := newPipelineSite(t, "orchestrated"), newLoggerNet(t)
	s.putTypes()
	s.platform.PutConfig(&platformv1.IntegrationConfig{
		Id: "ldmp", TypeId: "ldmp", Enabled: true, Values: map[string]*platformv1.VariableValue{"server": text(server.address)},
	})
	s.orchestrate("ldmp")
	waits := s.waitForReason("ldmp", "Ready", "WaitingForStations")
	require.Equal(t, platformv1.ConditionStatus_CONDITION_STATUS_FALSE, waits.GetStatus())
	require.Equal(t, []string{loadLdmp, prepareLdmp}, s.live("ldmp"))

	first, second := s.putStation("stn_0", "-08:00", liveMode), s.putStation("stn_1", "-07:00", liveMode)
	s.orchestrate("ldmp", first, second)
	s.waitForReason("ldmp", "Ready", "Running")
	s.waitForReason(first, "Ready", "PartOfOther")
	s.waitForReason(second, "Ready", "PartOfOther")
	s.waitForPoints("station_ridge_0_source_tensec")
	s.waitForPoints("station_ridge_1_source_tensec")
	require.Empty(t, s.live(first))
	live, err := s.client.Jobs.LiveWorkflow(t.Context(), extractLdmp)
	require.NoError(t, err)
	require.Equal(t, "organization:demo", live.Job.Options.Owner.String())
	require.Contains(t, string(live.Job.Spec), `"name":"stn_0","station":"ridge-0"`)
	require.Contains(t, string(live.Job.Spec), `"name":"stn_1","station":"ridge-1"`)
	require.NotContains(t, string(live.Job.Spec), "stn_2")

	// A station more, one less, and one that is tried out.
	s.putStation("stn_2", "-06:00", testMode)
	s.waitForSpec(extractLdmp, "stn_2", true)
	s.waitForSpec(prepareLdmp, `{"operation_mode":"test","station":"ridge-2"}`, true)
	s.platform.Disable(second)
	s.waitForSpec(extractLdmp, "stn_1", false)
	s.waitForReason("ldmp", "Ready", "Running")
	stacktest.WaitFor(t, "the third station to be read", func() (bool, error) {
		account, err := server.Account("stn_2", "TenSec")
		return account.Acknowledged > 0, err
	})
	// Its first records may be prepared by the iteration that does not know its mode yet.
	s.putStation("stn_2", "-06:00", liveMode)
	s.waitForSpec(prepareLdmp, `"operation_mode":"test"`, false)

	// What someone deletes comes back.
	require.NoError(t, s.jobs.Stop(t.Context(), prepareLdmp, "by mistake"))
	stacktest.WaitFor(t, "the job that was stopped", func() (bool, error) { return slices.Contains(s.live("ldmp"), prepareLdmp), nil })

	// A job that fails is told of once, and when it works again.
	server.Stop()
	degraded := s.waitForReason("ldmp", "Degraded", "JobFailing")
	require.Equal(t, platformv1.ConditionStatus_CONDITION_STATUS_TRUE, degraded.GetStatus())
	require.Contains(t, degraded.GetMessage(), "job "+extractLdmp+" fails: Ldmp")
	s.waitForReason(first, "Degraded", "JobFailing")
	server.start()
	s.waitForReason("ldmp", "Degraded", "Working")
	s.waitForReason(first, "Degraded", "Working")
	for _, config := range []string{"ldmp", first} {
		// What is told of other jobs may stand between.
		log := slices.DeleteFunc(s.platform.Log(config), func(line string) bool { return !strings.HasPrefix(line, "Job "+extractLdmp+" ") })
		require.Equal(t, "Job "+extractLdmp+" works again.", log[0])
		require.Contains(t, log[1], "Job "+extractLdmp+" fails: Ldmp")
		require.Equal(t, 1, count(log, "Job "+extractLdmp+" fails"))
	}
	require.Positive(t, count(s.platform.Log("ldmp"), "Job "+prepareLdmp+" was created."))

	// When nothing changes, nothing is written. A slow machine may still write about what
	// came before.
	s.waitForReason("ldmp", "Ready", "Running")
	detail, err := s.client.Jobs.Get(t.Context(), reconcile.OrchestratorID("ldmp"))
	require.NoError(t, err)
	before, after := map[string]string(nil), s.platform.Etags()
	for looks := 0; looks < 5 && !maps.Equal(before, after); looks++ {
		before = after
		s.iterations(detail.Job, 2)
		after = s.platform.Etags()
	}
	require.Equal(t, before, after)
}

func count(lines []string, begin string) int {
	n := 0
	for _, line := range lines {
		if strings.HasPrefix(line, begin) {
			n++
		}
	}
	return n
}

// Configs become pipelines as they are enabled, and go in the order of the pipeline.
func TestConfigsBecomePipelines(t *testing.T) {
	t.Parallel()
	s, server := newPipelineSite(t, "reconciled"), newLoggerNet(t)
	s.putTypes()
	reconciling := jobtest.NewJob(integration.ReconcileJobs(nil), "main", job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, struct{}{})
	_, err := s.jobs.Apply(t.Context(), job.Set{Provider: job.ProviderTOML, Jobs: []job.Job{reconciling}})
	require.NoError(t, err)

	s.platform.PutType(&platformv1.IntegrationType{
		Id: "hobo", Name: "HOBOlink", Scope: stationScope, Variables: []*platformv1.Variable{variable("token", secretVariable), variable("serial", stringVariable)},
		Jobs: []*platformv1.IntegrationJob{{JobType: "ExtractHoboTimeFrame", Trigger: &platformv1.JobTrigger{
			Mode: &platformv1.JobTrigger_Recurring{Recurring: &platformv1.RecurringMode{RecurEvery: durationpb.New(2 * time.Second)}},
		}, Spec: s.job("", map[string]any{
			"token": "${token}", "organization": "${organization_slug}", "location": s.database + "_hobo", "operation_mode": "${operation_mode}",
			"database": s.database, "base_url": s.stack.HOBOlink.URL, "backfill": "PT6H", "overlap": "PT1H",
			"loggers": []any{map[string]any{"serial": "${serial}", "station": "${station_slug}", "measurement": "ridge"}},
		}).GetSpec()}, s.load(s.database + "_hobo")},
	})
	const ridge = "5b0f155746a1b867a114e050"
	s.platform.PutStation(ridge, "ridge")
	began := time.Now()
	s.platform.PutConfig(&platformv1.IntegrationConfig{Id: "ridge", TypeId: "hobo", StationId: ridge, Enabled: true, Values: map[string]*platformv1.VariableValue{
		"token": {Value: &platformv1.VariableValue_Secret{Secret: &platformv1.SecretReference{Name: "hobolink-demo"}}}, "serial": text("21234001"),
	}})
	s.waitForPoints("ridge")
	t.Logf("from an enabled config to its first points: %s", time.Since(began))
	s.waitForReason("ridge", "Ready", "Running")
	began = time.Now()
	s.platform.Disable("ridge")
	s.waitForReason("ridge", "Scheduled", "Disabled")
	t.Logf("from a disabled config to its jobs gone: %s", time.Since(began))
	require.Nil(t, s.platform.Condition("ridge", "Ready"), "it went with the orchestrator")
	stacktest.WaitFor(t, "no jobs in lists", func() (bool, error) { return len(s.live("ridge")) == 0, nil })

	s.platform.PutConfig(&platformv1.IntegrationConfig{
		Id: "ldmp", TypeId: "ldmp", Enabled: true, Values: map[string]*platformv1.VariableValue{"server": text(server.address)},
	})
	s.putStation("stn_0", "-08:00", liveMode)
	s.waitForPoints("station_ridge_0_source_tensec")
	began = time.Now()
	s.putStation("stn_1", "-07:00", liveMode)
	s.waitForSpec(extractLdmp, "stn_1", true)
	t.Logf("from a station to the changed job: %s", time.Since(began))
	s.waitForPoints("station_ridge_1_source_tensec")
	t.Logf("from a station to its first points: %s", time.Since(began))

	s.platform.Disable("ldmp")
	s.waitForReason("ldmp", "Scheduled", "Disabled")
	blocked := s.waitForReason("stn-0", "Scheduled", "NothingRegistered")
	require.Equal(t, "the platform registers no job for this config: values.server: the config is not enabled", blocked.GetMessage())
	var ends []time.Time
	for _, id := range []string{extractLdmp, prepareLdmp, loadLdmp} {
		live, err := s.client.Jobs.LiveWorkflow(t.Context(), id)
		require.NoError(t, err)
		require.False(t, live.Workflow.Open())
		ends = append(ends, live.Workflow.Close)
	}
	require.True(t, slices.IsSortedFunc(ends, time.Time.Compare), "each after the stage before: %v", ends)
}
