package tob

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
)

const (
	formatTOB1 = "tob1"
	formatTOB3 = "tob3"

	// maxRow bounds the bytes of a row or a frame. Loggers write frames of about 1 KiB.
	maxRow = 64 << 10
)

// header reads the lines of text before the binary part.
type header struct {
	from   *bufio.Reader
	format string
	line   int
	offset int64
	err    error
}

// next is the next line of cells.
func (h *header) next() []string {
	if h.err != nil {
		return nil
	}
	h.line++
	line, err := h.from.ReadSlice('\n')
	h.offset += int64(len(line))
	switch {
	case errors.Is(err, io.EOF):
		h.err = loggerfiles.BadFormat(h.format, "it ends before header line %d", h.line)
		return nil
	case errors.Is(err, bufio.ErrBufferFull):
		h.err = loggerfiles.BadFormat(h.format, "header line %d has more than %d bytes", h.line, h.from.Size())
		return nil
	case err != nil:
		h.err = err
		return nil
	}
	line = bytes.TrimRight(line, "\r\n")
	cells, wrong := loggerfiles.Split([]byte(text(line)), ',', nil)
	if wrong != "" {
		h.err = loggerfiles.BadFormat(h.format, "header line %d: %s", h.line, wrong)
	}
	return cells
}

// columns reads the lines with names, units, processes and data types.
func (h *header) columns() (columns []loggerfiles.Column, fields []dataType, err error) {
	names, units, processes, declared := h.next(), h.next(), h.next(), h.next()
	if h.err != nil {
		return nil, nil, h.err
	}
	if len(units) != len(names) || len(processes) != len(names) || len(declared) != len(names) {
		return nil, nil, loggerfiles.BadFormat(h.format, "its header has %d names, %d units, %d processes and %d data types",
			len(names), len(units), len(processes), len(declared))
	}
	size := 0
	for i, name := range names {
		field, err := typeOf(declared[i])
		if err != nil {
			return nil, nil, loggerfiles.BadFormat(h.format, "column %.60q: %v", name, err)
		}
		if size += field.size; size > maxRow {
			return nil, nil, loggerfiles.BadFormat(h.format, "a row has more than %d bytes", maxRow)
		}
		fields = append(fields, field)
		columns = append(columns, loggerfiles.Column{Name: name, Units: units[i], Process: processes[i], Type: field.xsd})
	}
	return columns, fields, nil
}

// frames is what the second line of a TOB3 header says.
type frames struct {
	interval   time.Duration // between the records of a frame
	size       int           // of a frame
	stamp      uint16
	resolution time.Duration // of the parts of a second in frame headers
}

var (
	intervalPattern   = regexp.MustCompile(`^(\d{1,9}) *([A-Z]*)$`)
	resolutionPattern = regexp.MustCompile(`^Sec(\d{0,9})(Msec|Usec|NSec)$`)

	intervalUnits = map[string]time.Duration{
		"": time.Nanosecond, "NSEC": time.Nanosecond, "USEC": time.Microsecond, "MSEC": time.Millisecond,
		"SEC": time.Second, "MIN": time.Minute, "HR": time.Hour, "DAY": 24 * time.Hour,
	}
	resolutionUnits = map[string]time.Duration{"NSec": time.Nanosecond, "Usec": time.Microsecond, "Msec": time.Millisecond}
)

// framesOf reads the second line of a TOB3 header.
func framesOf(cells []string) (f frames, err error) {
	bad := func(what, cell string) (frames, error) {
		return f, loggerfiles.BadFormat(formatTOB3, "the %s %.40q of its header is none", what, cell)
	}
	if len(cells) < 6 {
		return f, loggerfiles.BadFormat(formatTOB3, "its second line has %d cells, and there are six at least", len(cells))
	}
	match := intervalPattern.FindStringSubmatch(cells[1])
	if match == nil || intervalUnits[match[2]] == 0 {
		return bad("record interval", cells[1])
	}
	count, _ := strconv.ParseInt(match[1], 10, 64) // nine digits
	if f.interval = time.Duration(count) * intervalUnits[match[2]]; f.interval > 366*24*time.Hour || f.interval/intervalUnits[match[2]] != time.Duration(count) {
		return bad("record interval", cells[1])
	}
	if f.size, err = strconv.Atoi(cells[2]); err != nil || f.size < frameHeader+frameFooter || f.size > maxRow {
		return bad("frame size", cells[2])
	}
	stamp, err := strconv.ParseUint(cells[4], 10, 16)
	if err != nil {
		return bad("validation stamp", cells[4])
	}
	f.stamp = uint16(stamp)
	match = resolutionPattern.FindStringSubmatch(cells[5])
	if match == nil || (match[1] == "" && match[2] != "Msec") {
		return bad("frame time resolution", cells[5])
	}
	factor := int64(1)
	if match[1] != "" {
		factor, _ = strconv.ParseInt(match[1], 10, 64)
	}
	if f.resolution = time.Duration(factor) * resolutionUnits[match[2]]; f.resolution <= 0 || f.resolution > time.Second {
		return bad("frame time resolution", cells[5])
	}
	return f, nil
}
