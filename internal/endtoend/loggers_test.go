package endtoend_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// loggers is a LoggerNet server whose day a test lets go by, and the jobs that
// bring its records into InfluxDB.
type loggers struct {
	*bench
	*ldmptest.Server
	name    string
	address string
	from    time.Time
	now     atomic.Pointer[time.Time]
	planted map[string]bool // frames that are no records
}

// newLoggers has the day before now.
func newLoggers(b *bench, name string, stations int, seed uint64) *loggers {
	b.Helper()
	l := &loggers{bench: b, name: name, from: time.Now().UTC().Truncate(time.Hour).Add(-25 * time.Hour), planted: map[string]bool{}}
	l.now.Store(&l.from)
	l.Server = ldmptest.New(ldmptest.Options{
		Ledger: true, Seed: seed, Now: func() time.Time { return *l.now.Load() },
		Stations: ldmptest.Stations(stations,
			ldmptest.Table{Name: "OneMin", Interval: time.Minute, Since: l.from, ResetEvery: 500},
			ldmptest.Table{Name: "FiveMin", Interval: 5 * time.Minute, Since: l.from},
			ldmptest.Table{Name: "TenMin", Since: l.from},
			ldmptest.Table{Name: "Hourly", Interval: time.Hour, Since: l.from}),
	})
	l.listen()
	b.Cleanup(l.Stop)
	return l
}

func (l *loggers) listen() {
	l.Helper()
	address := l.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp4", address)
	require.NoError(l, err)
	l.address = listener.Addr().String()
	l.Start(listener, nil)
}

// pass lets time go by.
func (l *loggers) pass(d time.Duration) {
	now := l.now.Load().Add(d)
	l.now.Store(&now)
	l.Touch()
}

func (l *loggers) jobs() string {
	const options = `
continuous = { interval = "PT0.1S" }
heartbeat_timeout = "PT3S"
retry_backoff = { initial = "PT0.2S", max = "PT1S" }
`
	var stations strings.Builder
	for _, s := range l.Options().Stations {
		fmt.Fprintf(&stations, "  { station = %q, utc_offset = \"%+03d:00\", tables = [\"OneMin\", \"FiveMin\", \"TenMin\", \"Hourly\"] },\n",
			s.Name, s.UTCOffset/time.Hour)
	}
	return fmt.Sprintf(`
[jobs.extract_campbell_scientific_ldmp.%[1]s]%[2]s
[jobs.extract_campbell_scientific_ldmp.%[1]s.spec]
server = "%[3]s"
organization = "%[1]s"
stations = [
%[4]s]

[jobs.prepare_campbell_scientific_ldmp.%[1]s]%[2]s
[jobs.prepare_campbell_scientific_ldmp.%[1]s.spec]
organization = "%[1]s"
location = "%[1]s"

[jobs.live_load_influx_v1.%[1]s]%[2]s
[jobs.live_load_influx_v1.%[1]s.spec]
location = "%[1]s"
influx_url = "%[5]s"
batch_age = "PT0.2S"
`, l.name, options, l.address, stations.String(), l.st.Influx)
}

// acknowledged waits until the server has acknowledgements for so many records.
func (l *loggers) acknowledged(n int) {
	l.Helper()
	stacktest.WaitFor(l, fmt.Sprintf("%d acknowledged records", n), func() (bool, error) {
		_, acknowledged := l.Total()
		return acknowledged >= int64(n), nil
	})
}

// plant has frames that are no records come in the place of some, at any time of
// the day.
func (l *loggers) plant(random *rand.Rand) {
	l.Helper()
	minutes := random.Perm(24 * 60)
	for name, frame := range ldmptest.Malformed() {
		if name == "too long" {
			continue // a hundred kilobytes say nothing more here
		}
		station := l.Options().Stations[random.IntN(len(l.Options().Stations))].Name
		at := l.from.Add(time.Duration(minutes[len(l.planted)]) * time.Minute)
		require.NoError(l, l.Replace(station, "OneMin", at, frame))
		l.planted[string(frame)] = true
	}
	foreign := ldmptest.Encode(ldmp.Record{Number: 1, Station: "stn_99", Table: "OneMin", Time: "2026-01-01T00:00:00"})
	require.NoError(l, l.Replace("stn_0", "Hourly", l.from.Add(7*time.Hour), foreign))
	l.planted[string(foreign)] = true
}

type rows map[int64]map[string]any

// ledger is what the server's tables hold, by measurement and time.
func (l *loggers) ledger() map[string]rows {
	l.Helper()
	all := map[string]rows{}
	for _, station := range l.Options().Stations {
		for _, table := range station.Tables {
			readings, err := l.Readings(station.Name, table.Name, l.from, l.from.Add(48*time.Hour))
			require.NoError(l, err)
			found := rows{}
			for _, r := range readings {
				found[r.Time.UnixMilli()] = r.Values
			}
			all["station_"+station.Name+"_source_"+strings.ToLower(table.Name)] = found
		}
	}
	return all
}

