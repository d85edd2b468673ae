package extract

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// CampbellLdmpSpec is the spec of ExtractCampbellScientificLdmp.
type CampbellLdmpSpec struct {
	Server        string             `json:"server" pattern:"^[^/@\\s]+$" example:"127.0.0.1:1024" help:"host:port of the LoggerNet server; the port defaults to 1024"`
	Organization  string             `json:"organization" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" example:"demo" help:"slug of the organization that owns the data"`
	Stations      []LdmpStation      `json:"stations" minItems:"1" help:"stations to read, all over one connection; at most 1,000 tables in all"`
	OperationMode pipeline.Operation `json:"operation_mode,omitempty" enum:"live,test,bulk" default:"live" help:"flow that the data takes"`
	Order         ldmp.Order         `json:"order,omitempty" enum:"logged-with-holes,collected" default:"logged-with-holes" help:"order of a table's records: as logged, waiting while a record may still be collected, or as collected"`
	StartOption   string             `json:"start_option,omitempty" enum:"at-time,at-oldest,at-newest,relative-to-newest" default:"at-time" help:"where a table that was never read begins: at start or backfill, at the oldest or newest record, or backfill before the newest"`
	Start         time.Time          `json:"start,omitzero" help:"time at which a table that was never read begins; goes with start_option at-time, and not with backfill"`
	Backfill      job.Duration       `json:"backfill,omitzero" help:"how far back a table that was never read begins; P3D without start; goes with start_option at-time and relative-to-newest"`
	MaxRefused    int                `json:"max_refused,omitempty" minimum:"1" maximum:"10000" default:"10" help:"frames of a connection that go to quarantine before it ends: another one is made after a wait, and after four the iteration fails"`
	// IterationDuration is also how long a connection is used.
	IterationDuration job.Duration `json:"iteration_duration,omitzero" minimum:"PT1S" maximum:"PT12H" default:"PT5M" help:"how long an iteration reads before it reports and connects anew: shorter than run_timeout"`
}

// LdmpStation is a data logger of a station.
type LdmpStation struct {
	Station string `json:"station" pattern:"^[^-{}\\[\\]\"';\\\\$\\s][^{}\\[\\]\"';\\\\$\\s]*$" example:"angelo" help:"slug of the station: its points go by it"`
	// Name is the vendor's.
	Name      string             `json:"name,omitempty" pattern:"^[^-{}\\[\\]\"';\\\\$\\s][^{}\\[\\]\"';\\\\$\\s]*$" help:"name of the station on the LoggerNet server; defaults to station"`
	UTCOffset pipeline.UTCOffset `json:"utc_offset" pattern:"^[+-](0[0-9]|1[0-4]):[0-5][0-9]$" example:"-08:00" help:"how far the logger's clock is ahead of UTC, all year: +HH:MM or -HH:MM"`
	Tables    []string           `json:"tables" minItems:"1" pattern:"^[^-{}\\[\\]\"';\\\\$\\s][^{}\\[\\]\"';\\\\$\\s]*$" help:"names of the tables to read"`
}

const (
	maxTables = 1000 // of a job, and so in one specification
	// defaultLdmpBackfill is what a table that was never read begins before now.
	defaultLdmpBackfill = job.Duration(72 * time.Hour)
)

// Validate reports tables that are listed twice, and keys that do not go together.
func (s *CampbellLdmpSpec) Validate() error {
	return errors.Join(s.checkStart(), s.checkStations())
}

func (s *CampbellLdmpSpec) checkStart() error {
	atTime, relative := s.StartOption == ldmp.StartAtTime, s.StartOption == ldmp.StartRelativeToNewest
	switch {
	case atTime && !s.Start.IsZero() && s.Backfill != 0:
		return errors.New("start and backfill are both set: give one")
	case !atTime && !s.Start.IsZero():
		return fmt.Errorf("start goes with the start option %s, not with %s", ldmp.StartAtTime, s.StartOption)
	case !atTime && !relative && s.Backfill != 0:
		return fmt.Errorf("backfill goes with the start options %s and %s, not with %s",
			ldmp.StartAtTime, ldmp.StartRelativeToNewest, s.StartOption)
	}
	return nil
}

func (s *CampbellLdmpSpec) checkStations() error {
	var problems []error
	count := 0
	read, sources, measurements := map[string]bool{}, map[string]string{}, map[string]string{}
	for _, station := range s.Stations {
		for _, table := range station.Tables {
			count++
			name := station.name() + " " + table
			// Bookmarks keep the case of names, measurements do not.
			source, measurement := ldmpSource(station.name(), table), strings.ToLower(ldmpSource(station.Station, table))
			switch {
			case read[name]:
				problems = append(problems, fmt.Errorf("table %s of station %s is listed twice", table, station.name()))
			case sources[source] != "":
				problems = append(problems, fmt.Errorf("tables %q and %q would share the bookmark %s: read one of them with another job", sources[source], name, source))
			case measurements[measurement] != "":
				problems = append(problems, fmt.Errorf("tables %q and %q would share the measurement of %s: read one of them for another organization",
					measurements[measurement], name, measurement))
			}
			read[name], sources[source], measurements[measurement] = true, name, name
		}
	}
	if count > maxTables {
		problems = append(problems, fmt.Errorf("stations: %d tables in all, more than %d", count, maxTables))
	}
	return errors.Join(problems...)
}

// name is the one that the server has for the station.
func (s *LdmpStation) name() string { return cmp.Or(s.Name, s.Station) }

// ldmpSource names a table in the key of its bookmark: angelo=TenMin.
func ldmpSource(station, table string) string {
	return pipeline.SafeName(station) + "=" + pipeline.SafeName(table)
}
