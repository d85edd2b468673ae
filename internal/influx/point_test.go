package influx_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/influxdata/influxdb1-client/models"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 500_000_000, time.UTC)

func TestAppendPoint(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]influx.Point{
		"m v=20 1772625600500\n":         {Measurement: "m", Fields: map[string]any{"v": 20}},
		"m a=1.5,b=true 1772625600500\n": {Measurement: "m", Fields: map[string]any{"b": true, "a": 1.5, "gone": nil}},
		`m\,\ =x,k\=1=v\,\ \= f\ \=="a\"b\\c d" 1772625600500` + "\n": {
			Measurement: "m, =x", Tags: map[string]string{"k=1": "v, =", "empty": ""}, Fields: map[string]any{"f =": "a\"b\\c\r\nd"},
		},
		"m v=1e+21,w=0.1 1772625600500\n": {Measurement: "m", Fields: map[string]any{"v": 1e21, "w": float32(0.1)}},
	} {
		p.Time = noon
		line, err := influx.AppendPoint([]byte("before|"), p, influx.Milliseconds)
		require.NoError(t, err)
		require.Equal(t, "before|"+want, string(line))
	}
	line, err := influx.AppendPoint(nil, influx.Point{Measurement: "m", Fields: map[string]any{"v": 1}, Time: noon}, influx.Seconds)
	require.NoError(t, err)
	require.Equal(t, "m v=1 1772625600\n", string(line))
}

func TestAppendPointRefuses(t *testing.T) {
	t.Parallel()
	good := map[string]any{"v": 1.0}
	for name, c := range map[string]struct {
		point influx.Point
		want  string
	}{
		"no measurement":    {influx.Point{Fields: good}, "the measurement is empty"},
		"comment":           {influx.Point{Measurement: "#m", Fields: good}, "#"},
		"line break":        {influx.Point{Measurement: "m\nx v=1", Fields: good}, "line break"},
		"backslash":         {influx.Point{Measurement: `m\`, Fields: good}, "backslash"},
		"tag backslash":     {influx.Point{Measurement: "m", Tags: map[string]string{"t": `\`}, Fields: good}, "backslash"},
		"tag named time":    {influx.Point{Measurement: "m", Tags: map[string]string{"time": "x"}, Fields: good}, "reserved"},
		"field named time":  {influx.Point{Measurement: "m", Fields: map[string]any{"time": 1}}, "reserved"},
		"no fields":         {influx.Point{Measurement: "m"}, "no fields"},
		"only nil":          {influx.Point{Measurement: "m", Fields: map[string]any{"v": nil}}, "no fields"},
		"NaN":               {influx.Point{Measurement: "m", Fields: map[string]any{"v": math.NaN()}}, "NaN"},
		"infinity":          {influx.Point{Measurement: "m", Fields: map[string]any{"v": math.Inf(-1)}}, "-Inf"},
		"a list":            {influx.Point{Measurement: "m", Fields: map[string]any{"v": []any{1}}}, "[]interface {}"},
		"empty field name":  {influx.Point{Measurement: "m", Fields: map[string]any{"": 1}}, "field name is empty"},
		"long names":        {influx.Point{Measurement: strings.Repeat("m", 65535), Fields: good}, "65535"},
		"year one":          {influx.Point{Measurement: "m", Fields: good, Time: time.Time{}.Add(1)}, "1678"},
		"far in the future": {influx.Point{Measurement: "m", Fields: good, Time: time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)}, "2262"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.point.Time.IsZero() {
				c.point.Time = noon
			}
			line, err := influx.AppendPoint([]byte("before"), c.point, influx.Milliseconds)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, "before", string(line))
		})
	}
	_, err := influx.AppendPoint(nil, influx.Point{Measurement: "m", Fields: good, Time: noon}, "xx")
	require.ErrorContains(t, err, `"xx"`)
}

// FuzzAppendPoint: what is encoded without an error is read by InfluxDB's own
// parser as exactly the point that was meant.
func FuzzAppendPoint(f *testing.F) {
	f.Add("m", "tag", "value", "field", "text", 1.5, int64(1772625600500), true)
	f.Add("m, =", `t,= `, `v=, `, `f"=`, `"\`, math.Copysign(0, -1), int64(-1), false)
	f.Add(`a\,b`, "time", "", "time", "\n", math.MaxFloat64, int64(math.MinInt64), true)
	f.Add("#", "t", "v", " ", `\"`, math.SmallestNonzeroFloat64, int64(0), false)
	f.Add("ä\"ö", "t", "\u2028", "(", "\x00\xff", 1e21, int64(9223372036854), true)
	f.Fuzz(func(t *testing.T, measurement, tag, tagValue, field, text string, number float64, millis int64, flag bool) {
		p := influx.Point{
			Measurement: measurement,
			Tags:        map[string]string{tag: tagValue},
			Fields:      map[string]any{field: number, field + "_s": text, field + "_b": flag},
			Time:        time.UnixMilli(millis),
		}
		line, err := influx.AppendPoint(nil, p, influx.Milliseconds)
		if err != nil {
			require.Empty(t, line)
			return
		}
		points, err := models.ParsePointsWithPrecision(line, time.Now(), "ms")
		require.NoError(t, err, "%q", line)
		require.Len(t, points, 1, "%q", line)
		got := points[0]
		require.Equal(t, measurement, string(got.Name()), "%q", line)
		if tagValue == "" {
			require.Empty(t, got.Tags(), "%q", line)
		} else {
			require.Equal(t, map[string]string{tag: tagValue}, got.Tags().Map(), "%q", line)
		}
		fields, err := got.Fields()
		require.NoError(t, err, "%q", line)
		kept := strings.NewReplacer("\r", "", "\x00", "", "\n", " ").Replace(text)
		require.Equal(t, models.Fields{field: number, field + "_s": kept, field + "_b": flag}, fields, "%q", line)
		require.Equal(t, millis, got.Time().UnixMilli())
	})
}
