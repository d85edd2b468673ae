// Package plaincsv reads delimited text by a declared mapping. Cells are quoted as in
// RFC 4180, section 2; times are in the notation of strftime (POSIX.1-2017, strptime).
package plaincsv

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
)

const format = "csv"

// Mapping says how a file is to be read.
type Mapping struct {
	// Delimiter is between cells.
	Delimiter byte
	// Skip is how many lines that are not empty come before the headings, or before the
	// first record.
	Skip int
	// Headings says that a line names the columns. Without it they are named 1, 2, 3 …
	Headings bool
	// Time names the columns that make the time, which are joined by a space.
	Time []string
	// TimeFormat is their form: %Y-%m-%d %H:%M:%S.
	TimeFormat string
	// Zone is that of the file's clock. A time with %z or %s needs none.
	Zone *time.Location
	// Missing are texts that stand for no value.
	Missing []string
	// DecimalComma says that numbers have a comma before their decimals.
	DecimalComma bool
}

// Reader reads the records of a file. It implements [loggerfiles.Reader].
type Reader struct {
	mapping Mapping
	lines   *loggerfiles.Lines
	clock   *loggerfiles.Clock
	form    timeFormat
	table   loggerfiles.Table
	count   int   // of the cells of a line; 0 before the first without headings
	times   []int // places of the parts of the time
	cells   []string
	kept    []string
	first   *loggerfiles.Position // of the line in cells, which is still to be given
	line    []byte
}

// CheckTime reports a time format that cannot be read, or one that needs a zone without one.
func CheckTime(format string, zone bool) error {
	form, err := parseFormat(format)
	if err == nil && !form.moment && !zone {
		err = errors.New("the times need a time zone: they have neither %z nor %s")
	}
	return err
}

// Open reads the header of a file.
func Open(r io.Reader, mapping Mapping) (*Reader, error) {
	if err := CheckTime(mapping.TimeFormat, mapping.Zone != nil); err != nil {
		return nil, loggerfiles.BadFormat(format, "time format %q: %v", mapping.TimeFormat, err)
	}
	reader := &Reader{mapping: mapping, lines: loggerfiles.NewLines(r), table: loggerfiles.Table{Format: format}}
	reader.form, _ = parseFormat(mapping.TimeFormat)
	if mapping.Zone != nil {
		reader.clock = loggerfiles.NewClock(mapping.Zone)
	}
	for skipped := 0; ; skipped++ {
		line, at, err := reader.lines.Next()
		refused := (*loggerfiles.Refused)(nil)
		switch {
		case errors.Is(err, io.EOF):
			return nil, loggerfiles.BadFormat(format, "it ends before its first record")
		case errors.As(err, &refused) && skipped < mapping.Skip:
			continue
		case errors.As(err, &refused):
			return nil, loggerfiles.BadFormat(format, "%v", refused)
		case err != nil:
			return nil, err
		case skipped < mapping.Skip:
			continue
		}
		cells, wrong := loggerfiles.Split(line, mapping.Delimiter, nil)
		if wrong != "" {
			return nil, loggerfiles.BadFormat(format, "%s: %s", at, wrong)
		}
		if !mapping.Headings {
			reader.cells, reader.first, reader.line = slices.Clone(cells), &at, line
			for i := range cells {
				cells[i] = fmt.Sprint(i + 1)
			}
		}
		return reader, reader.columns(cells)
	}
}

// columns finds the columns of the time among headings.
func (r *Reader) columns(headings []string) error {
	r.count = len(headings)
	for i := range headings {
		headings[i] = strings.TrimSpace(headings[i])
	}
	for _, name := range r.mapping.Time {
		place := slices.Index(headings, name)
		if place < 0 {
			return loggerfiles.BadFormat(format, "it has no column %q; it has %.300q", name, headings)
		}
		r.times = append(r.times, place)
	}
	for i, name := range headings {
		if !slices.Contains(r.times, i) {
			r.table.Columns = append(r.table.Columns, loggerfiles.Column{Name: name})
		}
	}
	if len(r.table.Columns) == 0 {
		return loggerfiles.BadFormat(format, "it has no column beside its time")
	}
	return nil
}

// Table implements [loggerfiles.Reader].
func (r *Reader) Table() *loggerfiles.Table { return &r.table }

// Next implements [loggerfiles.Reader].
func (r *Reader) Next() (record loggerfiles.Record, err error) {
	line := r.line
	if r.first != nil {
		record.Position, r.first = *r.first, nil
	} else {
		if line, record.Position, err = r.lines.Next(); err != nil {
			return record, err
		}
		var wrong string
		if r.cells, wrong = loggerfiles.Split(line, r.mapping.Delimiter, r.cells); wrong != "" {
			return record, loggerfiles.Refuse(record.Position, line, "%s", wrong)
		}
	}
	if len(r.cells) != r.count {
		return record, loggerfiles.Refuse(record.Position, line, "it has %d cells, and the first line has %d", len(r.cells), r.count)
	}
	record.Time, err = r.time()
	if err != nil {
		return record, loggerfiles.Refuse(record.Position, line, "%v", err)
	}
	r.kept = r.kept[:0]
	for i, cell := range r.cells {
		if slices.Contains(r.times, i) {
			continue
		}
		cell = strings.TrimSpace(cell)
		switch {
		case slices.Contains(r.mapping.Missing, cell):
			cell = ""
		case r.mapping.DecimalComma:
			cell = loggerfiles.DecimalPoint(cell)
		}
		r.kept = append(r.kept, cell)
	}
	record.Values = r.kept
	return record, nil
}

// time reads the time of the line in cells.
func (r *Reader) time() (time.Time, error) {
	text := strings.TrimSpace(r.cells[r.times[0]])
	for _, place := range r.times[1:] {
		text += " " + strings.TrimSpace(r.cells[place])
	}
	at, err := r.form.parse(text)
	if err != nil || r.form.moment {
		return at, err
	}
	return r.clock.At(at)
}
