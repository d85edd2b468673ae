package endtoend_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestASwitchFromRelease2 goes through the order of docs/from-release-2.md: a trial beside
// Release 2, the archive, the bookmarks, the live jobs, and what is needed for the way back.
func TestASwitchFromRelease2(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
	b := newBench(t, stacktest.StartOwn(t, "--only", "temporal,nats,influx,s3"))
	l := newLoggers(b, "switched", 2, 2*time.Hour, stacktest.Random(t))
	end := l.from.Add(time.Hour) // of Release 2
	l.now.Store(&end)
	document := l.release2(end)
	b.worker("extract")
	b.worker("load")

	// The trial has a flow and a database of its own.
	const archive = `
[jobs.post_to_archive.switched]
continuous = { interval = "PT0.1S" }
spec = { flush_age = "PT1S" }
`
	trial := l.flow("trial", "test", `database = "trial"`, `create_databases = ["trial"]`) + archive
	declare(b, trial)
	for _, table := range l.tables() {
		want := l.values(table, l.from, end)
		stacktest.WaitFor(t, "the trial of "+table.name(), func() (bool, error) {
			n, err := influx.Count(t.Context(), influx.Config{URL: b.st.Influx}, "trial", measurement(table.station.Name, table.Name))
			return n["AT_C_TMx"] == int64(len(want)), err
		})
		require.Equal(t, want, l.storedIn(b.st.Influx, "trial", measurement(table.station.Name, table.Name)))
	}

	// Release 2 has stopped. Its bookmarks are clocks of loggers.
	live := "extract_campbell_scientific_ldmp.live"
	for source, clock := range document {
		offset := l.offset(strings.Split(source, "$")[0])
		at := time.UnixMilli(clock).UTC().Format("2006-01-02T15:04:05") + offset
		b.ok("bookmarks", "set", live, strings.ReplaceAll(source, "$", "="), at, "--yes")
	}
	file := writeFile(t, "live.toml", l.flow("live", "live", `database = "station_{station}", measurement = "source_{table}"`, `drop_fields = ["_TMx$"]`)+archive)
	b.ok("apply", "--yes", "--prune", "--allow-mass-prune", "-f", file)
	require.Contains(t, b.ok("jobs", "list", "-o", "json"), live)
	l.pass(2 * time.Hour)

	// Before the bookmark there is what Release 2 has stored, and after it all that the
	// loggers have sent since.
	records := 0
	for _, table := range l.tables() {
		want := l.values(table, l.from, l.to)
		for at, values := range want {
			if at <= end.UnixMilli() {
				values["AT_C_TMx"], values["release_2"] = parseFloat(values["AT_C_TMx"]), 1.0
				delete(values, "Status")
			} else {
				delete(values, "AT_C_TMx") // a text, where this database has numbers
			}
			if at >= end.UnixMilli() {
				records++
			}
		}
		var got rows
		stacktest.WaitFor(t, table.name()+" in the database of Release 2", func() (bool, error) {
			got = l.storedIn(b.st.Influx, "station_"+table.station.Name, "source_"+strings.ToLower(table.Name))
			// A row may show before all its fields do.
			return len(got) == len(want) && countOf(got) >= countOf(want)-1, nil
		})
		// The record of the bookmark is read by both.
		if status, ok := got[end.UnixMilli()]["Status"]; ok {
			want[end.UnixMilli()]["Status"] = status
		}
		require.Equal(t, want, got, table.name())
	}
	raw := 0
	for _, message := range l.messages(pipeline.StreamRaw) {
		if message.Subject() == pipeline.RawSubject(pipeline.OperationLive, "switched", "csi") {
			raw++
		}
	}
	require.Equal(t, records, raw, "the live job has read what is not before the bookmarks, and each record once")
	require.JSONEq(t, `{"items": []}`, b.ok("quarantine", "list", "-o", "json"), "nothing was refused")

	// The way back: the positions are those that Release 2 needs.
	stacktest.WaitFor(t, "bookmarks at the last records", func() (bool, error) {
		return strings.Count(b.ok("bookmarks", "list", live, "-o", "json"), l.to.Format(time.RFC3339)) == len(document), nil
	})
	stacktest.WaitFor(t, "all to be archived", func() (bool, error) {
		positions, err := l.positions(pipeline.StreamRaw)
		done := err == nil && len(positions) > 0
		for _, p := range positions {
			done = done && p.Done()
		}
		return done, err
	})
	l.requireArchived()
}

