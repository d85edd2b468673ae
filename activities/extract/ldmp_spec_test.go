package extract_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func TestCampbellSpecNamesEveryProblem(t *testing.T) {
	t.Parallel()
	good := func() extract.CampbellLdmpSpec {
		return extract.CampbellLdmpSpec{
			Server: "127.0.0.1", Organization: "ucnrs",
			Stations: []extract.LdmpStation{{Station: "ucac_angelo", UTCOffset: "-08:00", Tables: []string{"TenMin", "Hr"}}},
		}
	}
	jobType := extract.CampbellScientificLdmp(nil)
	require.NoError(t, jobtest.CheckSpec(jobType, string(job.EncodeJSON(good()))))
	for problem, change := range map[string]func(*extract.CampbellLdmpSpec){
		`spec.server: "http://x" does not match the pattern`:             func(s *extract.CampbellLdmpSpec) { s.Server = "http://x" },
		`spec.organization: "-ucnrs" does not match the pattern`:         func(s *extract.CampbellLdmpSpec) { s.Organization = "-ucnrs" },
		`spec.operation_mode: "x" is not one of live, test, bulk`:        func(s *extract.CampbellLdmpSpec) { s.OperationMode = "x" },
		`spec.order: "real-time" is not one of`:                          func(s *extract.CampbellLdmpSpec) { s.Order = "real-time" },
		`spec.start_option: "x" is not one of`:                           func(s *extract.CampbellLdmpSpec) { s.StartOption = "x" },
		"start and backfill are both set":                                func(s *extract.CampbellLdmpSpec) { s.Start = midnight; s.Backfill = 1 },
		"start goes with the start option":                               func(s *extract.CampbellLdmpSpec) { s.Start = midnight; s.StartOption = "at-oldest" },
		"backfill goes with the start options":                           func(s *extract.CampbellLdmpSpec) { s.Backfill = 1; s.StartOption = "at-newest" },
		`spec.iteration_duration: "PT0.5S" is shorter than PT1S`:         func(s *extract.CampbellLdmpSpec) { s.IterationDuration = job.Duration(time.Second / 2) },
		"spec.stations: the list is empty":                               func(s *extract.CampbellLdmpSpec) { s.Stations = []extract.LdmpStation{} },
		"spec.stations.0.tables: the list is empty":                      func(s *extract.CampbellLdmpSpec) { s.Stations[0].Tables = []string{} },
		`spec.stations.0.utc_offset: "PST" does not match the pattern`:   func(s *extract.CampbellLdmpSpec) { s.Stations[0].UTCOffset = "PST" },
		`spec.stations.0.tables.0: "Ten Min" does not match the pattern`: func(s *extract.CampbellLdmpSpec) { s.Stations[0].Tables[0] = "Ten Min" },
		"table Hr of station ucac_angelo is":                             func(s *extract.CampbellLdmpSpec) { s.Stations[0].Tables[0] = "Hr" },
		`would share the bookmark ucac_angelo=a_b`: func(s *extract.CampbellLdmpSpec) {
			s.Stations[0].Tables = []string{"a.b", "a-b"}
		},
		`tables "ucac_angelo TenMin" and "ucac_angelo tenmin" would share the measurement of ucac_angelo=tenmin`: func(s *extract.CampbellLdmpSpec) {
			s.Stations[0].Tables = []string{"TenMin", "tenmin"}
		},
		`tables "ucac_angelo TenMin" and "UCAC.Angelo TenMin" would share the measurement of ucac_angelo=tenmin`: func(s *extract.CampbellLdmpSpec) {
			s.Stations = []extract.LdmpStation{s.Stations[0], s.Stations[0]}
			s.Stations[0].Tables, s.Stations[1].Tables = []string{"TenMin"}, []string{"TenMin"}
			s.Stations[1].Station = "UCAC.Angelo"
		},
		`tables "ucac_angelo TenMin" and "logger_2 TenMin" would share the measurement of ucac_angelo=tenmin`: func(s *extract.CampbellLdmpSpec) {
			s.Stations = []extract.LdmpStation{s.Stations[0], s.Stations[0]}
			s.Stations[1].Name = "logger_2"
		},
		`table TenMin of station logger_1 is listed twice`: func(s *extract.CampbellLdmpSpec) {
			s.Stations = []extract.LdmpStation{s.Stations[0], s.Stations[0]}
			s.Stations[0].Name, s.Stations[1].Name, s.Stations[1].Station = "logger_1", "logger_1", "other"
		},
	} {
		spec := good()
		change(&spec)
		require.ErrorContains(t, jobtest.CheckSpec(jobType, string(job.EncodeJSON(spec))), problem)
	}
}

