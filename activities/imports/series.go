package imports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/internal/cadence"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/job"
)

const (
	// comparedAtOnce is how many points of the file are compared by a query, and
	// comparedBytes bounds the messages that they are of.
	comparedAtOnce = 5000
	comparedBytes  = 8 << 20
	// farApart is a time between two points of the file over which no query goes.
	farApart = 7 * 24 * time.Hour
	// maxDifferences bounds those of a measurement that are told one by one.
	maxDifferences = 10
)

// MeasurementReport compares the points of the files with a measurement.
type MeasurementReport struct {
	Location    string `json:"location"`
	Database    string `json:"database"`
	Measurement string `json:"measurement"`
	// Points of the files are New (nothing is stored at their time), Extended (fields of the
	// stored point are added, and none changes), Equal (all their values are stored), or
	// Different (they overwrite a value by another one).
	Points    int64 `json:"points"`
	New       int64 `json:"new"`
	Extended  int64 `json:"extended"`
	Equal     int64 `json:"equal"`
	Different int64 `json:"different"`
	// Differences are the first ten values that would be overwritten by others.
	Differences []Difference `json:"differences,omitempty"`
	// Overlap is from the first to the last stored point within the time of the files.
	Overlap *Overlap `json:"overlap,omitempty"`
	// Gaps counts times between two stored points in which there are new ones. LongestGaps are
	// at most ten.
	Gaps        int64       `json:"gaps"`
	LongestGaps []FilledGap `json:"longest_gaps,omitempty"`
}

// Difference is a value that would be overwritten.
type Difference struct {
	Time   time.Time `json:"time"`
	Field  string    `json:"field"`
	Stored string    `json:"stored"`
	File   string    `json:"file"`
}

