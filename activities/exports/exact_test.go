package exports_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/exports"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// ledger is what was written to InfluxDB of one measurement: rows in the order of times, and
// nil where a field has no value.
type ledger struct {
	measurement string
	fields      []string // in the order of names
	times       []int64
	rows        [][]any
}

// kinds are fields by the types of their values.
var kinds = []string{"a_float", "b_int", "c_text", "d flag", "time_ago"}

// extremes are values that are easily spoilt.
var extremes = map[string][]any{
	"a_float":  {math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 1e21, 1e-7, math.Copysign(0, -1), 123456789.12345679},
	"b_int":    {int64(math.MaxInt64), int64(math.MinInt64), int64(1<<53 + 1), int64(0)},
	"c_text":   {"", "a,b", `say "x"`, "two\nlines", "é 😀", `back\slash`, " begins", "null", "\ufeff", "-9999"},
	"d flag":   {true, false},
	"time_ago": {1.5, -1.5},
}

func valueOf(random *rand.Rand, field string, exact bool) any {
	values := extremes[field]
	if random.IntN(3) == 0 && !exact {
		return values[random.IntN(len(values))]
	}
	switch field {
	case "b_int":
		return random.Int64N(1<<53) - 1<<52
	case "c_text":
		return fmt.Sprintf("text_%d", random.IntN(1000))
	case "d flag":
		return random.IntN(2) == 0
	}
	return math.Round(random.NormFloat64()*1e6) / 1e3
}

// written makes rows of random fields and times, and writes them. Exact rows are those that
// NetCDF-3 can hold.
func written(d *desk, random *rand.Rand, measurement string, from time.Time, rows int, exact bool) ledger {
	l := ledger{measurement: measurement}
	for _, field := range kinds {
		if random.IntN(4) > 0 {
			l.fields = append(l.fields, field)
		}
	}
	if len(l.fields) == 0 {
		l.fields = kinds[:1]
	}
	at := from.UnixNano()
	var lines strings.Builder
	for range rows {
		row, parts := make([]any, len(l.fields)), []string(nil)
		for i, field := range l.fields {
			if random.IntN(5) > 0 || i == len(l.fields)-1 && parts == nil {
				row[i] = valueOf(random, field, exact)
				parts = append(parts, strings.ReplaceAll(field, " ", `\ `)+"="+encoded(row[i]))
			}
		}
		l.times, l.rows = append(l.times, at), append(l.rows, row)
		lines.WriteString(line(measurement, time.Unix(0, at), parts...))
		switch n := random.IntN(100); {
		case n == 0:
			at += 1 + random.Int64N(int64(40*24*time.Hour)) // a gap
		case n < 4 && !exact:
			at++
		default:
			at += int64(10 * time.Minute)
		}
		if exact {
			at -= at % int64(time.Millisecond)
		}
	}
	d.write(d.database, lines.String())
	return l
}

// encoded is a value in line protocol.
func encoded(value any) string {
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10) + "i"
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value.(string)) + `"`
}

// within are the rows of a span.
func (l ledger) within(start, end time.Time) ledger {
	cut := ledger{measurement: l.measurement, fields: l.fields}
	for i, at := range l.times {
		if at >= start.UnixNano() && at < end.UnixNano() {
			cut.times, cut.rows = append(cut.times, at), append(cut.rows, l.rows[i])
		}
	}
	return cut
}

// begins are times around which rows are: a leap day, the turn of a century, the first and
// the last years of InfluxDB.
var begins = []time.Time{day(2024, 2, 28), day(1999, 12, 31), day(1969, 12, 30), day(1680, 1, 1), day(2259, 1, 1), day(2024, 3, 10)}

