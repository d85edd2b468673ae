package load_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// TestTwoDaysFromVendorToDatabase pulls two days of two loggers in time frames of
// six hours, and compares every value in InfluxDB with what the vendor measured.
func TestTwoDaysFromVendorToDatabase(t *testing.T) {
	t.Parallel()
	b := newBench(t, "twodays", stacktest.Start(t))
	now := noon.Add(7*time.Minute + 30*time.Second)
	vendor := hobolinktest.NewHandler(hobolinktest.Options{Token: "token-of-twodays", Seed: 5, Now: func() time.Time { return now }})
	server := stacktest.Serve(t, vendor)
	loggers := vendor.Options().Loggers
	start := noon.Add(-48 * time.Hour)

	extractType := extract.HoboTimeFrame(b.client, extract.WithNow(vendor.Options().Now), extract.WithHTTPClient(&http.Client{}))
	spec := extract.HoboTimeFrameSpec{
		BaseURL: server, Token: "secret://hobolink", Organization: "ucnrs", Location: b.name, Start: start,
		Increment: job.Duration(6 * time.Hour),
		Loggers: []extract.HoboLogger{
			{Serial: loggers[0], Station: "Blue Oak", Measurement: "m"},
			{Serial: loggers[1], Station: "Rancho"},
		},
	}
	pull := func() job.Result {
		definition := jobtest.NewJob(extractType, b.name, job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour)}}, spec)
		result, err := extractType.Handle(t.Context(), jobtest.NewRun(definition,
			jobtest.WithSecrets(map[job.SecretRef]string{"secret://hobolink": "token-of-twodays"})))
		require.NoError(t, err)
		return result
	}

	result := pull()
	require.EqualValues(t, 2*9, result.Counts["windows"], "eight frames and the current one, for each logger")
	counts := b.drain(t)
	require.EqualValues(t, result.Counts["prepared"], counts["points"])
	compare := func() {
		total := 0
		for i, measurement := range []string{"m", "station_rancho_source_" + loggers[1]} {
			ledger := vendor.Observations(loggers[i], start, now)
			want := map[int64]map[string]float64{}
			for _, o := range ledger {
				row := want[o.Time.UnixMilli()]
				if row == nil {
					row = map[string]float64{}
					want[o.Time.UnixMilli()] = row
				}
				row[pipeline.SafeName(o.MeasurementType+"_"+o.Sensor+"_"+o.DataType+"_"+o.Unit)] = o.Value
			}
			rows, err := influx.Query(t.Context(), b.influx, b.name, `SELECT * FROM "`+measurement+`"`)
			require.NoError(t, err)
			require.Len(t, rows, 1)
			got := map[int64]map[string]float64{}
			for _, values := range rows[0].Values {
				row := map[string]float64{}
				var at int64
				for c, column := range rows[0].Columns {
					number, ok := values[c].(json.Number)
					require.True(t, ok, "%s is a %T", column, values[c])
					if column == "time" {
						at, err = number.Int64()
						require.NoError(t, err)
						continue
					}
					row[column], err = number.Float64()
					require.NoError(t, err)
					total++
				}
				got[at] = row
			}
			require.Equal(t, want, got, measurement)
		}
		require.Equal(t, 2*(48*12+2)*11, total)
	}
	compare()

	// Once more: nothing is new to the pipeline, with a bookmark and without.
	result = pull()
	require.Zero(t, result.Counts["prepared"])
	bucket, err := b.client.JetStream().KeyValue(t.Context(), pipeline.BucketBookmarks)
	require.NoError(t, err)
	require.NoError(t, bucket.Purge(t.Context(), pipeline.BookmarkKey("extract_hobo_time_frame."+b.name, loggers[0])))
	result = pull()
	require.EqualValues(t, 48*12+2, result.Counts["prepared"])
	require.EqualValues(t, 2*(48*12+2), result.Counts["duplicates"])
	require.Zero(t, b.drain(t)["points"])

	// And when every message is loaded a second time, no count and no value changes.
	require.NoError(t, b.client.JetStream().DeleteConsumer(t.Context(), pipeline.StreamPrepared, pipeline.LoadConsumer(pipeline.OperationLive, b.name, pipeline.DefaultMirror)))
	require.Equal(t, counts["points"], b.drain(t)["points"])
	compare()
	require.Empty(t, b.quarantine(t))
}
