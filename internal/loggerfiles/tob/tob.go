// Package tob reads TOB1 and TOB3 files, the binary files of Campbell Scientific's data
// loggers and of LoggerNet.
//
// Sources: LoggerNet manual, "Campbell Scientific File Formats", TOB1 (appendix B.1 in
// print), TOB2 or TOB3 (B.2.1) and Binary Data Value Types (B.3): headers, frames and
// data types. CR1000 manual, appendix E "FP2 Data Format" and "Endianness". CR3000
// manual, 2.4.4: frames within a frame. What these manuals leave open is as in the
// published source of the vendor's CSI library, Csi.Tob2 and CsiTypes: the bits of a
// frame's footer, the order of bytes of each type, the words of intervals and
// resolutions, and the FP2 words of infinities and of no number.
//
// A frame is 12 bytes of header (seconds since 1990, parts of a second, number of the
// first record; each four bytes, little-endian), records, and a footer of four bytes.
// The footer's bits are: 0 to 11 the size of a minor frame, 12 file mark, 13 removed
// mark, 14 empty, 15 minor, 16 to 31 the validation stamp. That is the file's stamp or
// its complement. A frame with the minor bit is made of minor frames, each with a header and
// a footer, which are found from its end backwards.
//
// No file of a logger was at hand: the tests' files are written from these sources.
package tob

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
)

const (
	frameHeader = 12
	frameFooter = 4
)

// maxTime is the latest time of a record, from 1990 on. Times of frame headers end in 2126.
const maxTime = 200 * 366 * 24 * time.Hour

// Bits of a frame's footer.
const (
	sizeMask  = 0x00000FFF
	emptyFlag = 0x00004000
	minorFlag = 0x00008000
)

// Reader reads the records of a file. It implements [loggerfiles.Reader].
type Reader struct {
	from    *bufio.Reader
	clock   *loggerfiles.Clock
	table   loggerfiles.Table
	fields  []dataType
	row     int   // bytes of a record
	offset  int64 // of what is read next
	buffer  []byte
	values  []string
	done    error
	rows    []minor // TOB3: what is left of the frame in buffer
	refused []*loggerfiles.Refused

	frames frames // of TOB3

	seconds, nanoseconds, number int // TOB1: places in a row, -1 for none
}

// Open reads the header of a file whose clock is in a zone.
func Open(r io.Reader, zone *time.Location) (*Reader, error) {
	reader := &Reader{from: bufio.NewReaderSize(r, loggerfiles.MaxLine), clock: loggerfiles.NewClock(zone)}
	h := &header{from: reader.from, format: formatTOB3}
	environment := h.next()
	if h.err != nil {
		return nil, h.err
	}
	var err error
	switch environment[0] {
	case "TOB1":
		err = reader.openTOB1(h, environment)
	case "TOB3":
		err = reader.openTOB3(h, environment)
	default:
		return nil, loggerfiles.BadFormat("tob", "its first cell is %.20q, neither TOB1 nor TOB3", environment[0])
	}
	if err != nil {
		return nil, err
	}
	reader.offset = h.offset
	return reader, nil
}

func (r *Reader) openTOB1(h *header, environment []string) error {
	h.format = formatTOB1
	if len(environment) < 8 {
		return loggerfiles.BadFormat(formatTOB1, "its first line has %d cells, and there are eight", len(environment))
	}
	columns, fields, err := h.columns()
	if err != nil {
		return err
	}
	r.table = loggerfiles.Table{Format: formatTOB1, Station: environment[1], Name: environment[7]}
	r.seconds, r.nanoseconds, r.number = -1, -1, -1
	for i, column := range columns {
		place := map[string]*int{"SECONDS": &r.seconds, "NANOSECONDS": &r.nanoseconds, "RECORD": &r.number}[column.Name]
		if place != nil && *place < 0 {
			if fields[i].size != 4 {
				return loggerfiles.BadFormat(formatTOB1, "the column %s does not have four bytes", column.Name)
			}
			*place = r.row
			fields[i].text = nil // no value of its own
		} else {
			r.table.Columns = append(r.table.Columns, column)
		}
		r.row += fields[i].size
	}
	if r.seconds < 0 {
		return loggerfiles.BadFormat(formatTOB1, "it has no column SECONDS, so its records have no times")
	}
	r.fields = fields
	r.buffer = make([]byte, r.row)
	return nil
}

