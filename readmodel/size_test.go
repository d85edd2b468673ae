package readmodel_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// TestSizeOfAThousandJobs requires that a thousand jobs, whose times and outcomes have
// nothing in common, fit into 100 kB once they are compressed.
func TestSizeOfAThousandJobs(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // Nothing secret.
	at := func() time.Duration { return time.Duration(random.Int64N(int64(time.Hour))) }
	o := &jobsv1.Overview{}
	for n := range 1000 {
		outcomes, durations := make([]byte, 30), make([]byte, 30)
		for i := range outcomes {
			outcomes[i] = "CCCCCCFXHM"[random.IntN(10)]
			durations[i] = byte('1' + random.IntN(9))
		}
		o.Jobs = append(o.Jobs, &jobsv1.JobOverview{
			Id: fmt.Sprintf("extract_hobo_time_frame.station-%04d", n), Type: "ExtractHoboTimeFrame", Mode: "recurring",
			Status: jobsv1.JobStatus_JOB_STATUS_SCHEDULED, Provider: "integration", Owner: fmt.Sprintf("organization:o%d", n%20),
			LastStartTime: ago(at()), NextStartTime: ago(-at().Truncate(time.Second)), LastSuccessTime: ago(at()),
			Outcomes: string(outcomes), Durations: string(durations), Schedule: "every 15 min", MedianDuration: durationpb.New(at() / 1000),
		})
	}
	text, err := protojson.Marshal(&jobsv1.GetOverviewResponse{Overview: o})
	require.NoError(t, err)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err = w.Write(text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	t.Logf("%d bytes, %d compressed", len(text), zipped.Len())
	require.Less(t, zipped.Len(), 100_000)
}
