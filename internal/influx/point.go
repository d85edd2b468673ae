package influx

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Point is one row of a time series. Points of the same measurement, tags and
// time are one row: fields are merged, and the value that came last stays.
type Point struct {
	// Measurement is the name of the series. Required.
	Measurement string
	// Tags are indexed labels. A tag with an empty value is left out: to the
	// server it is the same as none.
	Tags map[string]string
	// Fields are numbers (of any Go type, written as floats), strings and
	// booleans. A nil value is left out. At least one is required.
	Fields map[string]any
	// Time is when it was measured, from 1678 to 2262.
	Time time.Time
}

// Precision is the resolution of times in a write.
type Precision string

// The precisions. The server takes any other word for nanoseconds without an
// error, so there are no others here.
const (
	Seconds      Precision = "s"
	Milliseconds Precision = "ms"
)

// Check reports a precision that there is not.
func (p Precision) Check() error {
	if p != Seconds && p != Milliseconds {
		return fmt.Errorf("precision %q is neither s nor ms", string(p))
	}
	return nil
}

// The times that an int64 of nanoseconds holds, less what the server reserves.
var (
	minTime = time.Unix(0, math.MinInt64+2)
	maxTime = time.Unix(0, math.MaxInt64-1)
)

// maxSeriesKey bounds measurement, tags and a field's name together.
const maxSeriesKey = 65535

var (
	errNoFields = errors.New("it has no fields")
	errTime     = errors.New("its time is outside of 1678 to 2262")
)

// AppendPoint appends a point as one line of line protocol, line break included,
// and returns the extended slice. After an error dst is returned as it was; the
// error says what InfluxDB could not store or would misread: no measurement or
// field, NaN or an infinity, a name with a control character or a backslash, the
// reserved name time.
func AppendPoint(dst []byte, p Point, precision Precision) ([]byte, error) {
	start := len(dst)
	line, err := appendPoint(dst, p, precision)
	if err != nil {
		return dst[:start], fmt.Errorf("point of measurement %q at %s: %w", p.Measurement, p.Time.UTC().Format(time.RFC3339Nano), err)
	}
	return line, nil
}

func appendPoint(dst []byte, p Point, precision Precision) ([]byte, error) {
	if err := precision.Check(); err != nil {
		return nil, err
	}
	if err := checkName("the measurement", p.Measurement); err != nil {
		return nil, err
	}
	if strings.HasPrefix(p.Measurement, "#") {
		return nil, errors.New("the measurement starts with #, which makes the line a comment")
	}
	start := len(dst)
	dst = appendEscaped(dst, p.Measurement, `, `)
	for _, key := range slices.Sorted(maps.Keys(p.Tags)) {
		value := p.Tags[key]
		if value == "" {
			continue
		}
		if err := checkName("tag name", key); err != nil {
			return nil, err
		}
		if err := checkName("value of tag "+key, value); err != nil {
			return nil, err
		}
		if reserved(key) {
			return nil, fmt.Errorf("the tag name %q is reserved", key)
		}
		dst = append(dst, ',')
		dst = appendEscaped(dst, key, `, =`)
		dst = append(dst, '=')
		dst = appendEscaped(dst, value, `, =`)
	}
	seriesKey := len(dst) - start
	separator := byte(' ')
	for _, key := range slices.Sorted(maps.Keys(p.Fields)) {
		value := p.Fields[key]
		if value == nil {
			continue
		}
		if err := checkName("field name", key); err != nil {
			return nil, err
		}
		if reserved(key) {
			return nil, fmt.Errorf("the field name %q is reserved", key)
		}
		if size := seriesKey + len(key) + len("#!~#"); size > maxSeriesKey {
			return nil, fmt.Errorf("measurement, tags and field name have %d bytes, more than %d", size, maxSeriesKey)
		}
		dst = append(dst, separator)
		dst = appendEscaped(dst, key, `, =`)
		dst = append(dst, '=')
		var err error
		if dst, err = appendValue(dst, value); err != nil {
			return nil, fmt.Errorf("field %q: %w", key, err)
		}
		separator = ','
	}
	if separator == ' ' {
		return nil, errNoFields
	}
	if p.Time.Before(minTime) || p.Time.After(maxTime) {
		return nil, errTime
	}
	dst = append(dst, ' ')
	if precision == Seconds {
		dst = strconv.AppendInt(dst, p.Time.Unix(), 10)
	} else {
		dst = strconv.AppendInt(dst, p.Time.UnixMilli(), 10)
	}
	return append(dst, '\n'), nil
}

// reserved names are dropped silently, or refused, by the server.
func reserved(name string) bool {
	return name == "time" || name == "_field" || name == "_measurement"
}

// checkName refuses what no escape carries through: the server's parser takes a
// backslash before a separator for an escape, wherever it came from.
func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s is empty", what)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%s %q holds a line break or another control character", what, name)
	case strings.Contains(name, `\`):
		return fmt.Errorf("%s %q holds a backslash", what, name)
	}
	return nil
}

func appendEscaped(dst []byte, text, special string) []byte {
	for i := range len(text) {
		if strings.IndexByte(special, text[i]) >= 0 {
			dst = append(dst, '\\')
		}
		dst = append(dst, text[i])
	}
	return dst
}

func appendValue(dst []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case float64:
		return appendFloat(dst, v, 64)
	case float32:
		return appendFloat(dst, float64(v), 32)
	case int:
		return appendFloat(dst, float64(v), 64)
	case int8:
		return appendFloat(dst, float64(v), 64)
	case int16:
		return appendFloat(dst, float64(v), 64)
	case int32:
		return appendFloat(dst, float64(v), 64)
	case int64:
		return appendFloat(dst, float64(v), 64)
	case uint:
		return appendFloat(dst, float64(v), 64)
	case uint8:
		return appendFloat(dst, float64(v), 64)
	case uint16:
		return appendFloat(dst, float64(v), 64)
	case uint32:
		return appendFloat(dst, float64(v), 64)
	case uint64:
		return appendFloat(dst, float64(v), 64)
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return appendString(dst, v), nil
	}
	return nil, fmt.Errorf("a %T is neither number, string nor boolean", value)
}

// appendFloat writes a number without a type suffix: always a float, so that 20
// and 20.5 are of one type.
func appendFloat(dst []byte, v float64, bits int) ([]byte, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, fmt.Errorf("%v is not a number that InfluxDB stores", v)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, bits), nil
}

// appendString quotes a string. Line breaks become spaces: line protocol has no
// escape for them.
func appendString(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for i := range len(text) {
		switch c := text[i]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, ' ')
		case '\r', 0:
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
