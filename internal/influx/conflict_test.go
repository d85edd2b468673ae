package influx

import (
	"strings"
	"testing"
	"time"

	"github.com/influxdata/influxdb1-client/models"
	"github.com/stretchr/testify/require"
)

func TestConflictIsRead(t *testing.T) {
	t.Parallel()
	read := func(text string) (Conflict, bool) { return (&Error{full: text}).Conflict() }
	for text, want := range map[string]Conflict{
		`partial write: field type conflict: input field "v" on measurement "m" is type string, already exists as type float dropped=12`: {"m", "v", FieldString, 12},
		`field type conflict: input field "v" on measurement "m" is type float, already exists as type string`:                           {"m", "v", FieldFloat, 0},
		`partial write: field type conflict: input field "a" is type b" on measurement "m" is type boolean, already exists as type float dropped=1`: {
			"m", `a" is type b`, FieldBoolean, 1,
		},
	} {
		got, ok := read(text)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", "points beyond retention policy dropped=1", `field type conflict: input field "v"`, `partial write: field type conflict`} {
		_, ok := read(text)
		require.False(t, ok, text)
	}
}

// FuzzConflictInALine: a field is found where it is, and taken out, whatever else the
// line holds; InfluxDB's own parser says what is left.
func FuzzConflictInALine(f *testing.F) {
	f.Add("m", "tag", "value", "field", "text", "other", "more")
	f.Add("a, =b", "t ,=", "v =,", "f ,=x", `"x" , y=\`, `" x`, "=,")
	f.Add("m", "", "", "v", "", "w", "")
	f.Fuzz(func(t *testing.T, measurement, tag, tagValue, field, text, other, otherText string) {
		if field == other {
			return
		}
		point := Point{Measurement: measurement, Tags: map[string]string{tag: tagValue}, Fields: map[string]any{field: text, other: otherText, other + "n": 1.5}, Time: time.UnixMilli(7)}
		if len(point.Fields) != 3 {
			return
		}
		line, err := AppendPoint(nil, point, Milliseconds)
		if err != nil {
			return
		}
		c := Conflict{Measurement: measurement, Field: field, Type: FieldString}
		found, ok := c.Find(line)
		require.True(t, ok, "%q", line)
		require.EqualValues(t, 7, found.Time(line))
		alone := point
		alone.Fields = map[string]any{field: text}
		want, err := AppendPoint(nil, alone, Milliseconds)
		require.NoError(t, err)
		require.Equal(t, string(want), string(found.AppendAlone(nil, line)))

		left, removed := found.Remove([]byte(string(line)))
		require.True(t, removed)
		delete(point.Fields, field)
		want, err = AppendPoint(nil, point, Milliseconds)
		require.NoError(t, err)
		require.Equal(t, string(want), string(left))
		if !strings.Contains(measurement, "=") { // the parser keeps its escape
			_, err = models.ParsePointsWithPrecision(left, time.Now(), "ms")
			require.NoError(t, err)
		}

		c.Type = FieldFloat
		_, ok = c.Find(line)
		require.False(t, ok, "it is a string there")
		c = Conflict{Measurement: measurement, Field: field + "?", Type: FieldString}
		if field+"?" != other {
			_, ok = c.Find(line)
			require.False(t, ok)
		}
		only, ok := Conflict{measurement, field, FieldString, 0}.Find(alone.line(t))
		require.True(t, ok)
		_, removed = only.Remove(alone.line(t))
		require.False(t, removed)
	})
}

func (p Point) line(t *testing.T) []byte {
	t.Helper()
	line, err := AppendPoint(nil, p, Milliseconds)
	require.NoError(t, err)
	return line
}
