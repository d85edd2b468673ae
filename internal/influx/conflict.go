package influx

import (
	"bytes"
	"strconv"
	"strings"
)

// Conflict is what an answer says of a field whose type differs from that of the
// field's stored values.
type Conflict struct {
	Measurement, Field string
	// Type is the type that was written.
	Type FieldType
	// Dropped is how many points the server left out, 0 if it does not say.
	Dropped int
}

// Conflict reads the answer "field type conflict: input field "F" on measurement "M" is
// type T, already exists as type U dropped=N". It reports false for another answer.
func (e *Error) Conflict() (Conflict, bool) {
	var c Conflict
	rest, ok := strings.CutPrefix(reasonOf(e.full), `field type conflict: input field "`)
	if !ok {
		return c, false
	}
	// Names are not escaped and may hold anything; the types come last.
	end := strings.LastIndex(rest, `" is type `)
	if end < 0 {
		return c, false
	}
	names, types := rest[:end], rest[end+len(`" is type `):]
	kind, _, ok := strings.Cut(types, ", already exists as type ")
	if !ok {
		return c, false
	}
	if _, dropped, found := strings.Cut(types, " dropped="); found {
		c.Dropped, _ = strconv.Atoi(dropped)
	}
	c.Type = FieldType(kind)
	c.Field, c.Measurement, ok = strings.Cut(names, `" on measurement "`)
	return c, ok
}

// LineField is where a field stands in a line that [AppendPoint] made.
type LineField struct {
	series     int // end of measurement and tags
	start, end int // of the field, without separators
	only       bool
	time       int // start of the time
}

// Find finds the field in a line of the measurement, if it is there with the type that
// was written.
func (c Conflict) Find(line []byte) (field LineField, ok bool) {
	series := separator(line, 0, ' ')
	name := line[:separator(line[:series], 0, ',')]
	if !unescapesTo(name, c.Measurement) {
		return field, false
	}
	field.series = series
	fields := 0
	for at := series + 1; at < len(line); fields++ {
		equals := separator(line, at, '=')
		end := valueEnd(line, equals+1)
		if unescapesTo(line[at:min(equals, len(line))], c.Field) {
			if equals+1 >= end || typeOf(line[equals+1]) != c.Type {
				return field, false
			}
			field.start, field.end, ok = at, end, true
		}
		if end >= len(line) || line[end] == ' ' {
			field.time = min(end+1, len(line))
			at = len(line)
		} else {
			at = end + 1
		}
	}
	field.only = fields == 1
	return field, ok
}

// Time is the time at the end of the line, in the precision of the write.
func (f LineField) Time(line []byte) int64 {
	at, _ := strconv.ParseInt(string(bytes.TrimRight(line[f.time:], "\n")), 10, 64)
	return at
}

// AppendAlone appends the line of a point that has the field alone.
func (f LineField) AppendAlone(dst, line []byte) []byte {
	dst = append(dst, line[:f.series+1]...)
	dst = append(dst, line[f.start:f.end]...)
	dst = append(dst, ' ')
	return append(dst, line[f.time:]...)
}

// Remove takes the field out of a line, in place, and returns what is left. It reports
// false, and changes nothing, if the line has no other field.
func (f LineField) Remove(line []byte) ([]byte, bool) {
	if f.only {
		return line, false
	}
	start, end := f.start, f.end
	if line[end] == ',' {
		end++
	} else {
		start-- // the last one, with the comma before it
	}
	return append(line[:start], line[end:]...), true
}

// separator is the place of the next separator that is not escaped, or the end.
func separator(line []byte, from int, which byte) int {
	for i := from; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case which:
			return i
		}
	}
	return len(line)
}

// valueEnd is where the value of a field ends that starts at from.
func valueEnd(line []byte, from int) int {
	if from < len(line) && line[from] == '"' {
		from = min(separator(line, from+1, '"')+1, len(line))
	}
	if n := bytes.IndexAny(line[from:], ", "); n >= 0 {
		return from + n
	}
	return len(line)
}

func typeOf(first byte) FieldType {
	switch first {
	case '"':
		return FieldString
	case 't', 'f':
		return FieldBoolean
	}
	return FieldFloat // AppendPoint writes no integers
}

// unescapesTo reports whether a name of a line is a name as it was before AppendPoint
// escaped it: it escapes no backslash, and takes none in a name.
func unescapesTo(escaped []byte, name string) bool {
	at := 0
	for _, c := range escaped {
		if c == '\\' {
			continue
		}
		if at == len(name) || name[at] != c {
			return false
		}
		at++
	}
	return at == len(name)
}
