package endtoend_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/exports"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

const (
	// exportPointsVariable is how many values TestLargeExport exports.
	exportPointsVariable = "DENDRA_EXPORT_POINTS"
	exportFields         = 10
	// liveRounds is how often the speed of live loads is measured, without the export and beside it.
	liveRounds = 5
)

// exportedRow is what a row of the exported table has.
func exportedRow(n int) influx.Point {
	fields := make(map[string]any, exportFields)
	for f := range exportFields {
		fields[fmt.Sprintf("field_%d", f)] = exportedValue(n, f)
	}
	return influx.Point{Measurement: "station_ridge_source_large", Fields: fields, Time: time.Date(2020, 1, 1, 0, 0, n, 0, time.UTC)}
}

func exportedValue(row, field int) float64 { return float64((row*7919+field*104_729)%100_000) / 100 }

// TestLargeExport exports a table while its worker and InfluxDB are killed and stand still, and
// compares each value of the files with what was written. It tells the values a second beside
// one plain query of InfluxDB's own, the memory of the worker, and how much slower live loads
// into the same InfluxDB are meanwhile.
func TestLargeExport(t *testing.T) {
	t.Parallel()
	rows := asked(t, exportPointsVariable, 20_000_000) / exportFields
	random := stacktest.Random(t)
	database := stacktest.StartOwn(t, "--only", "influx")
	st := stacktest.StartOwn(t, "--only", "temporal,nats,s3,platform")
	st.Join(database)
	b := newBench(t, st)
	const organization = "5b0f155746a1b867a114e099"
	for _, r := range []*platformv1.Resource{
		{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{Id: organization, Name: "Lake", Slug: "lake"}}},
		{Resource: &platformv1.Resource_Station{Station: &platformv1.Station{
			Id: "5b0f155746a1b867a114e098", OrganizationId: organization, Name: "Ridge", Slug: "ridge", Database: "files",
		}}},
	} {
		_, err := platformtest.Put(t.Context(), platform.Config{URL: st.Platform.URL, Token: st.Platform.Token}, r, "")
		require.NoError(t, err)
	}
	writePlainly(b, "files", rows, exportedRow)
	began := time.Now()
	st.DiscardQuery(t, "files", `SELECT * FROM "station_ridge_source_large"`)
	plain := time.Since(began)
	b.worker("load")
	declare(b, fmt.Sprintf(`
[jobs.live_load_influx_v1.live]
continuous = { interval = "PT0.1S" }
spec = { location = "live", influx_url = %q, batch_age = "PT0.2S" }
`, st.Influx))
	live := &liveLoad{bench: b, pipeline: st.Pipeline(t)}
	alone := live.rounds(liveRounds)

	c := newChaos(t, random)
	c.addServers("InfluxDB", database)
	backend := c.addWorker(b, "backend", "backend-0", fmt.Sprintf(`DENDRA_PLACES={"locations":[{"location":"files","influx_url":%q}]}`, st.Influx))
	began = time.Now()
	declare(b, fmt.Sprintf(`
[jobs.export_datastreams.large]
one_shot = {}
max_retry_count = 100
run_timeout = "PT12H"
heartbeat_timeout = "PT3S"
retry_backoff = { initial = "PT0.2S", max = "PT1S" }
spec = { organization = "lake", stations = ["ridge"], location = "files", start = 2020-01-01T00:00:00Z, end = %s }
`, exportedRow(rows).Time.Format(time.RFC3339)))
	most := 0
	var run *client.RunDetail
	ended := func() bool {
		most = max(most, stacktest.Memory(backend().PID()))
		var err error
		run, err = b.client.Runs.Get(t.Context(), client.RunRef{WorkflowID: "job/export_datastreams.large"})
		return err == nil && !run.Ended.IsZero()
	}
	beside := live.rounds(liveRounds)
	require.False(t, ended(), "live loads were to be measured beside the export: ask for more values")
	strikes := c.strikeUntil("the end of the run", ended)
	took := time.Since(began)
	require.Equal(t, client.RunCompleted, run.Status, run.Error)
	b.requireExported(run, rows)
	values := float64(rows * exportFields)
	t.Logf("%d failures; %.0f values in %s: %.0f values/s; one plain query: %.0f values/s; backend worker: %d MiB at most; live loads of %d messages: %.0f messages/s alone, %.0f beside the export",
		strikes, values, took.Round(time.Second), values/took.Seconds(), values/plain.Seconds(), most>>20, liveMessages, alone, beside)
}

// requireExported compares the files of an export with what was written.
func (b *bench) requireExported(run *client.RunDetail, rows int) {
	b.Helper()
	var report exports.Report
	require.NoError(b, json.Unmarshal(run.Output.Output, &report))
	text, _, err := b.store.Get(b.Context(), report.Bucket, report.Manifest, 16<<20)
	require.NoError(b, err)
	var manifest exports.Manifest
	require.NoError(b, json.Unmarshal(text, &manifest))
	next := 0
	var want []byte
	for _, part := range manifest.Parts {
		file, _, err := b.store.Get(b.Context(), report.Bucket, part.Key, 1<<30)
		require.NoError(b, err)
		unpacked, err := gzip.NewReader(bytes.NewReader(file))
		require.NoError(b, err)
		lines := bufio.NewScanner(unpacked)
		require.True(b, lines.Scan())
		require.True(b, strings.HasPrefix(lines.Text(), "time,field_0,field_1"), lines.Text())
		for lines.Scan() {
			want = time.Date(2020, 1, 1, 0, 0, next, 0, time.UTC).AppendFormat(want[:0], time.RFC3339)
			for f := range exportFields {
				want = strconv.AppendFloat(append(want, ','), exportedValue(next, f), 'f', -1, 64)
			}
			if !bytes.Equal(want, lines.Bytes()) {
				require.Equal(b, string(want), lines.Text(), "row %d", next)
			}
			next++
		}
		require.NoError(b, lines.Err())
	}
	require.Equal(b, rows, next)
}

// liveLoad publishes messages of one point with eight fields each, for a load of the location
// live.
type liveLoad struct {
	*bench

	pipeline *pipeline.Client
	sent     int
}

// liveMessages is how many messages are loaded in a round.
const liveMessages = 20_000

// rounds gives the median of the messages a second of n rounds.
func (l *liveLoad) rounds(n int) float64 {
	l.Helper()
	var speeds []float64
	for range n {
		messages := make([]pipeline.Outgoing, liveMessages)
		for i := range messages {
			l.sent++
			var fields strings.Builder
			for f := range 8 {
				fmt.Fprintf(&fields, `,"field_%d":%g`, f, exportedValue(l.sent, f))
			}
			messages[i] = pipeline.Outgoing{Subject: pipeline.PrepSubject(pipeline.OperationLive, "live"), Body: fmt.Appendf(nil,
				`{"context":{"imported_at":"2026-03-04T12:00:00Z"},"payload":{"options":{"database":"live"},"points":[{"measurement":"m%d","fields":{%s},"time":%d}]}}`,
				l.sent%20, fields.String()[1:], l.sent*1000)}
		}
		began := time.Now()
		_, err := l.pipeline.Publish(l.Context(), messages)
		require.NoError(l, err)
		stacktest.WaitFor(l, "the live load", func() (bool, error) {
			position, err := stacktest.PositionOf(l.Context(), l.pipeline.JetStream(), pipeline.StreamPrepared, "load-live-live")
			return err == nil && position.Done(), err
		})
		speeds = append(speeds, liveMessages/time.Since(began).Seconds())
	}
	slices.Sort(speeds)
	return speeds[len(speeds)/2]
}