// TestWhatIsExportedIsWhatWasWritten writes random rows to InfluxDB, and reads the files of
// each format by another reader: encoding/csv, parquet-go's own reader, ncdump.
func TestWhatIsExportedIsWhatWasWritten(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	st := stacktest.Start(t)
	for _, c := range []struct {
		format      exports.Format
		compression exports.Compression
	}{
		{exports.FormatCSV, exports.CompressionNone},
		{exports.FormatCSV, exports.CompressionGzip},
		{exports.FormatCSV, exports.CompressionZstd},
		{exports.FormatCSV, exports.CompressionZip},
		{exports.FormatParquet, exports.CompressionGzip},
		{exports.FormatNetCDF, exports.CompressionGzip},
	} {
		if _, err := exec.LookPath("ncdump"); err != nil && c.format == exports.FormatNetCDF {
			t.Log("ncdump of the package netcdf-bin is not here: NetCDF files are not read back")
			continue
		}
		d := newDesk(t, st)
		d.spec.Format, d.spec.Compression = c.format, c.compression
		d.station(d.organization, "ridge", d.database)
		d.spec.Stations = []string{"ridge"}
		from := begins[random.IntN(len(begins))]
		want := map[string]ledger{}
		for n := range 1 + random.IntN(3) {
			name := fmt.Sprintf("station_ridge_source_t%d", n)
			want[name] = written(d, random, name, from, 1+random.IntN(1500), c.format == exports.FormatNetCDF)
		}
		d.spec.Start = from.Add(time.Duration(random.IntN(200)) * time.Minute)
		d.spec.End = d.spec.Start.Add(time.Duration(1+random.IntN(60)) * 24 * time.Hour)
		d.at.Exports.PointsPerSecond = 5000 + random.Int64N(1000)
		if random.IntN(2) == 0 {
			d.at.Exports.PointsPerSecond = 1 << 40
		}
		if total := d.requireExact(want); total == 0 {
			t.Logf("nothing was written between %s and %s", d.spec.Start, d.spec.End)
		}
	}
}

// requireExact exports what the spec says, and requires it to be what was written. It gives
// the number of rows.
func (d *desk) requireExact(want map[string]ledger) (total int64) {
	d.Helper()
	report, manifest := d.export()
	d.requireFiles(want, report, manifest)
	return report.Rows
}

func (d *desk) requireFiles(want map[string]ledger, report exports.Report, manifest exports.Manifest) {
	d.Helper()
	got := map[string]ledger{}
	var rows, values int64
	for _, part := range manifest.Parts {
		data := d.read(part.Key)
		require.Equal(d, objects.Hash(data), part.SHA256)
		require.EqualValues(d, len(data), part.Bytes)
		series := manifest.Series[part.Series]
		l := d.readPart(series, part.Key, data)
		require.EqualValues(d, part.Rows, len(l.times))
		require.Equal(d, []int64{part.First.UnixNano(), part.Last.UnixNano()}, []int64{l.times[0], l.times[len(l.times)-1]})
		require.False(d, part.First.Before(part.From) || !part.Last.Before(part.To))
		before := got[series.Measurement]
		l.times, l.rows = append(before.times, l.times...), append(before.rows, l.rows...)
		got[series.Measurement] = l
		rows += part.Rows
		values += part.Values
	}
	require.Equal(d, []int64{rows, values}, []int64{report.Rows, report.Values})
	require.Len(d, d.keys(report.Folder), len(manifest.Parts)+2, "parts, links and manifest, and no other object")
	for measurement, l := range want {
		l = l.within(d.spec.Start, d.spec.End)
		if len(l.times) == 0 {
			require.Empty(d, got[measurement].times)
			continue
		}
		require.Equal(d, l.fields, got[measurement].fields)
		require.Equal(d, l.times, got[measurement].times, measurement)
		for i := range l.rows {
			require.Equal(d, d.asWritten(l.rows[i]), got[measurement].rows[i], "%s at %s", measurement, time.Unix(0, l.times[i]).UTC())
		}
	}
}

// asWritten is a row as a format can hold it.
func (d *desk) asWritten(row []any) []any {
	row = slices.Clone(row)
	for i, v := range row {
		switch {
		case d.spec.Format == exports.FormatCSV && v == nil, d.spec.Format == exports.FormatCSV && v == "":
			row[i] = "" // encoding/csv tells no empty text from none
		case d.spec.Format == exports.FormatNetCDF && v == nil:
		}
	}
	return row
}

func (d *desk) readPart(series exports.SeriesReport, key string, data []byte) ledger {
	d.Helper()
	switch d.spec.Format {
	case exports.FormatParquet:
		return d.readParquet(series, data)
	case exports.FormatNetCDF:
		return d.readNetCDF(series, key, data)
	case exports.FormatCSV:
	}
	l := ledger{}
	for n, cells := range csvRows(d, d.spec.Compression, data) {
		if n == 0 {
			require.Equal(d, "time", cells[0])
			l.fields = cells[1:]
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, cells[0])
		require.NoError(d, err)
		require.True(d, strings.HasSuffix(cells[0], "Z"))
		row := make([]any, len(cells)-1)
		for i, cell := range cells[1:] {
			row[i] = d.parsed(string(series.Columns[i].Type), cell)
		}
		l.times, l.rows = append(l.times, at.UnixNano()), append(l.rows, row)
	}
	return l
}

