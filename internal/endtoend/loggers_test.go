package endtoend_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// loggers is a LoggerNet server whose days a test lets go by, and the jobs that
// bring its records into InfluxDB.
type loggers struct {
	*bench
	*ldmptest.Server
	name     string
	address  string
	pipeline *pipeline.Client
	mirrors  []*stacktest.Stack // further databases
	from     time.Time          // time of the first records
	to       time.Time          // time of the last ones
	now      atomic.Pointer[time.Time]
	planted  []planted
}

// recordInterval is that of all tables.
const recordInterval = time.Minute

// newLoggers has days that ended an hour ago, in four tables for each station.
func newLoggers(b *bench, name string, stations int, days time.Duration, random *rand.Rand) *loggers {
	b.Helper()
	client := b.st.Pipeline(b)
	to := time.Now().UTC().Truncate(time.Hour).Add(-time.Hour)
	l := &loggers{bench: b, name: name, pipeline: client, from: to.Add(-days), to: to}
	l.now.Store(&l.from)
	table := func(name string, resetEvery int64) ldmptest.Table {
		return ldmptest.Table{Name: name, Interval: recordInterval, Since: l.from, ResetEvery: resetEvery}
	}
	l.Server = ldmptest.New(ldmptest.Options{
		Ledger: true, Seed: random.Uint64(), Now: func() time.Time { return *l.now.Load() },
		Window: 1 + random.IntN(8),
		Stations: ldmptest.Stations(stations,
			table("OneMin", 0), table("Wind", 500), table("Soil", 0), table("Status", 1+random.Int64N(1000))),
	})
	l.listen()
	b.Cleanup(l.Stop)
	return l
}

// listen takes connections, always on the same port.
func (l *loggers) listen() {
	l.Helper()
	var listener net.Listener
	var err error
	if l.address != "" {
		listener, err = net.Listen("tcp4", l.address)
	} else {
		// Below the ports of outgoing connections: one of those could have the port
		// while the server is down.
		for range 100 {
			port := 12_000 + rand.IntN(6_000)
			if listener, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
				break
			}
		}
	}
	require.NoError(l, err)
	l.address = listener.Addr().String()
	l.Start(listener, nil)
}

// pass lets time go by, at most to the end.
func (l *loggers) pass(d time.Duration) {
	now := l.now.Load().Add(d)
	if now.After(l.to) {
		now = l.to
	}
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
		names := make([]string, len(s.Tables))
		for i, table := range s.Tables {
			names[i] = strconv.Quote(table.Name)
		}
		fmt.Fprintf(&stations, "  { station = %q, utc_offset = \"%+03d:00\", tables = [%s] },\n",
			s.Name, s.UTCOffset/time.Hour, strings.Join(names, ", "))
	}
	var mirrors strings.Builder
	for i, mirror := range l.mirrors {
		fmt.Fprintf(&mirrors, "{ name = \"mirror-%d\", influx_url = %q }, ", i+1, mirror.Influx)
	}
	return fmt.Sprintf(`
[jobs.extract_campbell_scientific_ldmp.%[1]s]%[2]s
[jobs.extract_campbell_scientific_ldmp.%[1]s.spec]
server = "%[3]s"
organization = "%[1]s"
start_option = "at-oldest"
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
mirrors = [%[6]s]
batch_age = "PT0.2S"

[jobs.post_to_archive.%[1]s]%[2]s
spec = { flush_age = "PT1S", flush_messages = 5000 }
`, l.name, options, l.address, stations.String(), l.st.Influx, mirrors.String())
}

// databases are the URLs of all mirrors, the first one's first.
func (l *loggers) databases() []string {
	urls := []string{l.st.Influx}
	for _, mirror := range l.mirrors {
		urls = append(urls, mirror.Influx)
	}
	return urls
}

// acknowledged is how many acknowledgements the server has, repeats included.
func (l *loggers) acknowledged() int64 {
	_, n := l.Total()
	return n
}

// rows are points by their time in milliseconds, each with its fields.
type rows map[int64]map[string]any

func measurement(station, table string) string {
	return "station_" + station + "_source_" + strings.ToLower(table)
}

// ledger is what the database has to hold, by measurement: what the server's
// tables hold, and the points that are in what was planted.
func (l *loggers) ledger() map[string]rows {
	l.Helper()
	all := map[string]rows{}
	for _, station := range l.Options().Stations {
		for _, table := range station.Tables {
			readings, err := l.Readings(station.Name, table.Name, l.from, l.to)
			require.NoError(l, err)
			found := rows{}
			for _, r := range readings {
				found[r.Time.UnixMilli()] = r.Values
			}
			all[measurement(station.Name, table.Name)] = found
		}
	}
	for _, p := range l.planted {
		if p.values == nil {
			continue
		}
		table, at := all[measurement(p.station, p.table)], p.at.UnixMilli()
		point := map[string]any{}
		for _, values := range []map[string]any{table[at], p.values} { // a later value wins, field by field
			for name, value := range values {
				point[name] = value
			}
		}
		table[at] = point
	}
	return all
}

// measurements lists what a mirror has.
func (l *loggers) measurements(url string) []string {
	l.Helper()
	series, err := influx.Query(l.Context(), influx.Config{URL: url}, l.name, "SHOW MEASUREMENTS")
	require.NoError(l, err)
	require.Len(l, series, 1)
	var names []string
	for _, row := range series[0].Values {
		names = append(names, fmt.Sprint(row[0]))
	}
	return names
}

// stored reads a measurement from a mirror.
func (l *loggers) stored(url, measurement string) rows {
	l.Helper()
	return l.storedIn(url, l.name, measurement)
}

// storedIn reads a measurement of a database.
func (l *loggers) storedIn(url, database, measurement string) rows {
	l.Helper()
	series, err := influx.Query(l.Context(), influx.Config{URL: url}, database, `SELECT * FROM "`+measurement+`"`)
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
