package endtoend_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// importRowsVariable is how many rows the file of TestLargeFileIsImported has.
const importRowsVariable = "DENDRA_IMPORT_ROWS"

// largeRow is what a row of the large file has.
func largeRow(n int) (at time.Time, warmth, humidity float64) {
	return time.Date(2020, 1, 1, 0, 0, n, 0, time.UTC), float64(n*7919%100_000) / 100, float64(n % 1000)
}

// TestLargeFileIsImported imports a plain CSV file while workers, NATS and InfluxDB are killed
// and stand still, and compares each value of the file with InfluxDB. It tells the rows a second
// beside plain writes of the same rows, and the memory of the extract worker.
func TestLargeFileIsImported(t *testing.T) {
	t.Parallel()
	rows := stacktest.Size(0, 500_000)
	if text := os.Getenv(importRowsVariable); text != "" {
		var err error
		rows, err = strconv.Atoi(text)
		require.NoError(t, err, importRowsVariable)
	}
	if rows == 0 {
		t.Skip("takes minutes: DENDRA_TEST_SOAK=1 or " + importRowsVariable + "=100000 asks for it")
	}
	random := stacktest.Random(t)
	nats, database := stacktest.StartOwn(t, "--only", "nats"), stacktest.StartOwn(t, "--only", "influx")
	st := stacktest.StartOwn(t, "--only", "temporal,s3")
	st.Join(nats, database)
	b := newBench(t, st)
	file := bytes.NewBufferString("time,AT,RH\n")
	for n := range rows {
		at, warmth, humidity := largeRow(n)
		fmt.Fprintf(file, "%s,%g,%g\n", at.Format("2006-01-02 15:04:05"), warmth, humidity)
	}
	b.upload("meadow/large.csv", file.Bytes())
	t.Logf("%d rows, %d MiB", rows, file.Len()>>20)
	plain := writePlainly(b, rows)

	c := newChaos(t, random)
	c.addServers("NATS", nats)
	c.addServers("InfluxDB", database)
	extract := c.addWorker(b, "extract", "extract-0")
	c.addWorker(b, "load", "load-0")
	began := time.Now()
	const options = `heartbeat_timeout = "PT3S"
retry_backoff = { initial = "PT0.2S", max = "PT1S" }
`
	declare(b, fmt.Sprintf(`
[jobs.prepare_campbell_scientific_ldmp.files]
continuous = { interval = "PT0.1S" }
%[1]sspec = { organization = "meadow", location = "files", operation_mode = "bulk" }

[jobs.live_load_influx_v1.files]
continuous = { interval = "PT0.1S" }
%[1]sspec = { location = "files", operation_mode = "bulk", influx_url = %[2]q, batch_age = "PT0.2S" }

[jobs.import_file.large]
one_shot = {}
max_retry_count = 100
run_timeout = "PT12H"
%[1]s
[jobs.import_file.large.spec]
key = "meadow/large.csv"
organization = "meadow"
station = "north"
table = "large"
time_zone = "UTC"
csv = { time = ["time"] }
`, options, st.Influx))
	most := 0
	ended := func() bool {
		if p := extract(); !p.Ended() {
			most = max(most, stacktest.Memory(p.PID()))
		}
		run, err := b.client.Runs.Get(t.Context(), client.RunRef{WorkflowID: "job/import_file.large"})
		if err != nil || run.Ended.IsZero() {
			return false
		}
		require.Equal(t, client.RunCompleted, run.Status, run.Error)
		require.EqualValues(t, rows, run.Output.Counts["rows"])
		return true
	}
	strikes := 0
	for _, s := range c.schedule(60) {
		if c.await(5*time.Second, ended) {
			break
		}
		c.strike(s)
		strikes++
	}
	require.True(t, c.await(6*time.Hour, ended), "the end of the run")
	c.mend()
	read := time.Since(began)

	const measurement = "station_north_source_large"
	require.True(t, c.await(10*time.Minute, func() bool {
		counts, err := influx.Count(t.Context(), influx.Config{URL: st.Influx}, "files", measurement)
		return err == nil && counts["AT"] >= int64(rows)
	}), "all points in InfluxDB")
	loaded := time.Since(began)
	next := 0
	require.NoError(t, influx.Rows(t.Context(), influx.Config{URL: st.Influx}, "files", `SELECT "AT","RH" FROM "`+measurement+`"`, 2,
		func(at int64, values []jsontext.Value) error {
			want, warmth, humidity := largeRow(next)
			var got [2]float64
			for i, value := range values {
				if err := json.Unmarshal(value, &got[i]); err != nil {
					return fmt.Errorf("row %d: %w", next, err)
				}
			}
			if at != want.UnixNano() || got != [2]float64{warmth, humidity} {
				return fmt.Errorf("row %d is %d %v", next, at, got)
			}
			next++
			return nil
		}))
	require.Equal(t, rows, next)
	t.Logf("%d failures; published after %s, loaded after %s: %.0f rows/s; plain writes: %.0f rows/s; extract worker: %d MiB at most",
		strikes, read.Round(time.Second), loaded.Round(time.Second), float64(rows)/loaded.Seconds(), float64(rows)/plain.Seconds(), most>>20)
}

// writePlainly writes the rows by line protocol, 5,000 at a time, as the command of InfluxDB
// imports them.
func writePlainly(b *bench, rows int) time.Duration {
	b.Helper()
	writer, err := influx.NewWriter(influx.Config{URL: b.st.Influx})
	require.NoError(b, err)
	require.NoError(b, writer.CreateDatabase(b.Context(), "plain"))
	began := time.Now()
	var lines []byte
	for n := range rows {
		at, warmth, humidity := largeRow(n)
		lines, err = influx.AppendPoint(lines, influx.Point{Measurement: "large", Fields: map[string]any{"AT": warmth, "RH": humidity}, Time: at}, influx.Milliseconds)
		require.NoError(b, err)
		if (n+1)%5000 == 0 || n+1 == rows {
			require.NoError(b, writer.Write(b.Context(), influx.Target{Database: "plain", Precision: influx.Milliseconds}, lines))
			lines = lines[:0]
		}
	}
	return time.Since(began)
}
