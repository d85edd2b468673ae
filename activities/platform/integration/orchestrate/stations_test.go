package orchestrate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Points go by the slug of the config's station. A name that a spec has for it otherwise is
// refused, and so is one of a config without a station.
func TestPointsGoByTheSlugOfTheStation(t *testing.T) {
	t.Parallel()
	vendors := station(t, "a", "-08:00", "live")
	in := input(vendors)
	in.RefersTo = []orchestrate.Config{account(t)}
	in.Stations["station of a"][0].Slug = "ridge"
	plan := planner().Plan(in)
	require.Empty(t, plan.Joined)
	require.Equal(t, []orchestrate.Problem{
		{Reason: orchestrate.ReasonInvalid, Message: extractLdmp + ": stations name station a, and the slug of the config's station is ridge: points go by the slug, ${station_slug}"},
		{Reason: orchestrate.ReasonInvalid, Message: prepareLdmp + ": rules name station a, and the slug of the config's station is ridge: points go by the slug, ${station_slug}"},
	}, plan.Problems)

	in = input(account(t), vendors, station(t, "b", "-08:00", "live"))
	in.Stations["station of a"][0].Slug = "ridge"
	plan = planner().Plan(in)
	require.Len(t, plan.LeftOut, 2)
	require.NotContains(t, string(jobOf(t, plan, extractLdmp).Spec), `"station":"a"`)
	require.Contains(t, string(jobOf(t, plan, extractLdmp).Spec), `"station":"b"`)

	own := account(t)
	own.Registrations[0].Spec = station(t, "a", "-08:00", "live").Registrations[0].GetSpec()
	own.Registrations[0].Spec.Fields["server"] = structpb.NewStringValue("127.0.0.1:1024")
	own.Registrations[0].Spec.Fields["organization"] = structpb.NewStringValue("demo")
	plan = planner().Plan(input(own))
	require.Equal(t, extractLdmp+": stations name station a, and the config belongs to no station of the platform: its type needs the scope of a station", plan.Problems[0].Message)
	require.Equal(t, []string{"extract_campbell_scientific_ldmp.ldmp"}, plan.Keep)
}

// Of two stations whose measurements would have the same names the one that was there first
// has them: the other's config says so, and its points go nowhere.
func TestStationsWhoseMeasurementsCollide(t *testing.T) {
	t.Parallel()
	at := func(hour int) *platformv1.Modification {
		return &platformv1.Modification{CreateTime: timestamppb.New(time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC))}
	}
	for name, c := range map[string]struct {
		own, other *platformv1.Station
		set        func(own orchestrate.Config)
		taken      bool
	}{
		"the later one":                  {own: &platformv1.Station{Modification: at(2)}, other: &platformv1.Station{Modification: at(1)}, taken: true},
		"the earlier one":                {own: &platformv1.Station{Modification: at(1)}, other: &platformv1.Station{Modification: at(2)}},
		"at once":                        {own: &platformv1.Station{}, other: &platformv1.Station{}, taken: true},
		"in the location's database":     {own: &platformv1.Station{Modification: at(2)}, other: &platformv1.Station{Modification: at(1), Database: "common1"}, taken: true},
		"in another database":            {own: &platformv1.Station{Modification: at(2)}, other: &platformv1.Station{Modification: at(1), Database: "x"}},
		"whose record is another's":      {own: &platformv1.Station{Modification: at(1), Database: "x"}, other: &platformv1.Station{Modification: at(2)}, taken: true},
		"that names measurements itself": {own: &platformv1.Station{Modification: at(2)}, other: &platformv1.Station{Modification: at(1)}, set: measured("special_{table}")},
		"that names the organization":    {own: &platformv1.Station{Modification: at(2), OrganizationId: "b"}, other: &platformv1.Station{Modification: at(1), OrganizationId: "a"}, set: measured("{organization}_{station}")},
		"that names it in vain":          {own: &platformv1.Station{Modification: at(2), OrganizationId: "a"}, other: &platformv1.Station{Modification: at(1), OrganizationId: "a"}, set: measured("{organization}_{station}"), taken: true},
	} {
		config := station(t, "peak_1", "-08:00", "live")
		config.Registrations[1].Spec.Fields["location"] = structpb.NewStringValue("common1")
		if c.set != nil {
			c.set(config)
		}
		c.own.Id, c.own.Slug, c.other.Id, c.other.Slug = "station of peak_1", "peak_1", "0", "peak-1"
		stations := map[string][]*platformv1.Station{c.own.GetId(): {c.other, c.own}}

		in := input(config)
		in.RefersTo, in.Stations = []orchestrate.Config{account(t)}, stations
		own := planner().Plan(in)
		in = input(account(t), config)
		in.Stations = stations
		owner := planner().Plan(in)
		if !c.taken {
			require.Empty(t, own.Problems, name)
			require.Len(t, own.Joined, 2, name)
			require.Empty(t, owner.LeftOut, name)
			continue
		}
		message := "measurements of station peak_1 (station of peak_1) would have the names of those of station peak-1 (0 of organization " +
			c.other.GetOrganizationId() + ") in the same database: give it another slug"
		require.Equal(t, []orchestrate.Problem{{Reason: orchestrate.ReasonSlugTaken, Message: message}}, own.Problems, name)
		require.Empty(t, own.Joined, name)
		ready := own.Conditions(nil, nil)[0]
		require.False(t, ready.Holds, name)
		require.Equal(t, "SlugTaken", ready.Reason, name)
		require.Equal(t, []orchestrate.LeftOut{
			{Config: "peak_1", JobType: extractLdmp, Message: message}, {Config: "peak_1", JobType: prepareLdmp, Message: message},
		}, owner.LeftOut, name)
	}
}

func measured(name string) func(orchestrate.Config) {
	return func(c orchestrate.Config) {
		rule := c.Registrations[1].GetSpec().GetFields()["rules"].GetListValue().GetValues()[0].GetStructValue()
		rule.Fields["measurement"] = structpb.NewStringValue(name)
	}
}
