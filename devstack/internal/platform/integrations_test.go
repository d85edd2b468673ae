package platform_test

import (
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	reference "github.com/dendrascience/dendra-jobs/devstack/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// hobo has an account of an organization and loggers of its stations.
func hobo(t *testing.T) (account, logger *platformv1.Resource) {
	t.Helper()
	spec, err := structpb.NewStruct(map[string]any{
		"token": "${account.token}", "base_url": "${account.url}", "organization": "${organization_slug}", "location": "common1",
		"operation_mode": "${operation_mode}", "overlap": "${overlap}",
		"loggers": []any{map[string]any{"serial": "${serial}", "station": "${station_slug}"}},
	})
	require.NoError(t, err)
	required := func(name string, kind platformv1.VariableType) *platformv1.Variable {
		return &platformv1.Variable{Name: name, Type: kind, Required: true}
	}
	reference := required("account", platformv1.VariableType_VARIABLE_TYPE_CONFIG)
	reference.ConfigTypeId = "hobo-account"
	return typeOf(&platformv1.IntegrationType{
			Id: "hobo-account", Name: "HOBOlink account", Scope: platformv1.IntegrationScope_INTEGRATION_SCOPE_ORGANIZATION,
			Variables: []*platformv1.Variable{
				required("token", platformv1.VariableType_VARIABLE_TYPE_SECRET), {Name: "url", Type: platformv1.VariableType_VARIABLE_TYPE_STRING},
			},
		}), typeOf(&platformv1.IntegrationType{
			Id: "hobo-logger", Name: "HOBO logger", Scope: platformv1.IntegrationScope_INTEGRATION_SCOPE_STATION,
			Variables: []*platformv1.Variable{
				reference, required("serial", platformv1.VariableType_VARIABLE_TYPE_STRING), {Name: "overlap", Type: platformv1.VariableType_VARIABLE_TYPE_STRING},
			},
			Jobs: []*platformv1.IntegrationJob{{JobType: "ExtractHoboTimeFrame", Spec: spec, Trigger: &platformv1.JobTrigger{
				Mode: &platformv1.JobTrigger_Recurring{Recurring: &platformv1.RecurringMode{RecurEvery: durationpb.New(time.Minute)}},
			}}},
		})
}

func typeOf(kind *platformv1.IntegrationType) *platformv1.Resource {
	kind.Direction = platformv1.IntegrationDirection_INTEGRATION_DIRECTION_INBOUND
	return &platformv1.Resource{Resource: &platformv1.Resource_IntegrationType{IntegrationType: kind}}
}

func text(value string) *platformv1.VariableValue {
	return &platformv1.VariableValue{Value: &platformv1.VariableValue_StringValue{StringValue: value}}
}

func config(name, kind string, station string, values map[string]*platformv1.VariableValue) *platformv1.Resource {
	return &platformv1.Resource{Resource: &platformv1.Resource_IntegrationConfig{IntegrationConfig: &platformv1.IntegrationConfig{
		Id: name, TypeId: kind, OrganizationId: id(1), StationId: station, Name: name, Enabled: true,
		OperationMode: platformv1.OperationMode_OPERATION_MODE_LIVE, Values: values,
	}}}
}

func account() *platformv1.Resource {
	return config("account", "hobo-account", "", map[string]*platformv1.VariableValue{
		"url":   text("http://127.0.0.1:8090"),
		"token": {Value: &platformv1.VariableValue_Secret{Secret: &platformv1.SecretReference{Name: "hobolink-demo"}}},
	})
}

func logger() *platformv1.Resource {
	return config("ridge", "hobo-logger", id(2), map[string]*platformv1.VariableValue{
		"account": {Value: &platformv1.VariableValue_ConfigId{ConfigId: "account"}}, "serial": text("21234001"),
	})
}

func startIntegration(t *testing.T) *api {
	t.Helper()
	a := start(t, reference.Options{})
	accounts, loggers := hobo(t)
	for _, r := range []*platformv1.Resource{organization(1), station(2, 1), accounts, loggers, account(), logger()} {
		a.put(t, r)
	}
	return a
}

func (a *api) registrations(t *testing.T) []*platformv1.IntegrationJobRegistration {
	t.Helper()
	response, err := a.Integrations.ListIntegrationJobRegistrations(t.Context(), &platformv1.ListIntegrationJobRegistrationsRequest{})
	require.NoError(t, err)
	return response.GetRegistrations()
}

func TestEnabledConfigsRegisterJobs(t *testing.T) {
	t.Parallel()
	a := startIntegration(t)
	registered := a.registrations(t)
	require.Len(t, registered, 1)
	r := registered[0]
	require.Equal(t, []string{"ridge", "ExtractHoboTimeFrame", "org-1", id(2)},
		[]string{r.GetConfigId(), r.GetJobType(), r.GetOrganizationSlug(), r.GetStationId()})
	require.EqualValues(t, 1, r.GetConfigVersion())
	require.Equal(t, time.Minute, r.GetTrigger().GetRecurring().GetRecurEvery().AsDuration())
	require.Equal(t, map[string]any{
		"token": "secret://hobolink-demo", "base_url": "http://127.0.0.1:8090", "organization": "org-1", "location": "common1",
		"operation_mode": "live", "loggers": []any{map[string]any{"serial": "21234001", "station": "station-2"}},
	}, r.GetSpec().AsMap(), "overlap has no value")

	found, err := a.Integrations.ListIntegrationConfigs(t.Context(), &platformv1.ListIntegrationConfigsRequest{ReferencesConfigId: "account"})
	require.NoError(t, err)
	require.Len(t, found.GetIntegrationConfigs(), 1)
	require.Equal(t, "ridge", found.GetIntegrationConfigs()[0].GetId())

	disabled := logger()
	disabled.GetIntegrationConfig().Enabled = false
	a.put(t, disabled)
	require.Empty(t, a.registrations(t))
	a.put(t, logger())
	require.EqualValues(t, 3, a.registrations(t)[0].GetConfigVersion())
	a.deleteOrganization(t, 1)
	require.Empty(t, a.registrations(t))
	_, err = a.undelete(t, 1)
	require.NoError(t, err)
	require.Len(t, a.registrations(t), 1)
}

func TestACheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	a := startIntegration(t)
	check := func(r *platformv1.Resource) *platformv1.CheckIntegrationConfigResponse {
		response, err := a.Integrations.CheckIntegrationConfig(t.Context(), &platformv1.CheckIntegrationConfigRequest{
			IntegrationConfig: r.GetIntegrationConfig(),
		})
		require.NoError(t, err)
		return response
	}
	whole := check(logger())
	require.Empty(t, whole.GetFindings())
	require.Len(t, whole.GetRegistrations(), 1)

	wrong := logger()
	c := wrong.GetIntegrationConfig()
	c.Id, c.StationId = "Not An Id", id(3)
	c.Values = map[string]*platformv1.VariableValue{
		"account": {Value: &platformv1.VariableValue_ConfigId{ConfigId: "ridge"}},
		"overlap": {Value: &platformv1.VariableValue_NumberValue{NumberValue: 1}},
		"other":   text("x"),
	}
	found := map[string]string{}
	for _, finding := range check(wrong).GetFindings() {
		found[finding.GetField()] = finding.GetMessage()
	}
	require.Contains(t, found["id"], "pattern")
	delete(found, "id")
	require.Equal(t, map[string]string{
		"station_id":     "the organization has no such station",
		"values.account": "the config is of the type hobo-logger, not hobo-account",
		"values.overlap": "the value is not of the type string",
		"values.serial":  "the variable is required",
		"values.other":   "the type hobo-logger has no such variable",
	}, found)
	require.NotEmpty(t, check(&platformv1.Resource{}).GetFindings())

	disabled := account()
	disabled.GetIntegrationConfig().Enabled = false
	a.put(t, disabled)
	require.Equal(t, "the config is not enabled", check(logger()).GetFindings()[0].GetMessage())
	require.Empty(t, a.registrations(t))
}

