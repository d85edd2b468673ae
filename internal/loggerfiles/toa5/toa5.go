// Package toa5 reads TOA5 files, the text that LoggerNet and Campbell Scientific's data
// loggers write.
//
// Sources: LoggerNet manual, "Campbell Scientific File Formats", TOA5 (appendix B.1 in
// print): four header lines and what they hold, with the optional columns TIMESTAMP and
// RECORD. CR3000 manual, 2.4.2: an example. CardConvert's option "Midnight is 2400" gives
// the hour 24.
package toa5

import (
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
)

const format = "toa5"

// Reader reads the records of a file. It implements [loggerfiles.Reader].
type Reader struct {
	lines *loggerfiles.Lines
	clock *loggerfiles.Clock
	table *loggerfiles.Table
	cells []string

	at, number int // the places of TIMESTAMP and RECORD among the cells; -1 for none
}

// Open reads the header of a file whose clock is in a zone.
func Open(r io.Reader, zone *time.Location) (*Reader, error) {
	reader := &Reader{lines: loggerfiles.NewLines(r), clock: loggerfiles.NewClock(zone)}
	line, _, err := reader.lines.Next()
	if err != nil {
		return nil, missing(1, err)
	}
	return reader, reader.header(line)
}

// missing is the error of a header line that there is not.
func missing(number int, err error) error {
	if refused := (*loggerfiles.Refused)(nil); errors.As(err, &refused) {
		return loggerfiles.BadFormat(format, "header line %d: %s", number, refused.Reason)
	}
	if errors.Is(err, io.EOF) {
		return loggerfiles.BadFormat(format, "it ends before header line %d", number)
	}
	return err
}

// header reads the four lines of a header, the first of which is given.
func (r *Reader) header(first []byte) error {
	var lines [4][]string
	for i := range lines {
		line := first
		if i > 0 {
			var err error
			if line, _, err = r.lines.Next(); err != nil {
				return missing(i+1, err)
			}
		}
		cells, wrong := loggerfiles.Split(line, ',', nil)
		if wrong != "" {
			return loggerfiles.BadFormat(format, "header line %d: %s", i+1, wrong)
		}
		lines[i] = cells
	}
	environment, names, units, processes := lines[0], lines[1], lines[2], lines[3]
	if environment[0] != "TOA5" || len(environment) < 8 {
		return loggerfiles.BadFormat(format, "its first line is not of eight cells, of which the first is TOA5")
	}
	if len(units) != len(names) || len(processes) != len(names) {
		return loggerfiles.BadFormat(format, "its header has %d names, %d units and %d processes", len(names), len(units), len(processes))
	}
	r.table = &loggerfiles.Table{Format: format, Station: environment[1], Name: environment[7]}
	r.at, r.number = -1, -1
	for i, name := range names {
		switch {
		case name == "TIMESTAMP" && r.at < 0:
			r.at = i
		case name == "RECORD" && r.number < 0:
			r.number = i
		default:
			r.table.Columns = append(r.table.Columns, loggerfiles.Column{Name: name, Units: units[i], Process: processes[i]})
		}
	}
	if r.at < 0 {
		return loggerfiles.BadFormat(format, "it has no column TIMESTAMP")
	}
	return nil
}

// Table implements [loggerfiles.Reader]. It changes where another header follows, as in
// files that were put together.
func (r *Reader) Table() *loggerfiles.Table { return r.table }

// Next implements [loggerfiles.Reader].
func (r *Reader) Next() (record loggerfiles.Record, err error) {
	line, at, err := r.lines.Next()
	if err != nil {
		return record, err
	}
	refuse := func(reason string, args ...any) (loggerfiles.Record, error) {
		return record, loggerfiles.Refuse(at, line, reason, args...)
	}
	var wrong string
	if r.cells, wrong = loggerfiles.Split(line, ',', r.cells); wrong != "" {
		return refuse("%s", wrong)
	}
	if r.cells[0] == "TOA5" {
		if err := r.header(line); err != nil {
			return record, err
		}
		return r.Next()
	}
	values := r.table.Columns
	if want := len(values) + 1 + min(1, r.number+1); len(r.cells) != want {
		return refuse("it has %d cells, and the header names %d", len(r.cells), want)
	}
	shown, err := loggerfiles.Timestamp(r.cells[r.at])
	if err != nil {
		return refuse("%v", err)
	}
	record.Position = at
	if record.Numbered = r.number >= 0; record.Numbered {
		if record.Number, err = strconv.ParseInt(r.cells[r.number], 10, 64); err != nil || record.Number < 0 {
			return refuse("the record number %.40q is none", r.cells[r.number])
		}
	}
	if record.Time, err = r.clock.At(shown); err != nil {
		return refuse("%v", err)
	}
	kept := r.cells[:0]
	for i, cell := range r.cells {
		if i != r.at && i != r.number {
			kept = append(kept, cell)
		}
	}
	record.Values = kept
	return record, nil
}
