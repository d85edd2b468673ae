// Package hobo reads the text files that Onset's HOBOware and HOBOlink export.
//
// Sources: the vendor's guides ("HOBOware User's Guide", "HOBOlink Help", Download Data) say
// that there are such files, and do not define their form. The rules are those of files and
// headings that users of both have published: an optional title; the column "#" or "Line#";
// date and time in one column or two, with the offset from GMT in the heading; behind name
// and unit, serial numbers and a label in parentheses, or "(model logger:sensor)"; events as
// columns whose cells are "Logged"; comma, semicolon or tab. No file of the vendor was at
// hand.
package hobo

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
)

const format = "hobo"

// Orders of a date whose year does not come first with four digits.
const (
	OrderMDY = "mdy"
	OrderDMY = "dmy"
	OrderYMD = "ymd"
)

// event is what stands in the column of an event, such as "Host Connected".
const event = "Logged"

// Reader reads the records of a file. It implements [loggerfiles.Reader].
type Reader struct {
	layout

	lines *loggerfiles.Lines
	clock *loggerfiles.Clock
	order string
	cells []string
	kept  []string
}

// Open reads the header of a file. The zone counts where the header has none, and may be
// nil where it has one. The order of dates is mdy, dmy or ymd.
func Open(r io.Reader, zone *time.Location, order string) (*Reader, error) {
	reader := &Reader{lines: loggerfiles.NewLines(r), order: order}
	for range headerLines {
		line, at, err := reader.lines.Next()
		if refused := (*loggerfiles.Refused)(nil); errors.As(err, &refused) {
			return nil, loggerfiles.BadFormat(format, "%v", refused)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if at.Line == 1 && isTitle(line) {
			continue
		}
		var ok bool
		if reader.layout, ok = layoutOf(line); !ok {
			continue
		}
		if reader.zone == nil {
			reader.zone = zone
		}
		if reader.zone == nil {
			return nil, loggerfiles.BadFormat(format, "its header has no offset from GMT: the import has to name the time zone")
		}
		reader.clock = loggerfiles.NewClock(reader.zone)
		return reader, nil
	}
	return nil, loggerfiles.BadFormat(format, "none of its first %d lines has the heading of a time and of a value", headerLines)
}

// Looks reports whether the beginning of a file is that of an export: it has a title, or
// headings with an offset from GMT or the serial number of a logger.
func Looks(begin []byte) bool {
	lines := loggerfiles.NewLines(strings.NewReader(string(begin) + "\n"))
	for range headerLines {
		line, at, err := lines.Next()
		if err != nil {
			return false
		}
		if at.Line == 1 && isTitle(line) {
			return true
		}
		if l, ok := layoutOf(line); ok {
			return l.zone != nil || l.table.Name != ""
		}
	}
	return false
}

// Table implements [loggerfiles.Reader].
func (r *Reader) Table() *loggerfiles.Table { return &r.table }

// Next implements [loggerfiles.Reader]. A line of events alone has no values, and is
// passed over.
func (r *Reader) Next() (record loggerfiles.Record, err error) {
	for {
		line, at, err := r.lines.Next()
		if err != nil {
			return record, err
		}
		var wrong string
		if r.cells, wrong = loggerfiles.Split(line, r.delimiter, r.cells); wrong != "" {
			return record, loggerfiles.Refuse(at, line, "%s", wrong)
		}
		// HOBOware leaves out empty cells at the end of a line.
		last := r.times[len(r.times)-1]
		want := max(last, r.values[len(r.values)-1]) + 1
		if len(r.cells) <= last || len(r.cells) > want {
			return record, loggerfiles.Refuse(at, line, "it has %d cells, and the header names %d", len(r.cells), want)
		}
		r.kept = r.kept[:0]
		empty := true
		for _, place := range r.values {
			value := ""
			if place < len(r.cells) {
				value = strings.TrimSpace(r.cells[place])
			}
			if value == event {
				value = ""
			}
			if r.delimiter == ';' {
				value = loggerfiles.DecimalPoint(value)
			}
			empty = empty && value == ""
			r.kept = append(r.kept, value)
		}
		if empty {
			continue
		}
		text := strings.TrimSpace(r.cells[r.times[0]])
		if len(r.times) > 1 {
			text += " " + strings.TrimSpace(r.cells[r.times[1]])
		}
		shown, err := parseTime(text, r.order)
		if err == nil {
			record.Time, err = r.clock.At(shown)
		}
		if err != nil {
			return record, loggerfiles.Refuse(at, line, "%v", err)
		}
		record.Position, record.Values = at, r.kept
		return record, nil
	}
}

// parseTime reads a date and a time: 07/29/16 10:26:34 AM, 2016-07-29 10:26:34.0.
func parseTime(text, order string) (time.Time, error) {
	bad := func() (time.Time, error) {
		return time.Time{}, fmt.Errorf("the time %.60q is not a date in the order %s and a time", text, order)
	}
	parts := strings.Fields(text)
	if len(parts) < 2 || len(parts) > 3 {
		return bad()
	}
	date := strings.FieldsFunc(parts[0], func(char rune) bool { return strings.ContainsRune("/-.", char) })
	clock := strings.Split(parts[1], ":")
	if len(date) != 3 || len(clock) < 2 || len(clock) > 3 {
		return bad()
	}
	numbers := make([]int, 0, 5)
	for _, digits := range []string{date[0], date[1], date[2], clock[0], clock[1]} {
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || len(digits) > 4 {
			return bad()
		}
		numbers = append(numbers, int(n))
	}
	year, month, day := numbers[0], numbers[1], numbers[2]
	switch {
	case len(date[0]) == 4, order == OrderYMD:
	case order == OrderDMY:
		year, month, day = numbers[2], numbers[1], numbers[0]
	default:
		year, month, day = numbers[2], numbers[0], numbers[1]
	}
	if year < 100 {
		year = loggerfiles.FullYear(year)
	}
	hour, nanoseconds := numbers[3], time.Duration(0)
	if len(clock) == 3 {
		seconds, err := time.ParseDuration(clock[2] + "s")
		if err != nil || seconds < 0 || seconds >= time.Minute {
			return bad()
		}
		nanoseconds = seconds
	}
	if len(parts) == 3 {
		half := strings.ToUpper(strings.ReplaceAll(parts[2], ".", ""))
		if hour < 1 || hour > 12 || (half != "AM" && half != "PM") {
			return bad()
		}
		if hour %= 12; half == "PM" {
			hour += 12
		}
	}
	at := time.Date(year, time.Month(month), day, hour, numbers[4], 0, 0, time.UTC)
	if at.Month() != time.Month(month) || at.Day() != day || at.Hour() != hour || at.Minute() != numbers[4] {
		return bad()
	}
	return at.Add(nanoseconds), nil
}
