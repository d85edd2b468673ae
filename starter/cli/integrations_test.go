package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

const stationID = "5b0f155746a1b867a114e031"

func TestIntegrations(t *testing.T) {
	t.Parallel()
	p, st := reconciletest.New(t), stacktest.StartNamespace(t)
	c := console{
		address: st.Temporal, namespace: st.Namespace,
		env: map[string]string{platform.EnvURL: p.URL, platform.EnvToken: p.Token},
	}
	r := c.run(t.Context(), "integrations", "list")
	require.Zero(t, r.code)
	require.Equal(t, "No integration configs found.\n", r.stderr)
	for _, verb := range []string{"describe", "check", "enable", "disable"} {
		r = c.run(t.Context(), "integrations", verb, "gone")
		require.Equal(t, 1, r.code, verb)
		require.Equal(t, "starter: there is no integration config gone; starter integrations list lists those there are\n", r.stderr, verb)
	}

	p.PutStation(stationID, "ridge")
	account := p.Job("ExtractTest", map[string]any{"server": "${config_id}", "stations": []any{}})
	p.PutType(&platformv1.IntegrationType{Id: "account", Name: "Account", Jobs: []*platformv1.IntegrationJob{account}})
	part := p.Job("ExtractTest", map[string]any{"stations": []any{"${station_slug}"}})
	p.PutType(&platformv1.IntegrationType{
		Id: "station", Name: "Station", Scope: platformv1.IntegrationScope_INTEGRATION_SCOPE_STATION, Jobs: []*platformv1.IntegrationJob{part},
		Variables: []*platformv1.Variable{{Name: "to", Type: platformv1.VariableType_VARIABLE_TYPE_CONFIG, Required: true}},
	})
	p.PutConfig(&platformv1.IntegrationConfig{Id: "north", TypeId: "account"})
	p.PutConfig(&platformv1.IntegrationConfig{
		Id: "north-ridge", TypeId: "station", StationId: stationID, OperationMode: platformv1.OperationMode_OPERATION_MODE_TEST,
		Values: map[string]*platformv1.VariableValue{"to": {Value: &platformv1.VariableValue_ConfigId{ConfigId: "north"}}},
	})

	// What is wrong with a config keeps it from being enabled.
	const refused = "starter: config north-ridge: values.to: the config is not enabled\n"
	for _, verb := range []string{"check", "enable"} {
		r = c.run(t.Context(), "integrations", verb, "north-ridge")
		require.Equal(t, 1, r.code)
		require.Equal(t, refused, r.stderr)
	}
	require.False(t, p.Get("north-ridge").GetEnabled())
	require.Equal(t, "! ExtractTest waits for stations: no enabled config that refers to this one adds any\n"+
		"Nothing is wrong with config north.\n", c.ok(t, "integrations", "check", "north"))
	require.Equal(t, "Config north is enabled.\n", c.ok(t, "integrations", "enable", "north"))
	require.Equal(t, "= part of extract_test.north\nNothing is wrong with config north-ridge.\n", c.ok(t, "integrations", "check", "north-ridge"))
	require.Equal(t, "Config north-ridge is enabled.\n", c.ok(t, "integrations", "enable", "north-ridge"))
	require.Equal(t, "+ extract_test.north  continuous\nNothing is wrong with config north.\n", c.ok(t, "integrations", "check", "north"))

	require.NoError(t, p.Client.WriteConditions(t.Context(), "north", platform.ConditionChange{Observed: 2, Set: []platform.Condition{
		{Type: "Ready", Holds: true, Reason: "Running"}, {Type: "Degraded", Reason: "Working"},
	}}))
	list := c.ok(t, "integrations", "list")
	require.Equal(t, `CONFIG       TYPE     BELONGS TO  MODE  STATE
north        account  demo        live  ready
north-ridge  station  demo/ridge  test  not ready
`, list)
	require.Equal(t, list, c.ok(t, "integrations", "list", "--organization", "demo"))
	require.Empty(t, c.ok(t, "integrations", "list", "--organization", "demo2"))
	shown := decoded[struct{ Integrations []map[string]any }](t, c, "integrations", "list").Integrations
	require.Equal(t, "ridge", shown[1]["station"])
	require.Equal(t, true, shown[1]["enabled"])

	_, err := p.Client.Integrations.CreateLogEntries(t.Context(), &platformv1.CreateLogEntriesRequest{LogEntries: []*platformv1.LogEntry{{
		Id: "1", ConfigId: "north", Time: timestamppb.Now(), Level: platformv1.LogLevel_LOG_LEVEL_WARN, Message: "Look here.",
	}}})
	require.NoError(t, err)
	temporal := client.New(st.Dial(t), st.Namespace)
	pausedLoop(t, temporal, "extract_test.other", "ExtractTest", struct{}{})
	orchestrator := job.Job{
		ID: reconcile.OrchestratorID("north"), Type: reconcile.OrchestratorType, Worker: job.WorkerBackend, Provider: job.ProviderIntegration,
		Spec: []byte(`{"config_id": "north"}`), Trigger: job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(3600e9)}},
		Options: job.DefaultOptions(job.ModeRecurring),
	}
	orchestrator.Options.Owner.Organization = "demo"
	_, err = schedules.NewJobs(temporal).Apply(t.Context(), job.Set{Provider: job.ProviderIntegration, Jobs: []job.Job{orchestrator}})
	require.NoError(t, err)
	stacktest.WaitFor(t, "the job in lists", func() (bool, error) {
		return strings.Contains(c.ok(t, "integrations", "describe", "north"), "\nJobs\n"), nil
	})
	text := c.ok(t, "integrations", "describe", "north")
	for _, want := range []string{
		"Version      2\n", "Ready        yes, Running\n", "Degraded     no, Working\n", "Referred by  north-ridge\n",
		"orchestrate_integration.north  recurring  scheduled\n", "  warn   Look here.\n",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "extract_test.other")

	require.Equal(t, "Config north is disabled.\n", c.ok(t, "integrations", "disable", "north"))
	require.Contains(t, c.ok(t, "integrations", "list"), "north        account  demo        live  disabled\n")
}
