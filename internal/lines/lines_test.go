package lines_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/influxdata/influxdb1-client/models"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/lines"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

const usual = `{"context":{"imported_at":"2026-03-04T12:00:00.5Z","org_slug":"ucnrs","source":"csi","location":"l","station":"s","table":"TenMin","utc_offset":"-08:00","replay":true,` +
	`"replayed_at":"2026-03-05T12:00:00Z","file_name":"meadow/a.dat","x":{"y":["\u0041",1]}},` +
	`"payload":{"options":{"database":"d","precision":"s","retentionPolicy":"r"},"points":[` +
	`{"measurement":"a, b=c","tags":{"t, =":"v","z":""},"fields":{"b":true,"n":null,"s":"it's","v":-20.50,"x":1e3},"time":1772625600999},` +
	`{"measurement":"m","fields":{"v":0},"time":-1}]}}`

func TestDecode(t *testing.T) {
	t.Parallel()
	d := lines.NewDecoder(lines.Rules{})
	for range 2 {
		m, err := d.Decode([]byte(usual))
		require.NoError(t, err)
		require.Equal(t, pipeline.PointOptions{Database: "d", Precision: "s", RetentionPolicy: "r"}, m.Options)
		require.Equal(t, `a\,\ b=c,t\,\ \==v b=true,s="it's",v=-20.50,x=1000 1772625600`+"\nm v=0 -1\n", string(m.Text))
		require.Equal(t, []int{len(m.Text) - 9, len(m.Text)}, m.Ends)
		require.Empty(t, m.Refused)
	}
	swift, thorough := d.Paths()
	require.Equal(t, []int{2, 0}, []int{swift, thorough})
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	d := lines.NewDecoder(lines.Rules{})
	_, err := d.Decode([]byte(`{"context":{},"payload":{"options":{"database":"d"},"points":[{"measurement":"m","fields":{"v":NaN},"time":1}]}}`))
	require.ErrorContains(t, err, "not a prepared message: invalid character 'N'")
	_, err = d.Decode([]byte(usual + "x"))
	require.ErrorContains(t, err, "not a prepared message")

	m, err := d.Decode([]byte(`{"payload":{"options":{"database":"d"},"points":[{"measurement":"m","fields":{"time":1},"time":1},{"measurement":"m","fields":{"v":1},"time":"2026-03-04T12:00:00Z"}]}}`))
	require.NoError(t, err)
	require.Equal(t, "m v=1 1772625600000\n", string(m.Text))
	require.Equal(t, []int{0, len(m.Text)}, m.Ends)
	require.Len(t, m.Refused, 1)
	require.Zero(t, m.Refused[0].Point)
	require.ErrorContains(t, m.Refused[0].Err, `the field name "time" is reserved`)
}

// TestRules: a text in a field of numbers becomes the number that Release 2 stored.
func TestRules(t *testing.T) {
	t.Parallel()
	rules := lines.Rules{Number: []*regexp.Regexp{regexp.MustCompile("^n")}, Drop: []*regexp.Regexp{regexp.MustCompile("_flag$")}}
	d := lines.NewDecoder(rules)
	point := func(fields string) string { return `{"measurement":"m","fields":` + fields + `,"time":1}` }
	m, err := d.Decode([]byte(`{"context":{},"payload":{"options":{"database":"d"},"points":[` + strings.Join([]string{
		point(`{"n1":"2018-12-24T07:00:00","n2":" -12.5e1 V","n3":"none","n4":true,"n5":null,"n6":7,"n_flag":"1","v":"12 V"}`),
		point(`{"n":"x","q_flag":1}`),
		point(`{"n":"1\u002e5"}`),
		point(`{"n":"1e999"}`),
	}, ",") + `]}}`))
	require.NoError(t, err)
	require.Equal(t, "m n1=2018,n2=-125,n6=7,v=\"12 V\" 1\nm n=1.5 1\n", string(m.Text))
	require.Equal(t, 2, m.Emptied)
	require.Equal(t, 6, m.Dropped)
	require.Empty(t, m.Refused)
	require.Len(t, m.Ends, 4)

	// Empty by itself, not by a rule: that is refused as ever.
	m, err = d.Decode([]byte(`{"payload":{"options":{"database":"d"},"points":[` + point(`{"n":null}`) + `]}}`))
	require.NoError(t, err)
	require.Len(t, m.Refused, 1)
	require.Zero(t, m.Emptied)
}

// FuzzRules: the rules do the same to what is read token by token and as a whole.
func FuzzRules(f *testing.F) {
	rules := lines.Rules{Number: []*regexp.Regexp{regexp.MustCompile("[bns]")}, Drop: []*regexp.Regexp{regexp.MustCompile("x")}}
	f.Add([]byte(usual))
	f.Add([]byte(strings.Replace(usual, `"it's"`, `"-.5e3x"`, 1)))
	f.Add([]byte(strings.Replace(usual, `"it's"`, `[1]`, 1)))
	f.Add([]byte(strings.Replace(usual, `{"v":0}`, `{"x":0}`, 1)))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := lines.NewDecoder(rules).Decode(body)
		want, wantErr := lines.DecodeThoroughly(rules, body)
		if wantErr != nil {
			require.EqualError(t, err, wantErr.Error())
			return
		}
		require.NoError(t, err)
		require.Equal(t, want.Refused, got.Refused)
		require.Equal(t, []int{want.Dropped, want.Emptied, len(want.Ends)}, []int{got.Dropped, got.Emptied, len(got.Ends)})
		gotStart, wantStart := 0, 0
		for i := range want.Ends {
			gotLine, wantLine := got.Text[gotStart:got.Ends[i]], want.Text[wantStart:want.Ends[i]]
			gotStart, wantStart = got.Ends[i], want.Ends[i]
			require.Equal(t, len(wantLine) == 0, len(gotLine) == 0)
			if len(wantLine) > 0 {
				require.Equal(t, parse(t, wantLine, want.Options.Precision), parse(t, gotLine, want.Options.Precision))
			}
		}
	})
}

