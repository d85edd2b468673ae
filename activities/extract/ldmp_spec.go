package extract

import (
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
	// Server is host:port of the LoggerNet server. The port defaults to 1024.
	Server string `json:"server" jsonschema:"example=127.0.0.1:1024" jsonschema_description:"host:port of the LoggerNet server; the port defaults to 1024"`
	// Organization is the slug of the organization that owns the data.
	Organization string `json:"organization" jsonschema:"example=demo" jsonschema_description:"slug of the organization that owns the data"`
	// Stations are read over one connection.
	Stations []LdmpStation `json:"stations" jsonschema:"minItems=1" jsonschema_description:"stations to read, all over one connection"`
	// OperationMode keeps live data and tests apart. Defaults to live.
	OperationMode pipeline.Operation `json:"operation_mode,omitempty" jsonschema:"enum=live,enum=test,enum=bulk,default=live" jsonschema_description:"flow that the data takes"`
	// Order defaults to logged-with-holes.
	Order ldmp.Order `json:"order,omitempty" jsonschema:"enum=logged-with-holes,enum=collected,default=logged-with-holes" jsonschema_description:"order of the records of a table: that of logging, in which the server waits with a table while a record may still be collected, or that of collection"`
	// StartOption is where a table without a bookmark begins. Defaults to at-time.
	StartOption string `json:"start_option,omitempty" jsonschema:"enum=at-time,enum=at-oldest,enum=at-newest,enum=relative-to-newest,default=at-time" jsonschema_description:"where a table that was never read begins: at the time start, or backfill before now; at the oldest or the newest record that the server has; or backfill before its newest record"`
	// Start goes with the start option at-time. Not together with Backfill.
	Start time.Time `json:"start,omitzero" jsonschema_description:"time at which a table that was never read begins; not together with backfill"`
	// Backfill goes with the start options at-time and relative-to-newest.
	// Defaults to 3 days.
	Backfill job.Duration `json:"backfill,omitzero" jsonschema:"default=P3D" jsonschema_description:"how far back a table that was never read begins"`
	// IterationDuration is how long an iteration reads before it reports and connects anew.
	// Defaults to 5 minutes; from 1 second to 12 hours.
	IterationDuration job.Duration `json:"iteration_duration,omitzero" jsonschema:"default=PT5M" jsonschema_description:"how long an iteration reads before it reports and connects anew: from PT1S to PT12H, and shorter than run_timeout"`
}

// LdmpStation is a data logger as the LoggerNet server knows it.
type LdmpStation struct {
	// Station is the name of the station on the server.
	Station string `json:"station" jsonschema:"example=angelo" jsonschema_description:"name of the station on the LoggerNet server"`
	// UTCOffset is how far the logger's clock is ahead of UTC.
	UTCOffset pipeline.UTCOffset `json:"utc_offset" jsonschema:"example=-08:00" jsonschema_description:"how far the logger's clock is ahead of UTC, all year: +HH:MM or -HH:MM"`
	// Tables are names of the logger's tables.
	Tables []string `json:"tables" jsonschema:"minItems=1" jsonschema_description:"names of the tables to read"`
}

const (
	maxTables            = 1000 // of a job, and so in one specification
	maxIterationDuration = job.Duration(12 * time.Hour)
	// defaultLdmpBackfill is what a table that was never read begins before now.
	defaultLdmpBackfill = job.Duration(72 * time.Hour)
)