func TestAStatusIsAboutAVersion(t *testing.T) {
	t.Parallel()
	a := startIntegration(t)
	report := func(version int64, ready platformv1.ConditionStatus, message string) (*platformv1.IntegrationConfig, error) {
		response, err := a.Integrations.UpdateIntegrationConfigStatus(t.Context(), &platformv1.UpdateIntegrationConfigStatusRequest{
			ConfigId: "ridge", Status: &platformv1.IntegrationConfigStatus{ObservedVersion: version, Conditions: []*platformv1.Condition{
				{Type: "Ready", Status: ready, Message: message, ObservedVersion: version},
			}},
		})
		return response.GetIntegrationConfig(), err
	}
	since := func(c *platformv1.IntegrationConfig) time.Time {
		return c.GetStatus().GetConditions()[0].GetTransitionTime().AsTime()
	}
	s := a.stream(t, now())
	s.checkpoint(t)
	first, err := report(1, platformv1.ConditionStatus_CONDITION_STATUS_TRUE, "")
	require.NoError(t, err)
	require.EqualValues(t, 1, first.GetVersion(), "what is wanted did not change")
	c := s.change(t).GetChange()
	require.Equal(t, []string{"status"}, c.GetChangedKeys())
	require.Equal(t, reference.Actor, c.GetActor())

	a.advance(time.Minute)
	second, err := report(1, platformv1.ConditionStatus_CONDITION_STATUS_TRUE, "as before")
	require.NoError(t, err)
	require.Equal(t, since(first), since(second))
	third, err := report(1, platformv1.ConditionStatus_CONDITION_STATUS_FALSE, "")
	require.NoError(t, err)
	require.True(t, since(third).After(since(second)))

	changed := logger()
	changed.GetIntegrationConfig().Values["serial"] = text("21234002")
	stored := a.put(t, changed).GetIntegrationConfig()
	require.EqualValues(t, 2, stored.GetVersion())
	requireEqual(t, third.GetStatus(), stored.GetStatus(), "users do not write it")
	_, err = report(2, platformv1.ConditionStatus_CONDITION_STATUS_TRUE, "")
	require.NoError(t, err)
	_, err = report(1, platformv1.ConditionStatus_CONDITION_STATUS_TRUE, "")
	requireReason(t, err, connect.CodeAborted, platformv1.ErrorReason_ERROR_REASON_VERSION_BEHIND)
	_, err = report(3, platformv1.ConditionStatus_CONDITION_STATUS_TRUE, "")
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
}

