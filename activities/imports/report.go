package imports

import (
	"time"

	"github.com/dendrascience/dendra-jobs/internal/cadence"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
	"github.com/dendrascience/dendra-jobs/job"
)

const (
	// maxFiles, maxLines and maxColumns bound what a report tells one by one. Names are
	// cut after maxName bytes. An output has room for 64 KiB.
	maxFiles   = 10
	maxLines   = 10
	maxColumns = 150
	maxName    = 60
)

// Report is the output of a run.
type Report struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	ETag   string `json:"etag"`
	Bytes  int64  `json:"bytes"`
	// ImportedBy is the run that imported this file by this spec before, if one did.
	ImportedBy string `json:"imported_by,omitempty"`

	Totals

	// FirstRefused are the first lines that were refused, at most ten.
	FirstRefused []RefusedLine `json:"first_refused,omitempty"`
	// Files are the first ten files, of a dry run alone, with 150 columns in all.
	Files []FileReport `json:"files,omitempty"`
	// Compared says, of a dry run alone, how the files differ from what is stored, for each job
	// that would prepare their messages. Notes say what is not compared, and why.
	Compared []ComparisonReport `json:"compared,omitempty"`
	Notes    []string           `json:"notes,omitempty"`
}

// Totals count the rows of an object. Rows are Stored, Repeated, Refused or, of a dry run, neither.
type Totals struct {
	Files int64 `json:"files"`
	Rows  int64 `json:"rows"`
	// Stored are new in the stream, and Repeated were there, by their content, within the
	// last two minutes: an attempt that went on after another one finds some of its rows.
	Stored   int64 `json:"stored"`
	Repeated int64 `json:"repeated"`
	Refused  int64 `json:"refused"`
	// First and Last are the earliest and the latest time of a row.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

// RefusedLine is a line or frame that is no record.
type RefusedLine struct {
	File   string `json:"file,omitempty"` // in a zip
	Line   int64  `json:"line,omitempty"` // counts from 1; 0 in binary files
	Offset int64  `json:"offset"`         // bytes in the uncompressed file
	Reason string `json:"reason"`
}

// FileReport tells what is in a file.
type FileReport struct {
	File    string         `json:"file,omitempty"` // in a zip
	Format  string         `json:"format"`
	Station string         `json:"station,omitempty"` // as the file names it
	Table   string         `json:"table"`
	Columns []ColumnReport `json:"columns"`
	Rows    int64          `json:"rows"`
	Refused int64          `json:"refused"`
	First   time.Time      `json:"first,omitzero"`
	Last    time.Time      `json:"last,omitzero"`
	cadence.Report
}

// ColumnReport is a column, and the field that it becomes.
type ColumnReport struct {
	Column string `json:"column"`
	Field  string `json:"field"`
	Units  string `json:"units,omitempty"`
	Type   string `json:"type,omitempty"`
}

// span widens First and Last to a time.
func span(first, last *time.Time, at time.Time) {
	at = at.UTC()
	if first.IsZero() || at.Before(*first) {
		*first = at
	}
	if at.After(*last) {
		*last = at
	}
}

// look gathers the report of a file.
type look struct {
	FileReport

	steps cadence.Steps
}

// newLook begins the report of a file. It lists no more columns than there is room for.
func newLook(file string, table *loggerfiles.Table, name string, fields []field, room int) *look {
	cut := func(text string) string { return job.Cut(text, maxName) }
	l := &look{
		FileReport: FileReport{File: cut(file), Format: table.Format, Station: cut(table.Station), Table: cut(name)},
	}
	for _, f := range fields[:min(len(fields), room)] {
		l.Columns = append(l.Columns, ColumnReport{Column: cut(table.Columns[f.place].Name), Field: cut(f.Name), Units: cut(f.Units), Type: f.Type})
	}
	return l
}

// row takes a row into account.
func (l *look) row(at time.Time) {
	l.Rows++
	span(&l.First, &l.Last, at)
	l.steps.Add(at)
}

// report finishes the report.
func (l *look) report() FileReport {
	l.Report = l.steps.Report()
	return l.FileReport
}
