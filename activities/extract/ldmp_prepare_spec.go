package extract

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// PrepareLdmpSpec is the spec of PrepareCampbellScientificLdmp.
type PrepareLdmpSpec struct {
	// Organization is the slug of the organization whose raw messages are prepared.
	Organization string `json:"organization" jsonschema:"example=demo" jsonschema_description:"slug of the organization whose raw messages are prepared"`
	// Location is the group of stations whose loader stores the points.
	Location string `json:"location" jsonschema:"example=common1" jsonschema_description:"location that the points are stored with: its live_load_influx_v1 job loads them"`
	// OperationMode is the flow that is read, and that the points take if no rule
	// says otherwise. Defaults to live.
	OperationMode pipeline.Operation `json:"operation_mode,omitempty" jsonschema:"enum=live,enum=test,enum=bulk,default=live" jsonschema_description:"flow that is read, and that the points take if no rule says otherwise"`
	// Database defaults to {location}.
	Database string `json:"database,omitempty" jsonschema:"default={location}" jsonschema_description:"InfluxDB database of the points, with {location}, {organization}, {station} and {table} for names"`
	// Measurement defaults to station_{station}_source_{table}.
	Measurement string `json:"measurement,omitempty" jsonschema:"default=station_{station}_source_{table}" jsonschema_description:"InfluxDB measurement of the points, with {organization}, {station} and {table} for names; where organizations of one location have equal names of stations and tables, {organization} keeps them apart"`
	// Field defaults to {name}.
	Field string `json:"field,omitempty" jsonschema:"default={name}" jsonschema_description:"name of a field, with {name}, {process} and {units} of the record's"`
	// StringFields are regular expressions of names.
	StringFields []string `json:"string_fields,omitempty" jsonschema_description:"regular expressions: a field whose name matches one is a string, whatever its type"`
	// Rules change where records go; they are applied in their order.
	Rules []LdmpRule `json:"rules,omitempty" jsonschema_description:"what differs for stations, tables and times; a later rule wins over an earlier one"`
	// IterationDuration is how long an iteration works before it reports. Defaults to a minute.
	IterationDuration job.Duration `json:"iteration_duration,omitzero" jsonschema:"default=PT1M" jsonschema_description:"how long an iteration works before it reports: at most PT12H, and shorter than run_timeout"`
}

// LdmpRule applies to records of a station, a table and a time; what it leaves
// out stays as it is.
type LdmpRule struct {
	Station    string    `json:"station,omitempty" jsonschema_description:"station that the rule applies to; defaults to all"`
	Table      string    `json:"table,omitempty" jsonschema_description:"table that the rule applies to; defaults to all"`
	BeginsAt   time.Time `json:"begins_at,omitzero" jsonschema_description:"time of the first record that the rule applies to"`
	EndsBefore time.Time `json:"ends_before,omitzero" jsonschema_description:"time before which the last record lies that the rule applies to"`

	Location        string             `json:"location,omitempty" jsonschema_description:"location instead of the spec's"`
	OperationMode   pipeline.Operation `json:"operation_mode,omitempty" jsonschema:"enum=live,enum=test,enum=bulk" jsonschema_description:"flow that the points take: test for a station that is being tried out"`
	Database        string             `json:"database,omitempty" jsonschema_description:"database instead of the spec's"`
	Measurement     string             `json:"measurement,omitempty" jsonschema_description:"measurement instead of the spec's"`
	Field           string             `json:"field,omitempty" jsonschema_description:"names of fields instead of the spec's"`
	UTCOffset       pipeline.UTCOffset `json:"utc_offset,omitempty" jsonschema_description:"offset of the logger's clock instead of the one that it was read with: +HH:MM or -HH:MM"`
	OddTimeDatabase string             `json:"odd_time_database,omitempty" jsonschema_description:"database of records whose time is not a whole minute"`
	Skip            bool               `json:"skip,omitempty" jsonschema_description:"makes no points of these records"`
}

// Validate reports everything that is wrong with the spec as a whole.
func (s *PrepareLdmpSpec) Validate() error {
	var problems []error
	check := func(where string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s%w", where, err))
		}
	}
	check("", pipeline.CheckToken("organization", s.Organization))
	check("", pipeline.CheckToken("location", s.Location))
	if s.OperationMode != "" {
		check("", s.OperationMode.Check())
	}
	check("", checkTemplates(s.Measurement, s.Field))
	check("", checkDatabaseTemplate("database", s.Database))
	for _, pattern := range s.StringFields {
		_, err := regexp.Compile(pattern)
		check("string_fields: ", err)
	}
	for i, rule := range s.Rules {
		where := fmt.Sprintf("rules, number %d: ", i+1)
		if rule.Location != "" {
			check(where, pipeline.CheckToken("location", rule.Location))
		}
		if rule.OperationMode != "" {
			check(where, rule.OperationMode.Check())
		}
		if rule.UTCOffset != "" {
			check(where, rule.UTCOffset.Check())
		}
		if !rule.BeginsAt.IsZero() && !rule.EndsBefore.IsZero() && !rule.BeginsAt.Before(rule.EndsBefore) {
			check(where, errors.New("begins_at is not before ends_before"))
		}
		check(where, checkTemplates(rule.Measurement, rule.Field))
		check(where, checkDatabaseTemplate("database", rule.Database))
		check(where, checkDatabaseTemplate("odd_time_database", rule.OddTimeDatabase))
	}
	if s.IterationDuration > maxIterationDuration {
		check("", fmt.Errorf("iteration_duration %s is longer than %s", s.IterationDuration, maxIterationDuration))
	}
	return errors.Join(problems...)
}

// checkBraces finds names in braces that there are not, and gives the template with
// the shortest names in their place.
func checkBraces(key, template string, names ...string) (filled string, err error) {
	filled = template
	for _, name := range names {
		filled = strings.ReplaceAll(filled, name, "x")
	}
	if strings.ContainsAny(filled, "{}") {
		return "", fmt.Errorf("%s %q: the names it may have in braces are %s", key, template, strings.Join(names, ", "))
	}
	return filled, nil
}

// checkDatabaseTemplate checks what makes names of databases, unless it is empty.
func checkDatabaseTemplate(key, template string) error {
	filled, err := checkBraces(key, template, "{location}", "{organization}", "{station}", "{table}")
	if err != nil || template == "" {
		return err
	}
	if filled != template {
		key = fmt.Sprintf("%s %q, filled in as", key, template)
	}
	return pipeline.CheckStoreName(key, filled)
}

func checkTemplates(measurement, field string) error {
	_, measurementErr := checkBraces("measurement", measurement, "{organization}", "{station}", "{table}")
	_, fieldErr := checkBraces("field", field, "{name}", "{process}", "{units}")
	problems := []error{measurementErr, fieldErr}
	if field != "" && !strings.Contains(field, "{name}") {
		problems = append(problems, fmt.Errorf("field %q: without {name} all fields would have one name", field))
	}
	return errors.Join(problems...)
}

func (s PrepareLdmpSpec) withDefaults() PrepareLdmpSpec {
	if s.OperationMode == "" {
		s.OperationMode = pipeline.OperationLive
	}
	if s.Database == "" {
		s.Database = "{location}"
	}
	if s.Measurement == "" {
		s.Measurement = "station_{station}_source_{table}"
	}
	if s.Field == "" {
		s.Field = "{name}"
	}
	if s.IterationDuration == 0 {
		s.IterationDuration = job.Duration(time.Minute)
	}
	return s
}
