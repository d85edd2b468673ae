package extract

import (
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// PrepareLdmpSpec is the spec of PrepareCampbellScientificLdmp.
type PrepareLdmpSpec struct {
	Organization  string             `json:"organization" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" example:"demo" help:"slug of the organization whose raw messages are prepared"`
	Location      string             `json:"location" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" example:"common1" help:"location that the points are stored with"`
	OperationMode pipeline.Operation `json:"operation_mode,omitempty" enum:"live,test,bulk" default:"live" help:"flow that is read, and that the points take if no rule says otherwise"`
	Database      string             `json:"database,omitempty" pattern:"^([^./\\\\{}]|\\{(location|organization|station|table)\\})([^/\\\\{}]|\\{(location|organization|station|table)\\})*$" maxLength:"255" default:"{location}" help:"InfluxDB database of the points, with {location}, {organization}, {station} and {table} for names"`
	Measurement   string             `json:"measurement,omitempty" pattern:"^([^{}\\r\\n]|\\{(organization|station|table)\\})+$" default:"station_{station}_source_{table}" help:"InfluxDB measurement of the points; {organization} keeps equal names of organizations of one location apart"`
	Field         string             `json:"field,omitempty" pattern:"^([^{}\\r\\n]|\\{(process|units)\\})*\\{name\\}([^{}\\r\\n]|\\{(name|process|units)\\})*$" default:"{name}" help:"name of a field, with {name}, {process} and {units} of the record's"`
	StringFields  []string           `json:"string_fields,omitempty" format:"regex" help:"regular expressions: a field whose name matches one is a string, whatever its type"`
	// Rules are applied in their order.
	Rules             []LdmpRule   `json:"rules,omitempty" help:"what differs for stations, tables and times; a later rule wins over an earlier one"`
	IterationDuration job.Duration `json:"iteration_duration,omitzero" maximum:"PT12H" default:"PT1M" help:"how long an iteration works before it reports: shorter than run_timeout"`
}

// LdmpRule applies to records of a station, a table and a time; what it leaves
// out stays as it is.
type LdmpRule struct {
	Station    string    `json:"station,omitempty" help:"slug of the station that the rule applies to; defaults to all"`
	Table      string    `json:"table,omitempty" help:"table that the rule applies to; defaults to all"`
	BeginsAt   time.Time `json:"begins_at,omitzero" help:"time of the first record that the rule applies to"`
	EndsBefore time.Time `json:"ends_before,omitzero" help:"time before which the last record lies that the rule applies to"`

	Location        string             `json:"location,omitempty" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" help:"location instead of the spec's"`
	OperationMode   pipeline.Operation `json:"operation_mode,omitempty" enum:"live,test,bulk" help:"flow that the points take: test for a station that is being tried out"`
	Database        string             `json:"database,omitempty" pattern:"^([^./\\\\{}]|\\{(location|organization|station|table)\\})([^/\\\\{}]|\\{(location|organization|station|table)\\})*$" maxLength:"255" help:"database instead of the spec's"`
	Measurement     string             `json:"measurement,omitempty" pattern:"^([^{}\\r\\n]|\\{(organization|station|table)\\})+$" help:"measurement instead of the spec's"`
	Field           string             `json:"field,omitempty" pattern:"^([^{}\\r\\n]|\\{(process|units)\\})*\\{name\\}([^{}\\r\\n]|\\{(name|process|units)\\})*$" help:"names of fields instead of the spec's"`
	UTCOffset       pipeline.UTCOffset `json:"utc_offset,omitempty" pattern:"^[+-](0[0-9]|1[0-4]):[0-5][0-9]$" help:"offset of the logger's clock instead of the one that it was read with: +HH:MM or -HH:MM"`
	OddTimeDatabase string             `json:"odd_time_database,omitempty" pattern:"^([^./\\\\{}]|\\{(location|organization|station|table)\\})([^/\\\\{}]|\\{(location|organization|station|table)\\})*$" maxLength:"255" help:"database of records whose time is not a whole minute"`
	Skip            bool               `json:"skip,omitempty" help:"makes no points of these records"`
}

// Validate reports rules whose times are not in order.
func (s *PrepareLdmpSpec) Validate() error {
	var problems []error
	for i, rule := range s.Rules {
		if !rule.BeginsAt.IsZero() && !rule.EndsBefore.IsZero() && !rule.BeginsAt.Before(rule.EndsBefore) {
			problems = append(problems, fmt.Errorf("rules.%d: begins_at is not before ends_before", i))
		}
	}
	return errors.Join(problems...)
}
