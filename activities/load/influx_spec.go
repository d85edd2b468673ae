package load

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/lines"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// LiveInfluxSpec is the spec of LiveLoadInfluxV1.
type LiveInfluxSpec struct {
	influx.Servers
	Gzip              influx.Gzip        `json:"gzip,omitempty" enum:"auto,always,never" default:"auto" help:"compress writes; auto: unless every address of the server is a loopback or private one"`
	CreateDatabases   []string           `json:"create_databases,omitempty" pattern:"^([^*]+\\*?|\\*)$" maxItems:"100" example:"[\"station_*\"]" help:"databases that may be created besides that of the location or database: names, or the beginning of names with *"`
	OperationMode     pipeline.Operation `json:"operation_mode,omitempty" enum:"live,test,bulk" default:"live" help:"flow that is loaded"`
	NumberFields      []string           `json:"number_fields,omitempty" format:"regex" help:"regular expressions: a string in a field whose name matches one is stored as the number that it begins with, or not at all"`
	DropFields        []string           `json:"drop_fields,omitempty" format:"regex" help:"regular expressions: a field whose name matches one is not stored"`
	OnConflict        OnConflict         `json:"on_conflict,omitempty" enum:"quarantine,drop_field" default:"quarantine" help:"a point with a field of another type than the database has goes to quarantine, or is stored without the field"`
	BatchPoints       int                `json:"batch_points,omitempty" minimum:"1" maximum:"50000" default:"10000" help:"most points in one write"`
	BatchBytes        int                `json:"batch_bytes,omitempty" minimum:"1000" maximum:"20000000" default:"2000000" help:"most bytes in one write"`
	BatchAge          job.Duration       `json:"batch_age,omitzero" maximum:"PT30S" default:"PT1S" help:"how long a write waits for more points"`
	IterationDuration job.Duration       `json:"iteration_duration,omitzero" maximum:"PT12H" default:"PT1M" help:"how long an iteration works before it reports: shorter than run_timeout"`
}

// creates reports whether the job may create a database that a message names. Without a list
// that is the location's: a message may name any.
func (s *LiveInfluxSpec) creates(database string) bool {
	return database == s.Location || slices.ContainsFunc(s.CreateDatabases, func(allowed string) bool {
		prefix, found := strings.CutSuffix(allowed, "*")
		return database == allowed || found && strings.HasPrefix(database, prefix)
	})
}

// rules are what the job changes about the fields of points.
func (s *LiveInfluxSpec) rules() (rules lines.Rules, err error) {
	if rules.Number, err = patterns("number_fields", s.NumberFields); err != nil {
		return rules, err
	}
	rules.Drop, err = patterns("drop_fields", s.DropFields)
	return rules, err
}

func patterns(option string, texts []string) ([]*regexp.Regexp, error) {
	var all []*regexp.Regexp
	for _, text := range texts {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", option, err)
		}
		all = append(all, pattern)
	}
	return all, nil
}

// mirrors are all mirrors with what the job sets for those that do not.
func (s *LiveInfluxSpec) mirrors() []influx.Mirror {
	mirrors := s.All()
	for i := range mirrors {
		mirrors[i].Gzip = cmp.Or(mirrors[i].Gzip, s.Gzip)
	}
	return mirrors
}