func (r *Reader) openTOB3(h *header, environment []string) error {
	decode := h.next()
	if h.err != nil {
		return h.err
	}
	if len(environment) < 2 {
		return loggerfiles.BadFormat(formatTOB3, "its first line names no station")
	}
	var err error
	if r.frames, err = framesOf(decode); err != nil {
		return err
	}
	r.table = loggerfiles.Table{Format: formatTOB3, Station: environment[1], Name: decode[0]}
	if r.table.Columns, r.fields, err = h.columns(); err != nil {
		return err
	}
	for _, field := range r.fields {
		r.row += field.size
	}
	if r.row > r.frames.size-frameHeader-frameFooter {
		return loggerfiles.BadFormat(formatTOB3, "a record of %d bytes does not fit into a frame of %d", r.row, r.frames.size)
	}
	r.buffer = make([]byte, r.frames.size)
	return nil
}

// Table implements [loggerfiles.Reader].
func (r *Reader) Table() *loggerfiles.Table { return &r.table }

// Next implements [loggerfiles.Reader].
func (r *Reader) Next() (loggerfiles.Record, error) {
	if r.table.Format == formatTOB1 {
		return r.nextTOB1()
	}
	for {
		switch {
		case len(r.rows) > 0:
			if record, err := r.nextOfFrame(); err != nil || record.Values != nil {
				return record, err
			}
			continue
		case len(r.refused) > 0:
			refused := r.refused[0]
			r.refused = r.refused[1:]
			return loggerfiles.Record{}, refused
		}
		at, err := r.fill()
		if err != nil {
			return loggerfiles.Record{}, err
		}
		r.rows, r.refused = r.split(at)
	}
}

// fill reads the next row or frame into the buffer. One that is cut is refused.
func (r *Reader) fill() (loggerfiles.Position, error) {
	at := loggerfiles.Position{Offset: r.offset}
	if r.done != nil {
		return at, r.done
	}
	n, err := io.ReadFull(r.from, r.buffer)
	r.offset += int64(n)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		r.done = io.EOF
		return at, loggerfiles.Refuse(at, r.buffer[:n], "the file ends within a row or frame of %d bytes", len(r.buffer))
	}
	r.done = err
	return at, err
}

func (r *Reader) nextTOB1() (record loggerfiles.Record, err error) {
	if record.Position, err = r.fill(); err != nil {
		return record, err
	}
	// These three are little-endian, whatever type the header gives them.
	shown := time.Duration(little.Uint32(r.buffer[r.seconds:])) * time.Second
	if r.nanoseconds >= 0 {
		part := time.Duration(little.Uint32(r.buffer[r.nanoseconds:]))
		if part >= time.Second {
			return record, loggerfiles.Refuse(record.Position, r.buffer, "%d nanoseconds are a second or more", part)
		}
		shown += part
	}
	if record.Numbered = r.number >= 0; record.Numbered {
		record.Number = int64(little.Uint32(r.buffer[r.number:]))
	}
	return r.finish(record, shown, r.buffer)
}

// finish gives a record its time and values.
func (r *Reader) finish(record loggerfiles.Record, shown time.Duration, row []byte) (loggerfiles.Record, error) {
	at, err := r.clock.At(epoch.Add(shown))
	if err != nil {
		return record, loggerfiles.Refuse(record.Position, row, "%v", err)
	}
	record.Time = at
	r.values = r.values[:0]
	for _, field := range r.fields {
		if field.text != nil {
			r.values = append(r.values, field.text(row[:field.size]))
		}
		row = row[field.size:]
	}
	record.Values = r.values
	return record, nil
}

