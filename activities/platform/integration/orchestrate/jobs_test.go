package orchestrate_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

const (
	extractLdmp = "ExtractCampbellScientificLdmp"
	prepareLdmp = "PrepareCampbellScientificLdmp"
)

func planner() *orchestrate.Planner { return orchestrate.NewPlanner(activities.Types()...) }

type spec = map[string]any

func registration(t *testing.T, config, jobType string, s spec) *orchestrate.Registration {
	t.Helper()
	filled, err := structpb.NewStruct(s)
	require.NoError(t, err)
	return &orchestrate.Registration{
		ConfigId: config, OrganizationSlug: "demo", JobType: jobType, Spec: filled,
		Trigger: &platformv1.JobTrigger{Mode: &platformv1.JobTrigger_Continuous{
			Continuous: &platformv1.ContinuousMode{Interval: durationpb.New(time.Second), RestartOnChange: true},
		}},
	}
}

// account is an LDMP config of an organization.
func account(t *testing.T) orchestrate.Config {
	return orchestrate.Config{ID: "ldmp", Registrations: []*orchestrate.Registration{
		registration(t, "ldmp", extractLdmp, spec{"server": "127.0.0.1:1024", "organization": "demo", "stations": []any{}}),
		registration(t, "ldmp", prepareLdmp, spec{"organization": "demo", "location": "common1"}),
		registration(t, "ldmp", "LiveLoadInfluxV1", spec{"location": "common1", "influx_url": "http://127.0.0.1:8086"}),
	}}
}

// station is a config of a station that refers to it.
func station(t *testing.T, id, offset, mode string) orchestrate.Config {
	c := orchestrate.Config{ID: id, Registrations: []*orchestrate.Registration{
		registration(t, id, extractLdmp, spec{"stations": []any{map[string]any{"station": id, "utc_offset": offset, "tables": []any{"TenMin"}}}}),
		registration(t, id, prepareLdmp, spec{"rules": []any{map[string]any{"station": id, "operation_mode": mode}}, "location": "other"}),
	}}
	for _, r := range c.Registrations {
		r.StationId = "station of " + id
	}
	return c
}

// input is what the jobs of a config follow from. Each station has the id of its config for
// a slug.
func input(own orchestrate.Config, referring ...orchestrate.Config) orchestrate.Input {
	in := orchestrate.Input{Config: own, TypeID: "type", Referring: referring, Stations: map[string][]*platformv1.Station{}}
	for _, c := range append(referring, own) {
		id := c.Registrations[len(c.Registrations)-1].GetStationId()
		if id != "" {
			in.Stations[id] = []*platformv1.Station{{Id: id, Slug: c.ID}}
		}
	}
	return in
}

func jobOf(t *testing.T, plan orchestrate.Plan, jobType string) job.Job {
	t.Helper()
	for _, j := range plan.Jobs {
		if j.Type == jobType {
			return j
		}
	}
	require.Fail(t, "no job of type "+jobType)
	return job.Job{}
}

func TestConfigsThatReferToAnotherAreOneJob(t *testing.T) {
	t.Parallel()
	plan := planner().Plan(input(account(t), station(t, "a", "-08:00", "live"), station(t, "b", "-07:00", "test")))
	require.Empty(t, plan.Problems)
	require.Empty(t, plan.LeftOut)
	require.Len(t, plan.Jobs, 3)
	j := jobOf(t, plan, extractLdmp)
	require.Empty(t, j.Validate())
	require.Equal(t, "extract_campbell_scientific_ldmp.ldmp", j.ID)
	require.Equal(t, job.WorkerExtract, j.Worker)
	require.Equal(t, "organization:demo", j.Options.Owner.String())
	require.Equal(t, map[string]string{"integration_config": "ldmp", "integration_type": "type"}, j.Options.Tags)
	require.JSONEq(t, `{"server": "127.0.0.1:1024", "organization": "demo", "stations": [
		{"station": "a", "utc_offset": "-08:00", "tables": ["TenMin"]}, {"station": "b", "utc_offset": "-07:00", "tables": ["TenMin"]}]}`, string(j.Spec))
	require.JSONEq(t, `{"organization": "demo", "location": "common1", "rules": [
		{"station": "a", "operation_mode": "live"}, {"station": "b", "operation_mode": "test"}]}`, string(jobOf(t, plan, prepareLdmp).Spec))
	require.Equal(t, job.WorkerLoad, jobOf(t, plan, "LiveLoadInfluxV1").Worker)

	in := input(station(t, "a", "-08:00", "live"))
	in.RefersTo = []orchestrate.Config{account(t)}
	part := planner().Plan(in)
	require.Empty(t, part.Jobs)
	require.Equal(t, []orchestrate.Joined{{extractLdmp, "ldmp"}, {prepareLdmp, "ldmp"}}, part.Joined)
	found := []job.Summary{{ID: "extract_campbell_scientific_ldmp.ldmp"}, {ID: "prepare_campbell_scientific_ldmp.ldmp"}}
	conditions := part.Conditions(nil, found)
	require.True(t, conditions[0].Holds)
	require.Equal(t, "PartOfOther", conditions[0].Reason)
	require.Equal(t, extractLdmp+" is part of config ldmp; "+prepareLdmp+" is part of config ldmp", conditions[0].Message)
	require.Equal(t, "JobMissing", part.Conditions(nil, found[:1])[0].Reason)
}

