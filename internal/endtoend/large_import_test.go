package endtoend_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/loggerfilestest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// What the file of TestLargeFileIsImported is like: its rows, its columns (2), and its format,
// csv or tob3 (csv).
const (
	importRowsVariable    = "DENDRA_IMPORT_ROWS"
	importColumnsVariable = "DENDRA_IMPORT_COLUMNS"
	importFormatVariable  = "DENDRA_IMPORT_FORMAT"
)

// largeFile is a file with a row for each second, whose values a float32 holds exactly.
type largeFile struct {
	format        string
	rows, columns int
}

func (f largeFile) row(n int) (at time.Time, values []any) {
	for column := range f.columns {
		values = append(values, float32((n*7919+column*104_729)%131_072)/16)
	}
	return time.Date(2020, 1, 1, 0, 0, n, 0, time.UTC), values
}

func (f largeFile) columnName(n int) string { return fmt.Sprintf("c%03d", n) }

func (f largeFile) point(n int) influx.Point {
	at, values := f.row(n)
	fields := make(map[string]any, f.columns)
	for column, value := range values {
		fields[f.columnName(column)] = value
	}
	return influx.Point{Measurement: "large", Fields: fields, Time: at}
}

// text is what a file of some of the rows has, with the header.
func (f largeFile) text(from, to int) []byte {
	table := loggerfilestest.Table{Station: "north", Name: "large", Interval: time.Second}
	for n := range f.columns {
		table.Columns = append(table.Columns, loggerfilestest.Column{Name: f.columnName(n), Type: "IEEE4"})
	}
	for n := from; n < to; n++ {
		at, values := f.row(n)
		table.Rows = append(table.Rows, loggerfilestest.Row{Shown: at, Number: uint32(n), Values: values})
	}
	if f.format == "tob3" {
		return table.TOB3(loggerfilestest.TOB3Options{Stamp: 7})
	}
	return table.CSV(loggerfilestest.CSVOptions{Delimiter: ",", Headings: true, TimeHeadings: []string{"time"},
		Time: func(at time.Time) string { return at.Format("2006-01-02 15:04:05") }})
}

// upload writes the file into the bucket of uploads, piece by piece, and gives its size.
func (f largeFile) upload(b *bench, key string) int64 {
	b.Helper()
	endpoint, err := url.Parse(b.st.S3.Endpoint)
	require.NoError(b, err)
	store, err := minio.New(endpoint.Host, &minio.Options{Creds: credentials.NewStaticV4(b.st.S3.AccessKey, b.st.S3.SecretKey, ""), Region: b.st.S3.Region})
	require.NoError(b, err)
	read, write := io.Pipe()
	go func() {
		const pieceRows = 1000 // a multiple of the rows of a frame
		header := len(f.text(0, 0))
		_, err := write.Write(f.text(0, 0))
		for from := 0; from < f.rows && err == nil; from += pieceRows {
			_, err = write.Write(f.text(from, min(from+pieceRows, f.rows))[header:])
		}
		_ = write.CloseWithError(err)
	}()
	info, err := store.PutObject(b.Context(), "uploads", key, read, -1, minio.PutObjectOptions{PartSize: 64 << 20})
	require.NoError(b, err)
	return info.Size
}