// minor is a frame, or one within a frame, whose records are still to be given.
type minor struct {
	loggerfiles.Position

	first uint32 // number of the first record
	time  time.Duration
	rows  []byte
	given int
}

// nextOfFrame gives the next record of the frame in the buffer; without values if that
// is at its end.
func (r *Reader) nextOfFrame() (record loggerfiles.Record, err error) {
	m := &r.rows[0]
	begin := m.given * r.row
	if begin+r.row > len(m.rows) {
		r.rows = r.rows[1:]
		return record, nil
	}
	if m.given == 1 && r.frames.interval == 0 {
		rest := m.rows[begin:]
		at := loggerfiles.Position{Offset: m.Offset + int64(begin)}
		r.rows = r.rows[1:]
		return record, loggerfiles.Refuse(at, rest, "the table has no record interval, so only the first record of a frame has a time")
	}
	record.Offset = m.Offset + int64(begin)
	record.Numbered, record.Number = true, int64(m.first+uint32(m.given))
	if m.given > 0 && r.frames.interval > (maxTime-m.time)/time.Duration(m.given) {
		r.rows = r.rows[1:]
		return record, loggerfiles.Refuse(record.Position, m.rows[begin:], "the time of a record is after the year 2190")
	}
	shown := m.time + time.Duration(m.given)*r.frames.interval
	m.given++
	if record, err = r.finish(record, shown, m.rows[begin:begin+r.row]); err == nil && record.Values == nil {
		record.Values = []string{}
	}
	return record, err
}

// split finds what has records in the frame in the buffer, and what of it is refused.
func (r *Reader) split(at loggerfiles.Position) (found []minor, refused []*loggerfiles.Refused) {
	frame := r.buffer
	refuse := func(raw []byte, reason string, args ...any) {
		refused = append(refused, loggerfiles.Refuse(at, raw, reason, args...))
	}
	open := func(begin, end int, footer uint32) {
		if footer&emptyFlag != 0 {
			return
		}
		part := frame[begin:end]
		fraction := time.Duration(little.Uint32(part[4:])) * r.frames.resolution
		if fraction >= time.Second {
			refuse(part, "the parts of a second in a frame's time make a second or more")
			return
		}
		found = append(found, minor{
			Position: loggerfiles.Position{Offset: at.Offset + int64(begin) + frameHeader},
			first:    little.Uint32(part[8:]),
			time:     time.Duration(little.Uint32(part))*time.Second + fraction,
			rows:     part[frameHeader : len(part)-frameFooter],
		})
	}
	footer := little.Uint32(frame[len(frame)-frameFooter:])
	switch {
	case !bytes.ContainsFunc(frame, func(char rune) bool { return char != 0 }): // room that was never written
	case !r.stamped(footer):
		refuse(frame, "the frame's validation stamp %d is neither %d, that of the file, nor its complement", footer>>16, r.frames.stamp)
	case footer&minorFlag == 0:
		open(0, len(frame), footer)
	default:
		for end := len(frame); end > 0; {
			footer, size := uint32(0), 0
			if end >= frameFooter {
				footer = little.Uint32(frame[end-frameFooter : end])
				size = int(footer & sizeMask)
			}
			if size < frameHeader+frameFooter || size > end || footer&minorFlag == 0 || !r.stamped(footer) {
				refuse(frame[:end], "%d bytes of a frame are no minor frame", end)
				break
			}
			open(end-size, end, footer)
			end -= size
		}
		slices.Reverse(found)
	}
	return found, refused
}

// stamped reports whether a footer has the validation stamp of the file.
func (r *Reader) stamped(footer uint32) bool {
	stamp := uint16(footer >> 16)
	return stamp == r.frames.stamp || stamp == ^r.frames.stamp
}
