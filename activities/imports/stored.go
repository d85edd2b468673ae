package imports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// maxMeasurements bounds the measurements that are compared, and maxNotes what is said of others.
const (
	maxMeasurements = 5
	maxNotes        = 10
)

// ComparisonReport compares a file with what is stored, as a job PrepareCampbellScientificLdmp
// would make points of it.
type ComparisonReport struct {
	// Job is that job.
	Job string `json:"job"`
	// Rows are records of the files: Empty ones become no point, since they have no value or a
	// rule skips them. Refused ones would go to quarantine, as a whole or some of their fields.
	Rows         int64    `json:"rows"`
	Empty        int64    `json:"empty"`
	Refused      int64    `json:"refused"`
	FirstRefused []string `json:"first_refused,omitempty"`
	// Measurements are at most five.
	Measurements []MeasurementReport `json:"measurements,omitempty"`
}

// stored compares the records of a dry run with what is stored.
type stored struct {
	run   job.Run
	at    places.Places
	pace  *influx.Pace
	jobs  []*comparison
	notes []string

	reports []ComparisonReport // at the end
}

// comparison is that of one job.
type comparison struct {
	ComparisonReport

	points extract.RecordPoints
	series map[extract.Destination]*series // nil where it is not compared
}

// newStored finds the jobs that would prepare the messages of an import.
func newStored(ctx context.Context, run job.Run, at places.Places, organization string) (*stored, error) {
	s := &stored{run: run, at: at, pace: &influx.Pace{PerSecond: at.Exports.PointsPerSecond, Run: run}}
	found, err := run.Jobs().Find(ctx, job.Filter{Type: extract.PrepareCampbellScientificLdmp(nil).Name})
	if err != nil {
		return nil, err
	}
	for _, summary := range found {
		definition, err := run.Jobs().Get(ctx, summary.ID)
		if errors.Is(err, job.ErrNoJob) {
			continue // It was stopped meanwhile.
		}
		if err != nil {
			return nil, err
		}
		var spec extract.PrepareLdmpSpec
		if err := job.DecodeSpec(definition.Spec, &spec); err != nil {
			continue // Its own runs say so.
		}
		if spec.Organization != organization || spec.OperationMode != pipeline.OperationBulk {
			continue
		}
		points, err := extract.PointsBy(spec)
		if err != nil {
			continue // As above.
		}
		s.jobs = append(s.jobs, &comparison{
			ComparisonReport: ComparisonReport{Job: summary.ID}, points: points, series: map[extract.Destination]*series{},
		})
	}
	if len(s.jobs) == 0 {
		s.note("not compared with what is stored: no prepare job of the flow bulk and of this organization is there")
	}
	return s, nil
}

func (s *stored) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); len(s.notes) < maxNotes && !slices.Contains(s.notes, text) {
		s.notes = append(s.notes, text)
	}
}

// add takes the message of a row.
func (s *stored) add(ctx context.Context, message pipeline.Outgoing) error {
	for _, c := range s.jobs {
		point, ok, refused := c.points.Point(message)
		c.Rows++
		if refused != "" {
			if c.Refused++; len(c.FirstRefused) < 3 {
				c.FirstRefused = append(c.FirstRefused, job.Cut(refused, 300))
			}
		}
		if !ok {
			if refused == "" {
				c.Empty++
			}
			continue
		}
		of, known := c.series[point.Destination]
		if !known {
			of = s.open(c, point.Destination)
			if len(c.series) < 10*maxMeasurements { // Rules make few; a file can make many.
				c.series[point.Destination] = of
			}
		}
		if of == nil {
			continue
		}
		if err := of.add(ctx, point, len(message.Body)); err != nil {
			return of.mirror.Explain(of.Location, err)
		}
	}
	return nil
}

// open begins to compare a measurement; it gives nil if it is not to be.
func (s *stored) open(c *comparison, to extract.Destination) *series {
	if to.Operation != pipeline.OperationBulk {
		s.note("points of the flow %s are not compared", to.Operation)
		return nil
	}
	compared := 0
	for _, of := range c.series {
		if of != nil {
			compared++
		}
	}
	if compared == maxMeasurements {
		s.note("points are compared with %d measurements, and not with others", maxMeasurements)
		return nil
	}
	mirror, err := s.at.MirrorToRead(to.Location, "")
	if err != nil {
		s.note("not compared with what is stored: %s", err)
		return nil
	}
	config, err := mirror.Reach(s.run)
	if err != nil {
		s.note("not compared with what is stored: %s", err)
		return nil
	}
	return &series{
		MeasurementReport: MeasurementReport{
			Location: to.Location, Database: cmp.Or(mirror.Database, to.Database), Measurement: to.Measurement,
		},
		mirror: mirror, config: config, pace: s.pace,
	}
}

// end compares what is left, and makes the reports.
func (s *stored) end(ctx context.Context) error {
	for _, c := range s.jobs {
		for _, of := range c.series {
			if of == nil {
				continue
			}
			report, err := of.end(ctx)
			if err != nil {
				return of.mirror.Explain(of.Location, err)
			}
			c.Measurements = append(c.Measurements, report)
		}
		slices.SortFunc(c.Measurements, func(a, b MeasurementReport) int {
			return cmp.Or(cmp.Compare(a.Location, b.Location), cmp.Compare(a.Database, b.Database), cmp.Compare(a.Measurement, b.Measurement))
		})
		s.reports = append(s.reports, c.ComparisonReport)
	}
	return nil
}

// summary is a part of a line about all measurements.
func (s *stored) summary() string {
	text := ""
	for _, c := range s.reports {
		var all MeasurementReport
		for _, m := range c.Measurements {
			all.New += m.New
			all.Extended += m.Extended
			all.Equal += m.Equal
			all.Different += m.Different
			all.Gaps += m.Gaps
		}
		text += fmt.Sprintf("; as points of job %s: %d new, %d stored, %d that add fields, %d that overwrite values, in %d gaps",
			c.Job, all.New, all.Equal, all.Extended, all.Different, all.Gaps)
	}
	return text
}
