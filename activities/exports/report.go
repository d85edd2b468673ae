package exports

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/cadence"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const (
	// maxSeries and maxColumns bound what a report tells one by one. Names are cut after
	// maxName bytes. An output has room for 64 KiB.
	maxSeries  = 20
	maxColumns = 150
	maxName    = 60
)

// Report is the output of a run.
type Report struct {
	Bucket string `json:"bucket,omitempty"`
	// Folder is what all keys of the export begin with, and Manifest the key of the
	// manifest, the last object that is written.
	Folder   string `json:"folder,omitempty"`
	Manifest string `json:"manifest,omitempty"`
	// Link reads a text with a link to the manifest and to each part, a line each. Whoever
	// has it can read the export until LinkEnds.
	Link     string    `json:"link,omitempty"`
	LinkEnds time.Time `json:"link_ends,omitzero"`

	Series int `json:"series"`
	Parts  int `json:"parts"`
	Totals

	First time.Time `json:"first,omitzero"` // times of rows
	Last  time.Time `json:"last,omitzero"`
	// Estimates are of a dry run alone: the first twenty series, with 150 columns in all.
	Estimates []Estimate `json:"estimates,omitempty"`
	Notes     []string   `json:"notes,omitempty"`
}

// Totals count what is in the files. Those of a dry run are estimates: rows are at least as
// many as the values of a column.
type Totals struct {
	Rows   int64 `json:"rows"`
	Values int64 `json:"values"`
	Bytes  int64 `json:"bytes"`
	Gaps   int64 `json:"gaps"`
}

// Estimate tells what would be exported of a series. Whole days count.
type Estimate struct {
	Station     string           `json:"station"`
	Table       string           `json:"table"`
	Measurement string           `json:"measurement"`
	Columns     []ColumnEstimate `json:"columns"`
	Rows        int64            `json:"rows"`
	Values      int64            `json:"values"`
	First       time.Time        `json:"first,omitzero"` // the first day with values
	Last        time.Time        `json:"last,omitzero"`
	// Gaps counts times of one or more days without values; LongestGaps are at most ten.
	Gaps        int64         `json:"gaps"`
	LongestGaps []cadence.Gap `json:"longest_gaps,omitempty"`
}

// ColumnEstimate is a column of an estimate.
type ColumnEstimate struct {
	Column

	Values int64 `json:"values"`
}

// summary is one line about what is in the files.
func (e *export) summary() string {
	return fmt.Sprintf("%d values in %d rows, %d parts with %d bytes, %d gaps", e.at.Values, e.at.Rows, e.at.Parts, e.at.Bytes, e.at.Gaps)
}

func (e *export) result(message string, more func(*Report)) job.Result {
	r := Report{Series: len(e.series), Parts: e.at.Parts, Totals: e.at.Totals, Notes: e.notes}
	if !e.spec.DryRun {
		r.Bucket, r.Folder = e.Places.Exports.Bucket, e.folder
	}
	if more != nil {
		more(&r)
	}
	return job.Result{
		Message: message,
		Counts: map[string]int64{
			"series": int64(r.Series), "parts": int64(r.Parts), "rows": r.Rows, "values": r.Values, "bytes": r.Bytes, "gaps": r.Gaps,
		},
		Output: job.EncodeJSON(r),
	}
}

// estimate is a dry run: it counts the values of each day.
func (e *export) estimate(ctx context.Context) (job.Result, error) {
	var estimates []Estimate
	room := maxColumns
	for i, s := range e.series {
		one, err := e.estimateSeries(ctx, s)
		switch {
		case errors.Is(err, influx.ErrNoDatabase):
			return job.Result{}, job.Fail(errclass.ExportRefused, "database %s is gone from mirror %s of location %s", s.Database, e.mirror.Name, e.spec.Location)
		case err != nil:
			return job.Result{}, e.mirror.Explain(e.spec.Location, err)
		}
		e.at.Rows += one.Rows
		e.at.Values += one.Values
		e.at.Gaps += one.Gaps
		e.run.Checkpoint(job.Progress{Done: int64(i + 1), Total: int64(len(e.series)), Message: "series counted"}, nil)
		if len(estimates) < maxSeries {
			one.Columns = one.Columns[:min(len(one.Columns), room)]
			room -= len(one.Columns)
			estimates = append(estimates, one)
		}
	}
	e.at.Bytes = e.spec.sizeOf(e.at.Rows, e.at.Values)
	message := fmt.Sprintf("about %d values in %d rows and %d bytes, %d gaps of days; a dry run writes nothing", e.at.Values, e.at.Rows, e.at.Bytes, e.at.Gaps)
	return e.result(message, func(r *Report) {
		r.Estimates = estimates
		for _, one := range estimates {
			if r.First.IsZero() || !one.First.IsZero() && one.First.Before(r.First) {
				r.First = one.First
			}
			r.Last = later(r.Last, one.Last)
		}
	}), nil
}

func (e *export) estimateSeries(ctx context.Context, s Series) (Estimate, error) {
	cut := func(text string) string { return job.Cut(text, maxName) }
	one := Estimate{Station: cut(s.Station.Slug), Table: cut(s.Table), Measurement: cut(s.Measurement)}
	for _, c := range s.Columns {
		c.Field, c.Units = cut(c.Field), cut(c.Units)
		one.Columns = append(one.Columns, ColumnEstimate{Column: c})
	}
	r := e.newReader(s)
	before := e.spec.Start
	missing := func(from, to time.Time) {
		if to.After(from) {
			one.Gaps++
			one.LongestGaps = cadence.Longest(append(one.LongestGaps, cadence.Gap{From: from, To: to}))
		}
	}
	err := r.count(ctx, span{e.spec.Start, e.spec.End}, func(c counted) error {
		if job.Stopped(e.run) {
			return job.ErrStopped
		}
		rows := int64(0)
		for i, n := range c.values {
			if r.aggregate != "" {
				n = min(n, int64((c.To.Sub(c.From)+r.every-1)/r.every))
			}
			rows = max(rows, n)
			one.Columns[i].Values += n
			one.Values += n
		}
		one.Rows += rows
		if one.First.IsZero() {
			one.First = c.From
		}
		missing(before, c.From)
		one.Last, before = c.From, c.To
		return nil
	})
	missing(before, e.spec.End)
	return one, err
}

// sizeOf estimates the bytes of rows and values of sensors.
func (s *Spec) sizeOf(rows, values int64) int64 {
	switch {
	case s.Format == FormatParquet:
		return rows*2 + values*4
	case s.Format == FormatNetCDF:
		return rows*8 + values*8
	case s.Compression == CompressionNone:
		return rows*22 + values*7
	}
	return (rows*22 + values*7) / 4
}