// Validate reports everything that is wrong with the spec as a whole.
func (s *CampbellLdmpSpec) Validate() error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	check := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	if s.Server == "" || strings.ContainsAny(s.Server, "/@ \t") {
		add("server %q is not of the form HOST:PORT", s.Server)
	}
	check(pipeline.CheckToken("organization", s.Organization))
	if s.OperationMode != "" {
		check(s.OperationMode.Check())
	}
	switch s.Order {
	case "", ldmp.LoggedWithHoles, ldmp.Collected:
	default:
		add("order %q is not one of %s, %s", s.Order, ldmp.LoggedWithHoles, ldmp.Collected)
	}
	switch s.StartOption {
	case "", ldmp.StartAtTime:
		if !s.Start.IsZero() && s.Backfill != 0 {
			add("start and backfill are both set: give one")
		}
	case ldmp.StartAtOldest, ldmp.StartAtNewest, ldmp.StartRelativeToNewest:
		if !s.Start.IsZero() {
			add("start goes with the start option %s, not with %s", ldmp.StartAtTime, s.StartOption)
		}
		if s.Backfill != 0 && s.StartOption != ldmp.StartRelativeToNewest {
			add("backfill goes with the start options %s and %s, not with %s", ldmp.StartAtTime, ldmp.StartRelativeToNewest, s.StartOption)
		}
	default:
		add("start_option %q is not one of %s, %s, %s, %s", s.StartOption,
			ldmp.StartAtTime, ldmp.StartAtOldest, ldmp.StartAtNewest, ldmp.StartRelativeToNewest)
	}
	if s.IterationDuration != 0 && (s.IterationDuration < job.Duration(time.Second) || s.IterationDuration > maxIterationDuration) {
		add("iteration_duration %s is not from PT1S to %s", s.IterationDuration, maxIterationDuration)
	}
	check(s.checkStations())
	return errors.Join(problems...)
}

func (s *CampbellLdmpSpec) checkStations() error {
	var problems []error
	count := 0
	keys, sources := map[string]string{}, map[string]string{}
	for _, station := range s.Stations {
		if err := ldmp.CheckName("station", station.Station); err != nil {
			problems = append(problems, err)
		}
		if err := station.UTCOffset.Check(); err != nil {
			problems = append(problems, fmt.Errorf("station %s: %w", station.Station, err))
		}
		if len(station.Tables) == 0 {
			problems = append(problems, fmt.Errorf("station %s has no tables", station.Station))
		}
		for _, table := range station.Tables {
			count++
			name := station.Station + " " + table
			if err := ldmp.CheckName("table", table); err != nil {
				problems = append(problems, fmt.Errorf("station %s: %w", station.Station, err))
			}
			// Bookmarks keep the case of names, measurements do not.
			source := ldmpSource(station.Station, table)
			key := strings.ToLower(source)
			switch other, taken := keys[key]; {
			case taken && other == name:
				problems = append(problems, fmt.Errorf("table %s of station %s is listed twice", table, station.Station))
			case taken && sources[other] == source:
				problems = append(problems, fmt.Errorf("tables %q and %q would share the bookmark %s: read one of them with another job", other, name, source))
			case taken:
				problems = append(problems, fmt.Errorf("tables %q and %q would share the measurement of %s: read one of them for another organization", other, name, key))
			}
			sources[name] = source
			keys[key] = name
		}
	}
	if count == 0 || count > maxTables {
		problems = append(problems, fmt.Errorf("stations: %d tables in all, not 1 to %d", count, maxTables))
	}
	return errors.Join(problems...)
}

func (s CampbellLdmpSpec) withDefaults() CampbellLdmpSpec {
	if s.OperationMode == "" {
		s.OperationMode = pipeline.OperationLive
	}
	if s.Order == "" {
		s.Order = ldmp.LoggedWithHoles
	}
	if s.StartOption == "" {
		s.StartOption = ldmp.StartAtTime
	}
	if s.Backfill == 0 {
		s.Backfill = defaultLdmpBackfill
	}
	if s.IterationDuration == 0 {
		s.IterationDuration = job.Duration(5 * time.Minute)
	}
	return s
}

// ldmpSource names a table in the key of its bookmark: angelo=TenMin.
func ldmpSource(station, table string) string {
	return pipeline.SafeName(station) + "=" + pipeline.SafeName(table)
}