func TestAListThatIsEmptyIsWaitedFor(t *testing.T) {
	t.Parallel()
	plan := planner().Plan(input(account(t)))
	require.Len(t, plan.Jobs, 2)
	ready := plan.Conditions(nil, []job.Summary{{ID: plan.Jobs[0].ID}, {ID: plan.Jobs[1].ID}})[0]
	require.False(t, ready.Holds)
	require.Equal(t, "WaitingForStations", ready.Reason)
	require.Equal(t, extractLdmp+" waits for stations: no enabled config that refers to this one adds any", ready.Message)
	require.Empty(t, plan.Keep, "a job without stations goes")
}

// One config that is wrong does not stop the others.
func TestAConfigThatIsWrongIsLeftOut(t *testing.T) {
	t.Parallel()
	wrong := station(t, "b", "west", "live")
	twin := station(t, "c", "-08:00", "live")
	twin.Registrations[0] = station(t, "a", "-08:00", "live").Registrations[0]
	twin.Registrations[0].ConfigId = "c"
	plan := planner().Plan(input(account(t), station(t, "a", "-08:00", "live"), wrong, twin, station(t, "d", "-08:00", "live")))
	require.Empty(t, plan.Problems)
	require.Len(t, plan.LeftOut, 2)
	require.Equal(t, "b", plan.LeftOut[0].Config)
	require.Contains(t, plan.LeftOut[0].Message, "utc_offset")
	require.Contains(t, plan.LeftOut[1].String(), "config c is left out of "+extractLdmp+": spec: table TenMin of station a is listed twice")
	require.Contains(t, string(jobOf(t, plan, extractLdmp).Spec), `"station":"d"`)
	require.NotContains(t, string(jobOf(t, plan, extractLdmp).Spec), "west")
	degraded := plan.Conditions(nil, nil)[1]
	require.True(t, degraded.Holds)
	require.Equal(t, "ConfigLeftOut", degraded.Reason)

	in := input(wrong)
	in.RefersTo = []orchestrate.Config{account(t)}
	plan = planner().Plan(in)
	require.Equal(t, []orchestrate.Joined{{prepareLdmp, "ldmp"}}, plan.Joined)
	require.Equal(t, orchestrate.ReasonInvalid, plan.Problems[0].Reason)
	require.Contains(t, plan.Problems[0].Message, "utc_offset")
}

func TestReferencesThatCannotBeJoined(t *testing.T) {
	t.Parallel()
	other := account(t)
	other.ID = "other"
	in := input(station(t, "a", "-08:00", "live"))
	in.RefersTo = []orchestrate.Config{account(t), other}
	plan := planner().Plan(in)
	require.Len(t, plan.Problems, 2)
	require.Equal(t, extractLdmp+" could be part of config ldmp or of config other: refer to one of them", plan.Problems[0].Message)

	in = input(station(t, "a", "-08:00", "live"), station(t, "b", "-08:00", "live"))
	in.RefersTo = []orchestrate.Config{account(t)}
	require.Contains(t, planner().Plan(in).Problems[0].Message, "of config b cannot be part of this config, where it is part of config ldmp")
}

func TestARegistrationThatIsWrongKeepsWhatRuns(t *testing.T) {
	t.Parallel()
	own := account(t)
	own.Registrations[1].Spec.Fields["location"] = structpb.NewStringValue("NOT A LOCATION")
	own.Registrations[2].JobType = "ForecastWeather"
	own.Registrations[0].Trigger = &platformv1.JobTrigger{Mode: &platformv1.JobTrigger_OneShot{OneShot: &platformv1.OneShotMode{}}}
	plan := planner().Plan(input(own, station(t, "a", "-08:00", "live")))
	require.Empty(t, plan.Jobs)
	require.Len(t, plan.Problems, 3)
	require.Equal(t, extractLdmp+": it cannot be one-shot", plan.Problems[0].Message)
	require.Contains(t, plan.Problems[1].Message, "spec.location")
	require.Equal(t, "ForecastWeather: it is not a job type of this system: its integration type has to name the worker", plan.Problems[2].Message)
	jobs := jobtest.NewJobs()
	whole := planner().Plan(input(account(t), station(t, "a", "-08:00", "live")))
	_, err := whole.Apply(t.Context(), jobs, "ldmp")
	require.NoError(t, err)
	_, err = plan.Apply(t.Context(), jobs, "ldmp")
	require.NoError(t, err)
	require.Equal(t, []string{"extract_campbell_scientific_ldmp.ldmp", "prepare_campbell_scientific_ldmp.ldmp"}, jobs.IDs())

	own.Registrations[2].Worker = "weather"
	require.Equal(t, job.WorkerType("weather"), planner().Plan(input(own)).Jobs[0].Worker)
}

func TestStateOfTheJobs(t *testing.T) {
	t.Parallel()
	plan := planner().Plan(input(account(t), station(t, "a", "-08:00", "live")))
	var found []job.Summary
	for _, j := range plan.Jobs {
		found = append(found, job.Summary{ID: j.ID})
	}
	conditions := plan.Conditions(nil, found)
	require.True(t, conditions[0].Holds)
	require.Equal(t, "Running", conditions[0].Reason)
	require.False(t, conditions[1].Holds)
	found[0].Failing = &job.Failing{Class: "LdmpUnreachable", Error: "no route"}
	found[1].Paused = true
	conditions = plan.Conditions(errors.New("one\ntwo"), found)
	require.Equal(t, "NotApplied", conditions[0].Reason)
	require.Equal(t, "one; two; job "+found[1].ID+" is paused", conditions[0].Message)
	require.True(t, conditions[1].Holds)
	require.Equal(t, "job "+found[0].ID+" fails: LdmpUnreachable: no route", conditions[1].Message)
}
