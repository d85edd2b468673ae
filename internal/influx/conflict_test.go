package influx_test

import (
	"strings"
	"testing"
	"time"

	"github.com/influxdata/influxdb1-client/models"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
)

func TestConflictIsRead(t *testing.T) {
	t.Parallel()
	read := func(text string) (influx.Conflict, bool) { return influx.ErrorOf(text).Conflict() }
	for text, want := range map[string]influx.Conflict{
		`partial write: field type conflict: input field "v" on measurement "m" is type string, already exists as type float dropped=12`: {"m", "v", influx.FieldString, 12},
		`field type conflict: input field "v" on measurement "m" is type float, already exists as type string`:                           {"m", "v", influx.FieldFloat, 0},
		`partial write: field type conflict: input field "a" is type b" on measurement "m" is type boolean, already exists as type float dropped=1`: {
			"m", `a" is type b`, influx.FieldBoolean, 1,
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
		point := influx.Point{Measurement: measurement, Tags: map[string]string{tag: tagValue}, Fields: map[string]any{field: text, other: otherText, other + "n": 1.5}, Time: time.UnixMilli(7)}
		if len(point.Fields) != 3 {
			return
		}
		line, err := influx.AppendPoint(nil, point, influx.Milliseconds)
		if err != nil {
			return
		}
		c := influx.Conflict{Measurement: measurement, Field: field, Type: influx.FieldString}
		found, ok := c.Find(line)
		require.True(t, ok, "%q", line)
		require.EqualValues(t, 7, found.Time(line))
		alone := point
		alone.Fields = map[string]any{field: text}
		want, err := influx.AppendPoint(nil, alone, influx.Milliseconds)
		require.NoError(t, err)
		require.Equal(t, string(want), string(found.AppendAlone(nil, line)))

		left, removed := found.Remove([]byte(string(line)))
		require.True(t, removed)
		delete(point.Fields, field)
		want, err = influx.AppendPoint(nil, point, influx.Milliseconds)
		require.NoError(t, err)
		require.Equal(t, string(want), string(left))
		if !strings.Contains(measurement, "=") { // the parser keeps its escape
			_, err = models.ParsePointsWithPrecision(left, time.Now(), "ms")
			require.NoError(t, err)
		}

		c.Type = influx.FieldFloat
		_, ok = c.Find(line)
		require.False(t, ok, "it is a string there")
		c = influx.Conflict{Measurement: measurement, Field: field + "?", Type: influx.FieldString}
		if field+"?" != other {
			_, ok = c.Find(line)
			require.False(t, ok)
		}
		only, ok := influx.Conflict{measurement, field, influx.FieldString, 0}.Find(lineOf(t, alone))
		require.True(t, ok)
		_, removed = only.Remove(lineOf(t, alone))
		require.False(t, removed)
	})
}

func lineOf(t *testing.T, p influx.Point) []byte {
	t.Helper()
	line, err := influx.AppendPoint(nil, p, influx.Milliseconds)
	require.NoError(t, err)
	return line
}
