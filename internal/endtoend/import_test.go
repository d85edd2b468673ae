package endtoend_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/loggerfilestest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

const importJobs = `
[jobs.prepare_campbell_scientific_ldmp.files]
continuous = { interval = "PT0.1S" }
heartbeat_timeout = "PT3S"

[jobs.prepare_campbell_scientific_ldmp.files.spec]
organization = "meadow"
location = "files"
operation_mode = "bulk"

[jobs.live_load_influx_v1.files]
continuous = { interval = "PT0.1S" }

[jobs.live_load_influx_v1.files.spec]
location = "files"
operation_mode = "bulk"
influx_url = "%s"
batch_age = "PT0.2S"

[jobs.import_file.card]
one_shot = {}
heartbeat_timeout = "PT2S"

[jobs.import_file.card.spec]
key = "meadow/card.dat"
organization = "meadow"
station = "north"
time_zone = "-08:00"
`

// TestFileOfAKilledWorkerIsImported kills the worker in the middle of a TOB3 file, and finds
// every value of the file in InfluxDB.
func TestFileOfAKilledWorkerIsImported(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	b := newBench(t, stacktest.StartOwn(t))
	const rows = 30_000
	table := loggerfilestest.Table{
		Station: "card", Name: "TenMin", Interval: 10 * time.Minute,
		Columns: []loggerfilestest.Column{{Name: "AT_C", Units: "degC", Type: "FP2"}, {Name: "Wide", Type: "ASCII(16)"}},
	}
	start := time.Date(2024, 2, 1, 0, 0, 0, 0, time.UTC)
	for i := range rows {
		table.Rows = append(table.Rows, loggerfilestest.Row{
			Shown: start.Add(time.Duration(i) * table.Interval), Number: uint32(i),
			Values: []any{loggerfilestest.FP2{Magnitude: random.IntN(8000), Decimals: random.IntN(4), Negative: random.IntN(2) == 0}, "ok"},
		})
	}
	file := table.TOB3(loggerfilestest.TOB3Options{Stamp: 4711})
	b.upload("meadow/card.dat", file)
	raw := b.st.Pipeline(t)
	require.NoError(t, raw.Ready(t.Context()))
	first := b.worker("extract")
	b.worker("load")
	declare(b, fmt.Sprintf(importJobs, b.st.Influx))

	published := func() uint64 {
		state, err := raw.StreamState(t.Context(), pipeline.StreamRaw)
		require.NoError(t, err)
		return state.Last
	}
	stacktest.WaitFor(t, "the first rows", func() (bool, error) { return published() > 1000, nil })
	first.Kill()
	killedAt := published()
	require.Less(t, killedAt, uint64(rows), "the run was to be cut off")
	b.worker("extract")
	stacktest.WaitFor(t, "the run to complete", func() (bool, error) {
		run, err := b.client.Runs.Get(t.Context(), client.RunRef{WorkflowID: "job/import_file.card"})
		if err != nil || run.Ended.IsZero() {
			return false, err
		}
		require.Equal(t, client.RunCompleted, run.Status, run.Error)
		require.EqualValues(t, rows, run.Output.Counts["rows"])
		return true, nil
	})
	t.Logf("killed after %d of %d rows", killedAt, rows)

	const measurement = "station_north_source_tenmin"
	server := influx.Config{URL: b.st.Influx}
	stacktest.WaitFor(t, "all points", func() (bool, error) {
		counts, err := influx.Count(t.Context(), server, "files", measurement)
		return counts["AT_C"] >= rows, err
	})
	found, err := influx.Query(t.Context(), server, "files", `SELECT "AT_C", "Wide" FROM "`+measurement+`"`)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Len(t, found[0].Values, rows)
	for i, values := range found[0].Values {
		at, err := values[0].(json.Number).Int64()
		require.NoError(t, err)
		value, err := values[1].(json.Number).Float64()
		require.NoError(t, err)
		row := table.Rows[i]
		want := row.Values[0].(loggerfilestest.FP2).Float()
		require.Equal(t, row.Shown.Add(8*time.Hour).UnixMilli(), at)
		require.InDelta(t, want, value, 1e-9)
		require.Equal(t, "ok", values[2])
	}

	// The same file once more, by its own command: nothing is uploaded and nothing published.
	before := published()
	const organization = "5b0f155746a1b867a114e099"
	for _, r := range []*platformv1.Resource{
		{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{Id: organization, Name: "Meadow", Slug: "meadow"}}},
		{Resource: &platformv1.Resource_Station{Station: &platformv1.Station{
			Id: "5b0f155746a1b867a114e098", OrganizationId: organization, Name: "North", Slug: "north", Database: "files",
		}}},
	} {
		_, err = platformtest.Put(t.Context(), platform.Config{URL: b.st.Platform.URL, Token: b.st.Platform.Token}, r, "")
		require.NoError(t, err)
	}
	card := writeFile(t, "card.dat", string(file))
	for _, want := range []string{`: 0 stored, 30000 repeated`, ` was imported by run`} {
		require.Regexp(t, `uploads/5b0f155746a1b867a114e099/imports/[0-9a-f]{16}/card\.dat`+want, b.ok("import", card, "--organization", "meadow", "--station", "north", "--time-zone", "-08:00"))
		require.Equal(t, before, published())
	}

	// What was imported can be downloaded.
	b.worker("backend", fmt.Sprintf(`DENDRA_PLACES={"locations":[{"location":"files","influx_url":%q}]}`, b.st.Influx))
	folder := t.TempDir()
	b.ok("export", "--organization", "meadow", "--station", "north", "--location", "files",
		"--start", "2024-01-01T00:00:00Z", "--end", "2025-01-01T00:00:00Z", "--download", folder, "--spec", `{"compression": "none"}`)
	exported, err := filepath.Glob(filepath.Join(folder, "*.csv*"))
	require.NoError(t, err)
	lines := 0
	for _, name := range exported {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		lines += strings.Count(string(text), "\n") - 1 // without the header
	}
	require.Equal(t, rows, lines)
}
