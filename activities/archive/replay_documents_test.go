package archive_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// TestDocumentsOfRelease2ArePreparedAnew: a copy of its archive is published, stopped
// again and again, and prepared with the offset that its messages do not have.
func TestDocumentsOfRelease2ArePreparedAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "documents2")
	const n = 700
	first := time.Date(2018, 12, 24, 7, 0, 0, 0, time.UTC)
	put := func(key, body string) {
		_, err := b.store.Put(t.Context(), objects.Object{
			Bucket: b.archive.Bucket, Key: b.archive.Prefix + key, Data: []byte(body), ContentType: "application/json",
		})
		require.NoError(t, err)
	}
	for i := range n {
		at := first.Add(time.Duration(i) * time.Minute)
		put(fmt.Sprintf("ucnrs/csi/ucac_angelo/tenmin/%s_%010d.json", at.Format("2006/01/02/15/04"), i), fmt.Sprintf(
			`{"context":{"imported_at":"2018-12-26T00:00:00.000Z","org_slug":"ucnrs"},"payload":{"recordNumber":%d,"station":"ucac_angelo","table":"TenMin",`+
				`"timeString":%q,"fields":[{"name":"AT_C_Avg","process":"Avg","type":"xsd:float","units":"°C","value":%d.5}]}}`, i, at.Format("2006-01-02T15:04:05"), i))
	}
	put("ucnrs/csi/ucac_angelo/tenmin/2018/12/23/07/00_0000000001.json", `{"context":{},"payload":"of the day before"}`)
	put("ucnrs/csi/ucac_angelo/notes.json", `{}`)

	spec := b.replaySpec()
	spec.Documents, spec.From, spec.To = "ucnrs/csi/", first, first.Add(24*time.Hour)
	result, attempts := b.replay("documents", spec, jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) { r.Stop() }))
	require.Greater(t, attempts, 1)
	require.EqualValues(t, n, result.Counts["messages"])
	require.Contains(t, result.Message, "700 messages of ucnrs/csi/ from 700 objects published again to dendra.raw.v1.bulk.ucnrs.csi")

	b.prepare(extract.PrepareCampbellScientificLdmp(b.client), pipeline.OperationBulk, "csi", extract.PrepareLdmpSpec{
		Organization: "ucnrs", Location: "common1", OperationMode: pipeline.OperationBulk, IterationDuration: prepareIterationDuration,
		Rules: []extract.LdmpRule{{UTCOffset: "-08:00"}},
	})
	points := b.points(pipeline.OperationBulk)
	require.Len(t, points, n)
	for i := range n {
		at := first.Add(8*time.Hour + time.Duration(i)*time.Minute)
		point, found := points[series{"common1", "station_ucac_angelo_source_tenmin", at.UnixMilli()}]
		require.True(t, found, at)
		require.Equal(t, map[string]any{"AT_C_Avg": float64(i) + 0.5}, point.Fields)
	}

	spec.From, spec.To = first.AddDate(1, 0, 0), first.AddDate(2, 0, 0)
	result, _ = b.replay("later", spec)
	require.Contains(t, result.Message, "no document under")
	spec.Documents = "nobody/csi/"
	jobType := archive.ReplayArchive(b.client, b.store)
	_, err := jobType.Handle(t.Context(), b.replayRun("nowhere", spec))
	require.ErrorContains(t, err, "there is no object under")
	require.True(t, strings.HasSuffix(err.Error(), "nobody/csi/"))
}
