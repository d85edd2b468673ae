package loggerfiles

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxLine is the most bytes of a line. Of a longer one the beginning is refused.
const MaxLine = 256 << 10

// Lines reads lines of text.
type Lines struct {
	from *bufio.Reader
	next Position
}

// NewLines reads lines, without the mark that some files of UTF-8 begin with.
func NewLines(r io.Reader) *Lines {
	l := &Lines{from: bufio.NewReaderSize(r, MaxLine), next: Position{Line: 1}}
	const mark = "\ufeff"
	if begin, err := l.from.Peek(len(mark)); err == nil && string(begin) == mark {
		_, _ = l.from.Discard(len(mark))
		l.next.Offset = int64(len(mark))
	}
	return l
}

// Next is the next line that is not empty, without its end, LF or CRLF. It is valid until
// the next call. A last line without an end is refused: the file may have been cut, and
// a number that was cut looks like another number. So is a line that is not UTF-8.
func (l *Lines) Next() ([]byte, Position, error) {
	for {
		at := l.next
		line, err := l.from.ReadSlice('\n')
		l.next.Line++
		l.next.Offset += int64(len(line))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			refused := Refuse(at, line[:1024], "the line has more than %d bytes", MaxLine)
			if err := l.skip(); err != nil {
				return nil, at, err
			}
			return nil, at, refused
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) > 0:
			return nil, at, Refuse(at, line, "the last line has no line end: the file may be cut")
		case err != nil:
			return nil, at, err
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		switch {
		case len(bytes.TrimSpace(line)) == 0:
			continue
		case !utf8.Valid(line):
			return nil, at, Refuse(at, line, "the line is not UTF-8: the import has to name the file's encoding")
		}
		return line, at, nil
	}
}

// skip passes over the rest of a line.
func (l *Lines) skip() error {
	for {
		more, err := l.from.ReadSlice('\n')
		l.next.Offset += int64(len(more))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		return nil
	}
}

// Split reads the cells of a line of delimited text into those given. A cell in double quotes may hold
// delimiters, and quotes that are doubled (RFC 4180, section 2). No cell spans lines.
func Split(line []byte, delimiter byte, cells []string) ([]string, string) {
	cells = cells[:0]
	for rest := line; ; {
		if len(rest) > 0 && rest[0] == '"' {
			cell, after, ok := quoted(rest[1:])
			if !ok {
				return cells, "a quote is not closed"
			}
			cells = append(cells, cell)
			if len(after) == 0 {
				return cells, ""
			}
			if after[0] != delimiter {
				return cells, "something follows a quoted cell"
			}
			rest = after[1:]
			continue
		}
		cell, after, more := bytes.Cut(rest, []byte{delimiter})
		cells = append(cells, string(cell))
		if !more {
			return cells, ""
		}
		rest = after
	}
}

// quoted reads a cell up to its closing quote.
func quoted(text []byte) (cell string, after []byte, ok bool) {
	var doubled []byte
	for {
		end := bytes.IndexByte(text, '"')
		switch {
		case end < 0:
			return "", nil, false
		case end+1 < len(text) && text[end+1] == '"':
			doubled = append(doubled, text[:end+1]...)
			text = text[end+2:]
			continue
		case doubled == nil:
			return string(text[:end]), text[end+1:], true
		}
		return string(append(doubled, text[:end]...)), text[end+1:], true
	}
}

// DecimalPoint writes a number with a decimal comma with a point. Another text stays.
func DecimalPoint(text string) string {
	whole, decimals, found := strings.Cut(text, ",")
	if !found || strings.ContainsAny(decimals, ",.") {
		return text
	}
	number := whole + "." + decimals
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return text
	}
	return number
}