// TestLargeFileIsImported imports a file while workers, NATS and InfluxDB are killed and stand
// still, and compares each value of the file with InfluxDB. It tells the rows a second
// beside plain writes of the first of them, and the memory of the extract worker and of NATS.
func TestLargeFileIsImported(t *testing.T) {
	t.Parallel()
	file := largeFile{
		format: cmp.Or(os.Getenv(importFormatVariable), "csv"),
		rows:   asked(t, importRowsVariable, 500_000), columns: 2,
	}
	if os.Getenv(importColumnsVariable) != "" {
		file.columns = asked(t, importColumnsVariable, 0)
	}
	random := stacktest.Random(t)
	nats, database := stacktest.StartOwn(t, "--only", "nats"), stacktest.StartOwn(t, "--only", "influx")
	st := stacktest.StartOwn(t, "--only", "temporal,s3")
	st.Join(nats, database)
	b := newBench(t, st)
	size := file.upload(b, "meadow/large")
	t.Logf("%d rows of %d columns, %d MB", file.rows, file.columns, size/1e6)
	plainRows := min(file.rows, 5_000_000/file.columns)
	plain := float64(plainRows) / writePlainly(b, "plain", plainRows, file.point).Seconds()

	c := newChaos(t, random)
	c.addServers("NATS", nats)
	c.addServers("InfluxDB", database)
	extract := c.addWorker(b, "extract", "extract-0")
	c.addWorker(b, "load", "load-0")
	began := time.Now()
	const options = `heartbeat_timeout = "PT3S"
retry_backoff = { initial = "PT0.2S", max = "PT1S" }
`
	format := ""
	if file.format == "csv" {
		format = `csv = { time = ["time"] }`
	}
	declare(b, fmt.Sprintf(`
[jobs.prepare_campbell_scientific_ldmp.files]
continuous = { interval = "PT0.1S" }
%[1]sspec = { organization = "meadow", location = "files", operation_mode = "bulk" }

[jobs.live_load_influx_v1.files]
continuous = { interval = "PT0.1S" }
%[1]sspec = { location = "files", operation_mode = "bulk", influx_url = %[2]q, batch_age = "PT0.2S" }

[jobs.import_file.large]
one_shot = {}
max_retry_count = 10000
run_timeout = "PT12H"
%[1]s
[jobs.import_file.large.spec]
key = "meadow/large"
organization = "meadow"
station = "north"
table = "large"
time_zone = "UTC"
%[3]s
`, options, st.Influx, format))
	most, mostOfNATS := 0, 0
	ended := func() bool {
		most = max(most, stacktest.Memory(extract().PID()))
		mostOfNATS = max(mostOfNATS, stacktest.Memory(nats.PID))
		run, err := b.client.Runs.Get(t.Context(), client.RunRef{WorkflowID: "job/import_file.large"})
		if err != nil || run.Ended.IsZero() {
			return false
		}
		require.Equal(t, client.RunCompleted, run.Status, run.Error)
		require.EqualValues(t, file.rows, run.Output.Counts["rows"])
		return true
	}
	strikes := c.strikeUntil("the end of the run", ended)
	read := time.Since(began)

	const measurement = "station_north_source_large"
	var counts map[string]int64
	var err error
	first := file.columnName(0)
	all := c.await(time.Hour, func() bool {
		counts, err = influx.Count(t.Context(), influx.Config{URL: st.Influx}, "files", measurement, first)
		return err == nil && counts[first] == int64(file.rows)
	})
	require.True(t, all, "InfluxDB has %d of %d rows: %v", counts[first], file.rows, err)
	loaded := time.Since(began)
	file.requireStored(b, measurement)
	speed := float64(file.rows) / loaded.Seconds()
	t.Logf("%d failures; published after %s, loaded after %s: %.0f rows/s (%.2f MB/s); plain writes: %.0f rows/s; at most %d MiB of the extract worker, %d of NATS",
		strikes, read.Round(time.Second), loaded.Round(time.Second), speed, float64(size)/1e6/loaded.Seconds(), plain, most>>20, mostOfNATS>>20)
}

// requireStored compares each value with InfluxDB.
func (f largeFile) requireStored(b *bench, measurement string) {
	b.Helper()
	columns := make([]string, f.columns)
	for n := range columns {
		columns[n] = f.columnName(n)
	}
	next := 0
	var want []byte
	take := func(at int64, values []jsontext.Value) error {
		moment, row := f.row(next)
		if at != moment.UnixNano() {
			return fmt.Errorf("row %d is of %s", next, time.Unix(0, at).UTC())
		}
		for column, value := range values {
			want = strconv.AppendFloat(want[:0], float64(row[column].(float32)), 'f', -1, 64)
			if !bytes.Equal(want, value) {
				return fmt.Errorf("row %d has %s in column %d and not %s", next, value, column, want)
			}
		}
		next++
		return nil
	}
	const piece = 3 * time.Hour
	end, _ := f.row(f.rows)
	for from, _ := f.row(0); from.Before(end); from = from.Add(piece) {
		command := influx.Selection("", columns, measurement, from, from.Add(piece))
		require.NoError(b, influx.Rows(b.Context(), influx.Config{URL: b.st.Influx}, "files", command, f.columns, take))
	}
	require.Equal(b, f.rows, next)
}

// asked is how large a test is that takes minutes: what a variable says, a size in soak tests, or
// it is skipped.
func asked(t *testing.T, variable string, soak int) int {
	t.Helper()
	size := stacktest.Size(0, soak)
	if text := os.Getenv(variable); text != "" {
		var err error
		size, err = strconv.Atoi(text)
		require.NoError(t, err, variable)
	}
	if size == 0 {
		t.Skipf("takes minutes: DENDRA_TEST_SOAK=1 or %s=%d asks for it", variable, soak)
	}
	return size
}

// writePlainly writes rows to a new database by line protocol, 5,000 at a time, as the command
// of InfluxDB imports them.
func writePlainly(b *bench, database string, rows int, row func(n int) influx.Point) time.Duration {
	b.Helper()
	writer, err := influx.NewWriter(influx.Config{URL: b.st.Influx})
	require.NoError(b, err)
	require.NoError(b, writer.CreateDatabase(b.Context(), database))
	began := time.Now()
	var lines []byte
	for n := range rows {
		lines, err = influx.AppendPoint(lines, row(n), influx.Milliseconds)
		require.NoError(b, err)
		if (n+1)%5000 == 0 || n+1 == rows {
			require.NoError(b, writer.Write(b.Context(), influx.Target{Database: database, Precision: influx.Milliseconds}, lines))
			lines = lines[:0]
		}
	}
	return time.Since(began)
}