// Overlap is a time with both its ends.
type Overlap struct {
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// FilledGap is a time between two stored points, with the points that the files have there.
type FilledGap struct {
	cadence.Gap

	Points int64 `json:"points"`
}

// series compares points with a measurement, some at a time.
type series struct {
	MeasurementReport

	mirror influx.Mirror
	config influx.Config
	pace   *influx.Pace

	points      []extract.Point
	bytes       int
	fields      map[string]bool // of all points
	first, last int64           // of all points, in milliseconds
	gap         FilledGap       // the latest
}

func (s *series) add(ctx context.Context, point extract.Point, bytes int) error {
	s.points = append(s.points, point)
	if s.bytes += bytes; len(s.points) < comparedAtOnce && s.bytes < comparedBytes {
		return nil
	}
	return s.flush(ctx)
}

// flush compares the points that were gathered.
func (s *series) flush(ctx context.Context) error {
	slices.SortStableFunc(s.points, func(a, b extract.Point) int { return cmp.Compare(a.Time.UnixMilli(), b.Time.UnixMilli()) })
	for begin := 0; begin < len(s.points); {
		end := begin + 1
		for end < len(s.points) && s.points[end].Time.Sub(s.points[end-1].Time) <= farApart {
			end++
		}
		if err := s.compare(ctx, s.points[begin:end]); err != nil {
			return err
		}
		begin = end
	}
	s.points, s.bytes = s.points[:0], 0
	return nil
}

// unknown stands for a time that is not known.
const unknown = math.MinInt64

// filling are new points between two stored ones, whose times are in milliseconds.
type filling struct{ from, to, points int64 }

// compare compares points, which are in order, with those that are stored.
func (s *series) compare(ctx context.Context, points []extract.Point) error {
	m := &merge{series: s, points: points, before: unknown, at: unknown}
	names := map[string]bool{}
	for _, p := range points {
		for name := range p.Fields {
			names[name] = true
		}
	}
	m.fields = slices.Sorted(maps.Keys(names))
	first, last := points[0].Time.UnixMilli(), points[len(points)-1].Time.UnixMilli()
	if s.fields == nil {
		s.fields, s.first, s.last = map[string]bool{}, first, last
	}
	maps.Copy(s.fields, names)
	s.first, s.last = min(s.first, first), max(s.last, last)
	s.Points += int64(len(points))

	if err := s.rows(ctx, m.fields, first, last, "", m.stored); err != nil {
		return err
	}
	m.finish()
	// Of the first and the last filling, the neighbours are not within the time that was read.
	if n := len(m.fillings); n > 0 && m.fillings[0].from == unknown {
		var err error
		if m.fillings[0].from, err = s.next(ctx, m.fields, unknown, first-1); err != nil {
			return err
		}
	}
	if n := len(m.fillings); n > 0 && m.fillings[n-1].to == unknown {
		var err error
		if m.fillings[n-1].to, err = s.next(ctx, m.fields, last+1, unknown); err != nil {
			return err
		}
	}
	for _, f := range m.fillings {
		s.fill(f)
	}
	return nil
}

// fill counts new points. Where nothing is stored before or after them there is no gap.
func (s *series) fill(f filling) {
	if f.from == unknown || f.to == unknown {
		return
	}
	gap := cadence.Gap{From: time.UnixMilli(f.from).UTC(), To: time.UnixMilli(f.to).UTC()}
	if s.gap.Gap != gap {
		s.keepGap()
		s.gap = FilledGap{Gap: gap}
	}
	s.gap.Points += f.points
}

func (s *series) keepGap() {
	if s.gap.Points > 0 {
		s.Gaps++
		s.LongestGaps = cadence.Longest(append(s.LongestGaps, s.gap))
	}
}

// rows reads stored rows whose times in milliseconds are from first to last. A database that
// is not there has none.
func (s *series) rows(ctx context.Context, fields []string, first, last int64, clauses string, take func(at int64, values []jsontext.Value) error) error {
	var from, to time.Time
	if first != unknown {
		from = time.UnixMilli(first)
	}
	if last != unknown {
		to = time.UnixMilli(last + 1)
	}
	values := int64(0)
	command := influx.Selection("", fields, s.Measurement, from, to) + clauses
	err := influx.Rows(ctx, s.config, s.Database, command, len(fields), func(at int64, row []jsontext.Value) error {
		values += int64(len(row))
		return take(at, row)
	})
	if err != nil && !errors.Is(err, influx.ErrNoDatabase) {
		return err
	}
	return s.pace.Wait(ctx, values)
}

// next is the time of the first stored row from a time on, or of the last one until a time,
// of which the other one is unknown; unknown if there is none.
func (s *series) next(ctx context.Context, fields []string, first, last int64) (found int64, err error) {
	clauses := " LIMIT 1"
	if first == unknown {
		clauses = " ORDER BY time DESC LIMIT 1"
	}
	found = unknown
	err = s.rows(ctx, fields, first, last, clauses, func(at int64, _ []jsontext.Value) error {
		found = milliseconds(at)
		return nil
	})
	return found, err
}

// milliseconds are those of a time in nanoseconds, rounded down.
func milliseconds(at int64) int64 { return time.Unix(0, at).UnixMilli() }

// end compares what is left, and gives the report.
func (s *series) end(ctx context.Context) (MeasurementReport, error) {
	if err := s.flush(ctx); err != nil {
		return MeasurementReport{}, err
	}
	s.keepGap()
	s.gap = FilledGap{}
	fields := slices.Sorted(maps.Keys(s.fields))
	first, err := s.next(ctx, fields, s.first, unknown)
	if err != nil {
		return MeasurementReport{}, err
	}
	last, err := s.next(ctx, fields, unknown, s.last)
	if err != nil {
		return MeasurementReport{}, err
	}
	if first != unknown && last != unknown && first <= last {
		s.Overlap = &Overlap{time.UnixMilli(first).UTC(), time.UnixMilli(last).UTC()}
	}
	report := s.MeasurementReport
	report.Database, report.Measurement = job.Cut(report.Database, maxName), job.Cut(report.Measurement, maxName)
	return report, nil
}

// merge goes through points of the files and stored rows, both in the order of their times.
type merge struct {
	*series

	fields []string
	points []extract.Point // those that are left

	before   int64 // time of the stored row before, in milliseconds
	at       int64 // time of the stored row that is gathered
	values   map[string]string
	fillings []filling
}

// stored takes a row: times are in nanoseconds. Rows of one time have other tags, and those of
// one millisecond other fractions: they are one here.
func (m *merge) stored(at int64, values []jsontext.Value) error {
	if ms := milliseconds(at); ms != m.at {
		m.row()
		m.at, m.values = ms, map[string]string{}
	}
	for i, value := range values {
		if value.Kind() != 'n' {
			m.values[m.fields[i]] = string(value)
		}
	}
	return nil
}

// row compares what was gathered of a time.
func (m *merge) row() {
	if m.at == unknown {
		return
	}
	m.fresh(m.at)
	for len(m.points) > 0 && m.points[0].Time.UnixMilli() == m.at {
		m.pair(m.points[0])
		m.points = m.points[1:]
	}
	m.before = m.at
}

// finish takes the points that are left.
func (m *merge) finish() {
	m.row()
	m.fresh(unknown)
}

// fresh takes the points before a stored row, whose time may be unknown: nothing is stored at
// theirs.
func (m *merge) fresh(until int64) {
	n := int64(0)
	for len(m.points) > 0 && (until == unknown || m.points[0].Time.UnixMilli() < until) {
		m.points = m.points[1:]
		n++
	}
	if m.New += n; n > 0 {
		m.fillings = append(m.fillings, filling{m.before, until, n})
	}
}

// pair compares a point with the stored values of its time.
func (m *merge) pair(point extract.Point) {
	added, changed := false, false
	for _, name := range slices.Sorted(maps.Keys(point.Fields)) {
		text, is := m.values[name]
		if !is {
			added = true
			continue
		}
		if value := point.Fields[name]; !sameValue(value, text) {
			changed = true
			if len(m.Differences) < maxDifferences {
				m.Differences = append(m.Differences, Difference{
					Time: point.Time.UTC(), Field: job.Cut(name, maxName), Stored: job.Cut(text, maxName), File: job.Cut(string(job.EncodeJSON(value)), maxName),
				})
			}
		}
	}
	switch {
	case changed:
		m.Different++
	case added:
		m.Extended++
	default:
		m.Equal++
	}
}

// sameValue compares a float64, string or bool with a stored value, as JSON.
func sameValue(value any, stored string) bool {
	switch v := value.(type) {
	case float64:
		number, err := strconv.ParseFloat(stored, 64)
		return err == nil && number == v
	case string:
		text, err := jsontext.AppendUnquote(nil, stored)
		return err == nil && string(text) == v && stored[0] == '"'
	}
	return stored == fmt.Sprint(value)
}
