package load_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/load"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// BenchmarkLoad loads messages of one point with eight fields, to be profiled:
// go test ./activities/load -run '^$' -bench Load -benchtime 300000x -cpuprofile cpu.out
func BenchmarkLoad(b *testing.B) {
	st := stacktest.Start(b)
	client := st.Pipeline(b)
	name := fmt.Sprintf("speed%d", b.N)
	messages := make([]pipeline.Outgoing, b.N)
	for i := range messages {
		messages[i] = pipeline.Outgoing{Subject: pipeline.PrepSubject(pipeline.OperationLive, name), Body: []byte(eightFields(name, i))}
	}
	_, err := client.Publish(b.Context(), messages)
	require.NoError(b, err)
	jobType := load.LiveInflux(client)
	definition := jobtest.NewJob(jobType, name, job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}},
		load.LiveInfluxSpec{Servers: influx.Servers{Location: name, InfluxURL: st.Influx}, BatchAge: job.Duration(50 * time.Millisecond)})
	run := jobtest.NewRun(definition, jobtest.OnCheckpoint(func(r *jobtest.Run, c jobtest.Checkpoint) {
		if c.Progress.Done == int64(b.N) {
			r.Stop()
		}
	}))
	b.ResetTimer()
	result, err := jobType.Handle(b.Context(), run)
	require.NoError(b, err)
	require.EqualValues(b, b.N, result.Counts["points"])
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "points/s")
}

// eightFields is a prepared message as a table of a data logger makes it.
func eightFields(database string, i int) string {
	var fields strings.Builder
	for f, field := range []string{"AT_C_Avg", "BattV_Min", "PAR_Avg", "RH_Pct", "Rain_mm_Tot", "Soil_T_C", "WD_Deg", "WS_ms_Avg"} {
		fmt.Fprintf(&fields, `,%q:%g`, field, float64((i*7+f*13)%4000)/16)
	}
	return fmt.Sprintf(`{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"org","source":"csi","location":%q,"station":"angelo","table":"TenMin"},`+
		`"payload":{"options":{"database":%q,"precision":"ms"},"points":[{"measurement":"station_%d_source_tenmin","fields":{%s},"time":%d}]}}`,
		database, database, i%20, fields.String()[1:], noon.UnixMilli()+int64(i/20)*1000)
}