func TestPrepareSpecNamesEveryProblem(t *testing.T) {
	t.Parallel()
	good := func() extract.PrepareLdmpSpec {
		return extract.PrepareLdmpSpec{
			Organization: "ucnrs", Location: "common1", Database: "station_{station}", Measurement: "source_{table}",
			Field: "{name}_{process}_{units}", StringFields: []string{"_flag$"},
			Rules: []extract.LdmpRule{{Station: "x", OperationMode: "test", UTCOffset: "+01:00", Location: "other"}},
		}
	}
	jobType := extract.PrepareCampbellScientificLdmp(nil)
	require.NoError(t, jobtest.CheckSpec(jobType, string(job.EncodeJSON(good()))))
	for problem, change := range map[string]func(*extract.PrepareLdmpSpec){
		`spec.organization: "" does not match the pattern`:                     func(s *extract.PrepareLdmpSpec) { s.Organization = "" },
		`spec.location: "A" does not match the pattern`:                        func(s *extract.PrepareLdmpSpec) { s.Location = "A" },
		`spec.operation_mode: "x" is not one of live, test, bulk`:              func(s *extract.PrepareLdmpSpec) { s.OperationMode = "x" },
		`spec.database: "{name}" does not match the pattern`:                   func(s *extract.PrepareLdmpSpec) { s.Database = "{name}" },
		`spec.database: "{organization}/{station}" does not match the pattern`: func(s *extract.PrepareLdmpSpec) { s.Database = "{organization}/{station}" },
		`spec.rules.0.odd_time_database: ".." does not match the pattern`:      func(s *extract.PrepareLdmpSpec) { s.Rules[0].OddTimeDatabase = ".." },
		`spec.measurement: "{" does not match the pattern`:                     func(s *extract.PrepareLdmpSpec) { s.Measurement = "{" },
		`spec.field: "x" does not match the pattern`:                           func(s *extract.PrepareLdmpSpec) { s.Field = "x" },
		`spec.string_fields.0: "(" is not a regular expression`:                func(s *extract.PrepareLdmpSpec) { s.StringFields = []string{"("} },
		`spec.rules.0.location: "." does not match the pattern`:                func(s *extract.PrepareLdmpSpec) { s.Rules[0].Location = "." },
		`spec.rules.0.operation_mode: "x" is not one of`:                       func(s *extract.PrepareLdmpSpec) { s.Rules[0].OperationMode = "x" },
		`spec.rules.0.utc_offset: "x" does not match the pattern`:              func(s *extract.PrepareLdmpSpec) { s.Rules[0].UTCOffset = "x" },
		`rules.0: begins_at`: func(s *extract.PrepareLdmpSpec) { s.Rules[0].BeginsAt, s.Rules[0].EndsBefore = midnight, midnight },
		`spec.rules.0.database: "{x}" does not match the pattern`: func(s *extract.PrepareLdmpSpec) { s.Rules[0].Database = "{x}" },
		`spec.iteration_duration: "P1D" is longer than PT12H`:     func(s *extract.PrepareLdmpSpec) { s.IterationDuration = job.Duration(24 * time.Hour) },
	} {
		spec := good()
		change(&spec)
		require.ErrorContains(t, jobtest.CheckSpec(jobType, string(job.EncodeJSON(spec))), problem)
	}
}