// parseFloat gives of a date what Release 2 made of it: the number that the text begins
// with, its year.
func parseFloat(value any) float64 {
	if text, ok := value.(string); ok {
		year, _, _ := strings.Cut(text, "-")
		value, _ = strconv.ParseFloat(year, 64)
	}
	number, _ := value.(float64)
	return number
}

// loggersTable is a table of a logger.
type loggersTable struct {
	ldmptest.Table
	station ldmptest.Station
}

func (t loggersTable) name() string { return t.station.Name + " " + t.Name }

func (l *loggers) tables() []loggersTable {
	var tables []loggersTable
	for _, station := range l.Options().Stations {
		for _, table := range station.Tables {
			tables = append(tables, loggersTable{table, station})
		}
	}
	return tables
}

// values are the records of a table by their times.
func (l *loggers) values(table loggersTable, from, to time.Time) rows {
	l.Helper()
	readings, err := l.Readings(table.station.Name, table.Name, from, to)
	require.NoError(l, err)
	found := rows{}
	for _, r := range readings {
		values := map[string]any{}
		for name, value := range r.Values {
			values[name] = value
		}
		found[r.Time.UnixMilli()] = values
	}
	return found
}

// offset is that of a station's clock, as a time has it.
func (l *loggers) offset(station string) string {
	for _, s := range l.Options().Stations {
		if s.Name == station {
			return fmt.Sprintf("%+03d:00", int(s.UTCOffset.Hours()))
		}
	}
	l.Fatalf("there is no station %s", station)
	return ""
}

// release2 stores all records up to a time as Release 2 did: in databases and measurements of
// its names, with texts as the numbers that they begin with. It gives the bookmarks: clocks of
// loggers in milliseconds, as if these were UTC, by <station>$<table>.
func (l *loggers) release2(to time.Time) map[string]int64 {
	l.Helper()
	writer, err := influx.NewWriter(influx.Config{URL: l.st.Influx})
	require.NoError(l, err)
	bookmarks := map[string]int64{}
	for _, table := range l.tables() {
		database := "station_" + table.station.Name
		require.NoError(l, writer.CreateDatabase(l.Context(), database))
		var lines strings.Builder
		for at, values := range l.values(table, l.from, to) {
			fields := []string{"release_2=1"}
			for name, value := range values {
				if name != "Status" { // which begins with no number
					fields = append(fields, name+"="+strconv.FormatFloat(parseFloat(value), 'g', -1, 64))
				}
			}
			fmt.Fprintf(&lines, "source_%s %s %d\n", strings.ToLower(table.Name), strings.Join(fields, ","), at)
		}
		require.NoError(l, writer.Write(l.Context(), influx.Target{Database: database, Precision: "ms"}, []byte(lines.String())))
		bookmarks[table.station.Name+"$"+table.Name] = to.Add(table.station.UTCOffset).UnixMilli()
	}
	return bookmarks
}

// flow are the jobs of a flow, with further options of its prepare and load jobs.
func (l *loggers) flow(key, operation, prepare, load string) string {
	var stations []string
	for _, s := range l.Options().Stations {
		var names []string
		for _, table := range s.Tables {
			names = append(names, strconv.Quote(table.Name))
		}
		stations = append(stations, fmt.Sprintf("{ station = %q, utc_offset = %q, tables = [%s] }", s.Name, l.offset(s.Name), strings.Join(names, ", ")))
	}
	const often = `continuous = { interval = "PT0.1S" }`
	if load != "" {
		load = ", " + load
	}
	return fmt.Sprintf(`
[jobs.extract_campbell_scientific_ldmp.%[1]s]
%[7]s
[jobs.extract_campbell_scientific_ldmp.%[1]s.spec]
server = %[3]q
organization = "switched"
operation_mode = %[2]q
start_option = "at-oldest"
stations = [%[4]s]

[jobs.prepare_campbell_scientific_ldmp.%[1]s]
%[7]s
spec = { organization = "switched", location = "switched", operation_mode = %[2]q, %[5]s }

[jobs.live_load_influx_v1.%[1]s]
%[7]s
spec = { location = "switched", operation_mode = %[2]q, influx_url = %[8]q, batch_age = "PT0.2S"%[6]s }
`, key, operation, l.address, strings.Join(stations, ",\n  "), prepare, load, often, l.st.Influx)
}

// countOf counts the values of all rows.
func countOf(r rows) (n int) {
	for _, fields := range r {
		n += len(fields)
	}
	return n
}
