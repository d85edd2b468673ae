package imports

import (
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
	"github.com/dendrascience/dendra-jobs/job"
)

const (
	// maxFiles, maxLines and maxColumns bound what a report tells one by one, and maxGaps
	// the gaps of a file. Names are cut after maxName bytes. An output has room for 64 KiB.
	maxFiles   = 10
	maxLines   = 10
	maxColumns = 150
	maxGaps    = 10
	maxName    = 60
	// maxSteps bounds the different steps of time that are counted.
	maxSteps = 10_000
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
}

// Totals count the rows of an object. Rows are Stored, Repeated, Refused or, of a dry run, neither.
type Totals struct {
	Files int64 `json:"files"`
	Rows  int64 `json:"rows"`
	// Stored are new in the stream, and Repeated were there, by their content, within the
	// last ten minutes: an attempt that went on after another one finds some of its rows.
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
	// Cadence is the most frequent time from a row to the next, in seconds.
	Cadence float64 `json:"cadence_seconds,omitempty"`
	// Duplicates have the time of the row before, OutOfOrder an earlier one.
	Duplicates int64 `json:"duplicates"`
	OutOfOrder int64 `json:"out_of_order"`
	// Gaps counts where the next row is more than one and a half cadences later;
	// LongestGaps are at most ten of them.
	Gaps        int64 `json:"gaps"`
	LongestGaps []Gap `json:"longest_gaps,omitempty"`
}

// ColumnReport is a column, and the field that it becomes.
type ColumnReport struct {
	Column string `json:"column"`
	Field  string `json:"field"`
	Units  string `json:"units,omitempty"`
	Type   string `json:"type,omitempty"`
}

// Gap is a time without rows.
type Gap struct {
	From time.Time `json:"from"` // the row before
	To   time.Time `json:"to"`   // the row after
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

	before time.Time
	steps  map[time.Duration]int64
	gaps   []Gap // the longest, the longest first
}

// newLook begins the report of a file. It lists no more columns than there is room for.
func newLook(file string, table *loggerfiles.Table, name string, fields []field, room int) *look {
	cut := func(text string) string { return job.Cut(text, maxName) }
	l := &look{
		FileReport: FileReport{File: cut(file), Format: table.Format, Station: cut(table.Station), Table: cut(name)},
		steps:      map[time.Duration]int64{},
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
	before := l.before
	l.before = at
	if before.IsZero() {
		return
	}
	step := at.Sub(before)
	switch {
	case step == 0:
		l.Duplicates++
		return
	case step < 0:
		l.OutOfOrder++
		return
	}
	if _, known := l.steps[step]; known || len(l.steps) < maxSteps {
		l.steps[step]++
	}
	if len(l.gaps) < maxGaps || step > l.gaps[len(l.gaps)-1].length() {
		place, _ := slices.BinarySearchFunc(l.gaps, step, func(g Gap, s time.Duration) int { return int(max(-1, min(1, s-g.length()))) })
		l.gaps = slices.Insert(l.gaps, place, Gap{From: before.UTC(), To: at.UTC()})
		l.gaps = l.gaps[:min(len(l.gaps), maxGaps)]
	}
}

func (g Gap) length() time.Duration { return g.To.Sub(g.From) }

// report finishes the report.
func (l *look) report() FileReport {
	var cadence time.Duration
	for step, count := range l.steps {
		if count > l.steps[cadence] || (count == l.steps[cadence] && step < cadence) {
			cadence = step
		}
	}
	l.Cadence = cadence.Seconds()
	for step, count := range l.steps {
		if step > cadence+cadence/2 {
			l.Gaps += count
		}
	}
	for _, gap := range l.gaps {
		if gap.length() > cadence+cadence/2 {
			l.LongestGaps = append(l.LongestGaps, gap)
		}
	}
	return l.FileReport
}