// parsed is a value of a type by its text.
func (d *desk) parsed(kind, text string) (value any) {
	d.Helper()
	if text == "" {
		return ""
	}
	var err error
	switch kind {
	case "float":
		value, err = strconv.ParseFloat(text, 64)
	case "integer":
		value, err = strconv.ParseInt(text, 10, 64)
	case "boolean":
		value, err = strconv.ParseBool(text)
	default:
		value = text
	}
	require.NoError(d, err)
	return value
}

func (d *desk) readParquet(series exports.SeriesReport, data []byte) (l ledger) {
	d.Helper()
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(d, err)
	about, ok := file.Lookup("series")
	require.True(d, ok)
	require.Contains(d, about, `"slug":"ridge"`)
	columns := file.Schema().Fields()
	require.Equal(d, "time", columns[0].Name())
	require.Equal(d, "TIMESTAMP(isAdjustedToUTC=true,unit=NANOS)", columns[0].Type().String())
	for i, c := range columns[1:] {
		l.fields = append(l.fields, c.Name())
		require.Equal(d, map[string]parquet.Kind{"float": parquet.Double, "integer": parquet.Int64, "string": parquet.ByteArray, "boolean": parquet.Boolean}[string(series.Columns[i].Type)], c.Type().Kind())
	}
	reader := parquet.NewReader(file)
	defer func() { _ = reader.Close() }()
	rows := make([]parquet.Row, 100)
	for {
		n, err := reader.ReadRows(rows)
		for _, row := range rows[:n] {
			values := make([]any, len(l.fields))
			for i, v := range row[1:] {
				switch {
				case v.IsNull():
				case v.Kind() == parquet.Double:
					values[i] = v.Double()
				case v.Kind() == parquet.Int64:
					values[i] = v.Int64()
				case v.Kind() == parquet.Boolean:
					values[i] = v.Boolean()
				default:
					values[i] = string(v.ByteArray())
				}
			}
			l.times, l.rows = append(l.times, row[0].Int64()), append(l.rows, values)
		}
		if errors.Is(err, io.EOF) {
			return l
		}
		require.NoError(d, err)
	}
}

// variablePattern is a variable of the data that ncdump writes.
var variablePattern = regexp.MustCompile(`(?s)\n (\w+) =\s(.*?) ;\n`)

func (d *desk) readNetCDF(series exports.SeriesReport, key string, data []byte) (l ledger) {
	d.Helper()
	path := filepath.Join(d.TempDir(), filepath.Base(key))
	require.NoError(d, writeFile(path, data))
	out, err := exec.CommandContext(d.Context(), "ncdump", "-p", "9,17", path).CombinedOutput()
	require.NoError(d, err, "%s", out)
	header, body, ok := strings.Cut(string(out), "\ndata:\n")
	require.True(d, ok)
	for _, part := range []string{
		`:Conventions = "CF-1.8"`, `:featureType = "timeSeries"`, `station:cf_role = "timeseries_id"`,
		`time:units = "milliseconds since 1970-01-01 00:00:00"`, `lat:standard_name = "latitude"`,
	} {
		require.Contains(d, header, part)
	}
	texts := map[string][]string{}
	for _, match := range variablePattern.FindAllStringSubmatch(strings.ReplaceAll(body, ";\n\n", ";\n\n\n"), -1) {
		for text := range strings.SplitSeq(match[2], ",") {
			texts[match[1]] = append(texts[match[1]], strings.TrimSpace(text))
		}
	}
	require.Equal(d, []string{`"ridge"`}, texts["station"])
	require.Equal(d, []string{"1000.5"}, texts["alt"])
	for _, text := range texts["time"] {
		ms, err := strconv.ParseFloat(text, 64)
		require.NoError(d, err)
		l.times, l.rows = append(l.times, int64(ms)*int64(time.Millisecond)), append(l.rows, make([]any, len(series.Columns)))
	}
	for i, c := range series.Columns {
		l.fields = append(l.fields, c.Field)
		name := strings.ReplaceAll(c.Field, " ", "_")
		require.Contains(d, header, fmt.Sprintf("%s:long_name = %q", name, c.Field))
		require.Len(d, texts[name], len(l.times), "%s", out)
		for n, text := range texts[name] {
			switch {
			case text == "_", text == "NaN", text == `""`:
			case c.Type == "integer":
				x, err := strconv.ParseFloat(text, 64)
				require.NoError(d, err)
				l.rows[n][i] = int64(x)
			case c.Type == "string":
				l.rows[n][i] = strings.Trim(text, `"`)
			case c.Type == "boolean":
				l.rows[n][i] = text == "1"
			default:
				l.rows[n][i] = d.parsed("float", text)
			}
		}
	}
	return l
}
