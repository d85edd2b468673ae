package exports

import (
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// Spec is the spec of ExportDatastreams.
type Spec struct {
	Organization string       `json:"organization" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" example:"demo" help:"slug of the organization that owns the stations"`
	Stations     []string     `json:"stations" minItems:"1" maxItems:"1000" uniqueItems:"true" example:"[\"angelo\"]" help:"slugs of the stations"`
	Tables       []string     `json:"tables,omitempty" maxItems:"1000" uniqueItems:"true" example:"[\"tenmin\"]" help:"tables of the stations; defaults to all"`
	Fields       []string     `json:"fields,omitempty" maxItems:"1000" uniqueItems:"true" example:"[\"AT_C_Avg\"]" help:"fields of the tables; defaults to all"`
	Start        time.Time    `json:"start" example:"2026-03-01T00:00:00Z" help:"from when on"`
	End          time.Time    `json:"end" example:"2026-04-01T00:00:00Z" help:"until when, itself left out"`
	Location     string       `json:"location" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" example:"common1" help:"location that has the points: one of the worker's places"`
	Mirror       string       `json:"mirror,omitempty" pattern:"^[a-z0-9][a-z0-9_-]{0,63}$" help:"mirror of the location that is read; defaults to that of the worker's places"`
	Database     string       `json:"database,omitempty" pattern:"^[^./\\\\][^/\\\\]*$" maxLength:"255" help:"database that is read; defaults to those of the stations"`
	Aggregate    Aggregate    `json:"aggregate,omitempty" enum:"mean,min,max,sum,count" help:"what of the values of each step is exported; without it, each value is"`
	Every        job.Duration `json:"every,omitempty" minimum:"PT1S" maximum:"P3650D" help:"step of aggregate: a part of a day without a rest, or whole days"`
	Format       Format       `json:"format,omitempty" enum:"csv,parquet,netcdf" default:"csv" help:"format of the files"`
	Compression  Compression  `json:"compression,omitempty" enum:"none,gzip,zstd,zip" default:"gzip" help:"of CSV; Parquet is compressed in itself, NetCDF not at all"`
	Licence      string       `json:"licence,omitempty" maxLength:"1000" example:"CC-BY-4.0" help:"licence of the data, for the manifest"`
	LinkLife     job.Duration `json:"link_life,omitempty" minimum:"PT1M" maximum:"P7D" default:"P7D" help:"how long the link and the files last"`
	PartPoints   int64        `json:"part_points,omitempty" minimum:"100" maximum:"5000000" default:"1000000" help:"values after which another file begins"`
	DryRun       bool         `json:"dry_run,omitempty" help:"counts values and finds gaps, and writes nothing"`
}

// Aggregate is a function of InfluxDB, or "".
type Aggregate string

// AggregateCount takes fields of any type, the others numbers alone.
const AggregateCount Aggregate = "count"

// Format is a format of files.
type Format string

// The formats.
const (
	FormatCSV     Format = "csv"
	FormatParquet Format = "parquet"
	FormatNetCDF  Format = "netcdf"
)

// Compression is that of CSV files.
type Compression string

// The compressions.
const (
	CompressionNone Compression = "none"
	CompressionGzip Compression = "gzip"
	CompressionZstd Compression = "zstd"
	CompressionZip  Compression = "zip"
)

const (
	day = 24 * time.Hour
	// maxSpan bounds the days that are counted.
	maxSpan = 200 * 366 * day
)

// The times that InfluxDB takes are a little wider.
var (
	minTime = time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)
	maxTime = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Validate reports a span and steps that cannot be.
func (s *Spec) Validate() error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	switch {
	case s.Start.Before(minTime), s.End.After(maxTime):
		add("start and end: InfluxDB has times from 1678 to 2261")
	case !s.End.After(s.Start):
		add("end: %s is not after start", s.End.Format(time.RFC3339Nano))
	case s.End.Sub(s.Start) > maxSpan:
		add("end: more than 200 years after start")
	}
	every := s.Every.Std()
	switch {
	case every == 0 && s.Aggregate == "":
	case every == 0:
		add("every is missing: the function needs a step")
	case s.Aggregate == "":
		add("aggregate is missing: a step needs a function")
	case every%time.Second != 0, every < day && day%every != 0, every > day && every%day != 0:
		add("every: %s is neither a part of a day without a rest nor whole days", s.Every)
	default:
		for i, at := range []time.Time{s.Start, s.End} {
			if at.UnixNano()%int64(every) != 0 {
				add("%s: %s is no multiple of %s since 1970", []string{"start", "end"}[i], at.Format(time.RFC3339Nano), s.Every)
			}
		}
	}
	return errors.Join(problems...)
}