// FuzzDecode: what is read token by token is what is read as a whole: the same
// messages are good, and InfluxDB's own parser finds the same points in them.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(usual), false)
	for _, change := range [][2]string{
		{`"payload"`, `"Payload"`}, {`"fields"`, `"fields":{"v":2},"fields"`}, {`"database"`, `"Database"`}, {`-20.50`, `1e400`},
		{`"v"`, `"v\u0041"`}, {`true`, `[true]`}, {`-1}`, `null}`}, {`"z":""`, `"z":null`}, {`"s"`, `"\xff"`}, {`"b=c`, `"#b`}, {`1e3`, `123456789012345678901234567890`},
		{`2026-03-04T12:00:00.5Z`, `2026-03-04 12:00:00`}, {`"replay":true`, `"replay":1`}, {`}}`, `}} `}, {`}}`, `}}}`}, {`-20.50`, `-0`}, {`"z"`, `"t, ="`},
		{`"database":"d"`, `"database":"a/b"`}, {`"retentionPolicy":"r"`, `"retentionPolicy":".."`},
		{`"measurement":"m",`, ``}, {`{"measurement":"m","fields":{"v":0},"time":-1}`, `{}`}, {`"time":-1`, `"":-1`}, {`,"time":-1`, ``},
	} {
		f.Add([]byte(strings.Replace(usual, change[0], change[1], 1)), true)
	}
	d := lines.NewDecoder(lines.Rules{})
	_, err := d.Decode([]byte(usual)) // whose options are remembered
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, body []byte, again bool) {
		swiftBefore, _ := d.Paths()
		got, err := d.Decode(body)
		if again {
			got, err = d.Decode(body)
		}
		want, wantErr := pipeline.DecodePoints(body)
		if wantErr != nil {
			require.EqualError(t, err, wantErr.Error())
			return
		}
		require.NoError(t, err)
		require.Equal(t, want.Payload.Options, got.Options)
		require.Len(t, got.Ends, len(want.Payload.Points))
		refused := map[int]string{}
		for _, r := range got.Refused {
			refused[r.Point] = r.Err.Error()
		}
		swift, _ := d.Paths()
		require.True(t, swift == swiftBefore || len(refused) == 0)
		start := 0
		for i, p := range want.Payload.Points {
			line := got.Text[start:got.Ends[i]]
			start = got.Ends[i]
			text, err := influx.AppendPoint(nil, influx.Point{
				Measurement: p.Measurement, Tags: p.Tags, Fields: p.Fields, Time: p.Time.Time,
			}, influx.Precision(want.Payload.Options.Precision))
			if err != nil {
				require.Equal(t, err.Error(), refused[i])
				require.Empty(t, line)
				continue
			}
			require.NotContains(t, refused, i)
			require.Equal(t, parse(t, text, got.Options.Precision), parse(t, line, got.Options.Precision), "%q", line)
		}
		require.Equal(t, len(got.Text), start)
	})
}

type parsed struct {
	name   string
	tags   map[string]string
	fields models.Fields
	time   int64
}

func parse(t *testing.T, line []byte, precision string) parsed {
	t.Helper()
	points, err := models.ParsePointsWithPrecision(line, time.Now(), precision)
	require.NoError(t, err, "%q", line)
	require.Len(t, points, 1, "%q", line)
	fields, err := points[0].Fields()
	require.NoError(t, err, "%q", line)
	return parsed{string(points[0].Name()), points[0].Tags().Map(), fields, points[0].UnixNano()}
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(`{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"ucnrs","source":"csi","location":"common1","station":"angelo","table":"TenMin"},` +
		`"payload":{"options":{"database":"common1","precision":"ms"},"points":[{"measurement":"station_angelo_source_tenmin","fields":` +
		`{"AT_C_Avg":12.25,"BattV_Min":13.1,"PAR_Avg":812.5,"RH_Pct":81.2,"Rain_mm_Tot":0,"Soil_T_C":9.875,"WD_Deg":270,"WS_ms_Avg":3.4},"time":1772625600000}]}}`)
	d := lines.NewDecoder(lines.Rules{})
	b.Run("tokens", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			if _, err := d.Decode(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("maps", func(b *testing.B) {
		var text []byte
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			m, err := pipeline.DecodePoints(body)
			if err != nil {
				b.Fatal(err)
			}
			for _, p := range m.Payload.Points {
				if text, err = influx.AppendPoint(text[:0], influx.Point{Measurement: p.Measurement, Fields: p.Fields, Time: p.Time.Time}, influx.Milliseconds); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
