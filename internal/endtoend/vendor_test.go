package endtoend_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// location is a place with two loggers, from the vendor to the database.
type location struct {
	*bench
	name     string
	vendor   *hobolinktest.Handler
	url      string    // of the vendor
	now      time.Time // that of the loggers, which stands still
	influx   string    // URL of the database that the loader writes to
	pipeline *pipeline.Client
}

// newLocation starts a vendor whose loggers have measured until a moment ago.
func newLocation(b *bench, name string, seed uint64) *location {
	b.Helper()
	client := b.st.Pipeline(b)
	l := &location{bench: b, name: name, now: time.Now().UTC(), influx: b.st.Influx, pipeline: client}
	l.vendor = hobolinktest.NewHandler(hobolinktest.Options{
		Interval: 5 * time.Minute, Seed: seed, RateLimit: 1000, Token: "token-of-" + name,
		Now: func() time.Time { return l.now },
	})
	l.url = stacktest.Serve(b, l.vendor)
	return l
}

// secret is the variable with the token, for the extract worker.
func (l *location) secret() string {
	return "DENDRA_SECRET_" + strings.ToUpper(l.name) + "=" + l.vendor.Options().Token
}

// jobs is the jobs file of the location.
func (l *location) jobs(backfill, increment string, batchPoints int) string {
	loggers := l.vendor.Options().Loggers
	return fmt.Sprintf(`
[jobs.extract_hobo_time_frame.%[1]s]
recurring = { recur_every = "P1D" }
heartbeat_timeout = "PT6S"
max_retry_count = 20
retry_backoff = { initial = "PT0.2S", max = "PT2S" }

[jobs.extract_hobo_time_frame.%[1]s.spec]
base_url = "%[2]s"
token = "secret://%[1]s"
organization = "ucnrs"
location = "%[1]s"
backfill = "%[3]s"
increment = "%[4]s"
loggers = [
  { serial = "%[5]s", station = "Blue Oak", measurement = "blue_oak" },
  { serial = "%[6]s", station = "Rancho", measurement = "rancho" },
]

[jobs.live_load_influx_v1.%[1]s]
continuous = { interval = "PT0.1S" }
heartbeat_timeout = "PT6S"
retry_backoff = { initial = "PT0.2S", max = "PT2S" }

[jobs.live_load_influx_v1.%[1]s.spec]
location = "%[1]s"
influx_url = "%[7]s"
batch_points = %[8]d
batch_age = "PT0.2S"
`, l.name, l.url, backfill, increment, loggers[0], loggers[1], l.influx, batchPoints)
}

func (l *location) extractJob() string { return "extract_hobo_time_frame." + l.name }
func (l *location) loadJob() string    { return "live_load_influx_v1." + l.name }

// measurements are those of the loggers, in their order.
func measurements() []string { return []string{"blue_oak", "rancho"} }

// values holds the fields of a measurement by time, in Unix milliseconds.
type values map[int64]map[string]float64

// ledger is what the loggers have measured since the first moment that was asked
// for: by measurement.
func (l *location) ledger() map[string]values {
	l.Helper()
	all := map[string]values{}
	for i, logger := range l.vendor.Options().Loggers {
		var first time.Time
		for _, request := range l.vendor.Requests() {
			if slices.Contains(request.Loggers, logger) && (first.IsZero() || request.Start.Before(first)) {
				first = request.Start
			}
		}
		require.False(l, first.IsZero(), "logger %s was never asked for", logger)
		measured := values{}
		for _, o := range l.vendor.Observations(logger, first, l.now) {
			at := o.Time.UnixMilli()
			if measured[at] == nil {
				measured[at] = map[string]float64{}
			}
			measured[at][pipeline.SafeName(o.MeasurementType+"_"+o.Sensor+"_"+o.DataType+"_"+o.Unit)] = o.Value
		}
		all[measurements()[i]] = measured
	}
	return all
}

// points is how many times of a measurement InfluxDB has. Every time has every
// field, so that any field tells.
func (l *location) points(measurement string) (int64, error) {
	counts, err := influx.Count(l.Context(), influx.Config{URL: l.st.Influx}, l.name, measurement)
	if err != nil && !strings.Contains(err.Error(), "database not found") {
		return 0, err
	}
	for _, n := range counts {
		return n, nil
	}
	return 0, nil
}

func (l *location) allPoints() (int64, error) {
	var total int64
	for _, measurement := range measurements() {
		n, err := l.points(measurement)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// requireStored compares every value in InfluxDB with the ledger.
func (l *location) requireStored() {
	l.Helper()
	for measurement, measured := range l.ledger() {
		counts, err := influx.Count(l.Context(), influx.Config{URL: l.st.Influx}, l.name, measurement)
		require.NoError(l, err)
		require.Len(l, counts, 11)
		for field, n := range counts {
			require.EqualValues(l, len(measured), n, "%s of %s", field, measurement)
		}
		require.Equal(l, measured, l.stored(measurement), measurement)
	}
}

func (l *location) stored(measurement string) values {
	l.Helper()
	rows, err := influx.Query(l.Context(), influx.Config{URL: l.st.Influx}, l.name, `SELECT * FROM "`+measurement+`"`)
	require.NoError(l, err)
	require.Len(l, rows, 1)
	number := func(value any) json.Number {
		n, ok := value.(json.Number)
		if !ok {
			l.Fatalf("a value of %s is a %T", measurement, value)
		}
		return n
	}
	found := make(values, len(rows[0].Values))
	for _, row := range rows[0].Values {
		at, err := number(row[0]).Int64()
		require.NoError(l, err)
		fields := make(map[string]float64, len(row)-1)
		for i, column := range rows[0].Columns[1:] {
			fields[column], err = number(row[i+1]).Float64()
			require.NoError(l, err)
		}
		found[at] = fields
	}
	return found
}

// total is how many points the ledger has.
func (l *location) total() int64 {
	l.Helper()
	var n int64
	for _, measured := range l.ledger() {
		n += int64(len(measured))
	}
	return n
}

// declare brings Temporal in line with a jobs file, which then is as declared.
func declare(b *bench, text string) {
	b.Helper()
	file := writeFile(b.T, "jobs.toml", text)
	b.ok("apply", "--yes", "-f", file)
	b.ok("plan", "-f", file)
}

// progress tells how far the loader of the location is: the sequence up to which all
// is acknowledged, and whether that is the last one.
func (l *location) progress() (acknowledged uint64, all bool) {
	l.Helper()
	position, err := stacktest.PositionOf(l.Context(), l.pipeline.JetStream(), pipeline.StreamPrepared, "load-live-"+l.name)
	require.NoError(l, err)
	return position.Acknowledged, position.Done()
}

// prepared is how many messages the loader of the location is given.
func (l *location) prepared() uint64 {
	l.Helper()
	stream, err := l.pipeline.JetStream().Stream(l.Context(), pipeline.StreamPrepared)
	require.NoError(l, err)
	subject := pipeline.PrepSubject(pipeline.OperationLive, l.name)
	info, err := stream.Info(l.Context(), jetstream.WithSubjectFilter(subject))
	require.NoError(l, err)
	return info.State.Subjects[subject]
}

// firstStart is the beginning of the first window that was asked for.
func (l *location) firstStart(t *testing.T) time.Time {
	t.Helper()
	requests := l.vendor.Requests()
	require.NotEmpty(t, requests)
	return requests[0].Start
}