// stored reads a measurement from InfluxDB.
func (l *loggers) stored(measurement string) rows {
	l.Helper()
	series, err := influx.Query(l.Context(), influx.Config{URL: l.st.Influx}, l.name, `SELECT * FROM "`+measurement+`"`)
	require.NoError(l, err)
	require.Len(l, series, 1)
	found := rows{}
	for _, row := range series[0].Values {
		at, err := row[0].(json.Number).Int64()
		require.NoError(l, err)
		values := map[string]any{}
		for i, column := range series[0].Columns[1:] {
			switch value := row[i+1].(type) {
			case nil:
			case json.Number:
				values[column], err = value.Float64()
				require.NoError(l, err)
			default:
				values[column] = value
			}
		}
		found[at] = values
	}
	return found
}

func (l *loggers) quarantine() []jetstream.Msg {
	l.Helper()
	client, err := pipeline.Connect(l.Context(), l.st.NATS)
	require.NoError(l, err)
	defer client.Close()
	require.NoError(l, client.Ready(l.Context()))
	consumer, err := client.JetStream().CreateConsumer(l.Context(), pipeline.StreamQuarantine, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy})
	require.NoError(l, err)
	batch, err := consumer.Fetch(max(1, int(consumer.CachedInfo().NumPending)), jetstream.FetchMaxWait(10*time.Second))
	require.NoError(l, err)
	var messages []jetstream.Msg
	for message := range batch.Messages() {
		messages = append(messages, message)
	}
	return messages
}

// TestADayOfLoggersThroughEveryFailure lets a day go by while the LoggerNet
// server, the workers and the servers under them die at random, and compares
// InfluxDB with the server's ledger, value by value.
func TestADayOfLoggersThroughEveryFailure(t *testing.T) {
	t.Parallel()
	random := newRandom(t)
	b := newBench(t, stacktest.StartOwn(t))
	l := newLoggers(b, "loggers", 5, random.Uint64())
	l.plant(random)
	extract, load := b.worker("extract"), b.worker("load")
	declare(b, l.jobs())

	var hole *ldmptest.Hole
	failures := []struct {
		name string
		do   func()
	}{
		{"the connection is cut", func() { l.Cut() }},
		{"the LoggerNet server restarts", func() { l.Stop(); l.listen() }},
		{"the extract worker dies", func() { extract.Kill(); extract = b.worker("extract") }},
		{"the connection is cut again", func() { l.Cut() }},
		{"the servers die", func() { b.st.Kill(); b.st.Restart(t) }},
		{"the extract worker is drained", func() { b.drain(extract); extract = b.worker("extract") }},
		{"the load worker dies", func() { load.Kill(); load = b.worker("load") }},
		{"a hole is not collected until the end of the day", func() {
			from := l.now.Load().Add(10 * time.Minute)
			var err error
			hole, err = l.OpenHole("stn_1", "OneMin", from, from.Add(30*time.Minute))
			require.NoError(t, err)
		}},
	}
	random.Shuffle(len(failures), func(i, j int) { failures[i], failures[j] = failures[j], failures[i] })
	for _, failure := range failures {
		_, before := l.Total()
		l.pass(3 * time.Hour)
		l.acknowledged(int(before) + 1 + random.IntN(600))
		_, acknowledged := l.Total()
		t.Logf("after %d acknowledgements: %s", acknowledged, failure.name)
		failure.do()
	}

	hole.Fill()
	expected := l.ledger()
	stacktest.WaitFor(t, "the day in InfluxDB", func() (bool, error) {
		for _, measurement := range slices.Sorted(maps.Keys(expected)) {
			counts, err := influx.Count(t.Context(), influx.Config{URL: b.st.Influx}, l.name, measurement)
			if err != nil && strings.Contains(err.Error(), "database not found") {
				return false, nil //nolint:nilerr // nothing is loaded yet
			}
			if err != nil || counts["AT_C_TMx"] < int64(len(expected[measurement])) {
				return false, err
			}
		}
		return true, nil
	})
	points := 0
	for measurement, want := range expected {
		require.Equal(t, want, l.stored(measurement), measurement)
		points += len(want)
	}
	require.Equal(t, 5*(24*60+1+24*12+1+24*6+1+24+1)-len(l.planted), points)

	kept := map[string]bool{}
	for _, message := range l.quarantine() {
		require.False(t, kept[string(message.Data())], "kept once: %s", message.Data())
		kept[string(message.Data())] = true
	}
	require.Equal(t, l.planted, kept)
	for _, station := range l.Options().Stations {
		for _, table := range station.Tables {
			account, err := l.Account(station.Name, table.Name)
			require.NoError(t, err)
			require.Empty(t, account.Unacknowledged, "%s %s", station.Name, table.Name)
		}
	}
}