func TestLogEntriesAreWrittenOnce(t *testing.T) {
	t.Parallel()
	a := startIntegration(t)
	entry := func(config, name string) *platformv1.LogEntry {
		return &platformv1.LogEntry{
			Id: name, ConfigId: config, Time: timestamppb.Now(), Level: platformv1.LogLevel_LOG_LEVEL_INFO, Message: "entry " + name,
		}
	}
	add := func(entries ...*platformv1.LogEntry) error {
		_, err := a.Integrations.CreateLogEntries(t.Context(), &platformv1.CreateLogEntriesRequest{LogEntries: entries})
		return err
	}
	for n := range 5 {
		require.NoError(t, add(entry("ridge", fmt.Sprint(n)), entry("account", fmt.Sprint("a", n))))
		require.NoError(t, add(entry("ridge", fmt.Sprint(n))), "a repeat")
	}
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(add(entry("ridge", "5"), entry("gone", "6"))), "all or none")

	var found []string
	request := &platformv1.ListLogEntriesRequest{ConfigId: "ridge", PageSize: 2}
	for {
		page, err := a.Integrations.ListLogEntries(t.Context(), request)
		require.NoError(t, err)
		for _, e := range page.GetLogEntries() {
			found = append(found, e.GetId())
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			break
		}
	}
	require.Equal(t, []string{"4", "3", "2", "1", "0"}, found)
	a.delete(t, "integration_config", "ridge")
	page, err := a.Integrations.ListLogEntries(t.Context(), &platformv1.ListLogEntriesRequest{ConfigId: "ridge"})
	require.NoError(t, err)
	require.Empty(t, page.GetLogEntries())
}

func TestConfigsAreSwitched(t *testing.T) {
	t.Parallel()
	a := startIntegration(t)
	enable := func(name, etag string) (*platformv1.IntegrationConfig, error) {
		response, err := a.Integrations.EnableIntegrationConfig(t.Context(), &platformv1.EnableIntegrationConfigRequest{Id: name, Etag: etag})
		return response.GetIntegrationConfig(), err
	}
	disabled, err := a.Integrations.DisableIntegrationConfig(t.Context(), &platformv1.DisableIntegrationConfigRequest{Id: "ridge"})
	require.NoError(t, err)
	c := disabled.GetIntegrationConfig()
	require.False(t, c.GetEnabled())
	require.EqualValues(t, 2, c.GetVersion())
	require.Empty(t, a.registrations(t))
	again, err := a.Integrations.DisableIntegrationConfig(t.Context(), &platformv1.DisableIntegrationConfigRequest{Id: "ridge"})
	require.NoError(t, err)
	requireEqual(t, c, again.GetIntegrationConfig(), "it is so already")
	_, err = enable("ridge", "0")
	require.Equal(t, connect.CodeAborted, connect.CodeOf(err))
	enabled, err := enable("ridge", c.GetEtag())
	require.NoError(t, err)
	require.EqualValues(t, 3, enabled.GetVersion())
	require.Len(t, a.registrations(t), 1)
	_, err = enable("gone", "")
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

// What goes through a connection that is tried out is not live.
func TestModeOfAReferenceIsThatOfAConfig(t *testing.T) {
	t.Parallel()
	a := startIntegration(t)
	require.Equal(t, "live", a.registrations(t)[0].GetSpec().GetFields()["operation_mode"].GetStringValue())
	tried := account()
	tried.GetIntegrationConfig().OperationMode = platformv1.OperationMode_OPERATION_MODE_TEST
	a.put(t, tried)
	require.Equal(t, "test", a.registrations(t)[0].GetSpec().GetFields()["operation_mode"].GetStringValue())

	list := func(of string) int {
		response, err := a.Integrations.ListIntegrationJobRegistrations(t.Context(), &platformv1.ListIntegrationJobRegistrationsRequest{ReferencesConfigId: of})
		require.NoError(t, err)
		return len(response.GetRegistrations())
	}
	require.Equal(t, 1, list("account"))
	require.Zero(t, list("ridge"))
}
