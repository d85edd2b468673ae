package imports_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// TestFileThatNoStreamHolds imports a file whose messages need several times the room of the
// streams, while nobody loads: import and prepare job wait, and say for whom. Once its points
// are taken, all of them are there.
func TestFileThatNoStreamHolds(t *testing.T) {
	t.Parallel()
	const (
		rows         = 3000
		organization = "large"
	)
	st := stacktest.StartOwn(t, "--only", "nats,s3")
	d := newDesk(t, st, organization)
	pipelinetest.Shrink(t, d.client, pipeline.StreamRaw, 512<<10)
	pipelinetest.Shrink(t, d.client, pipeline.StreamPrepared, 384<<10)
	load, err := d.client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{
		Name: pipeline.LoadConsumer(pipeline.OperationBulk, "files", pipeline.DefaultMirror), Subject: pipeline.PrepSubject(pipeline.OperationBulk, "files"), InOrder: true,
	})
	require.NoError(t, err)
	d.upload("a.dat", tenMinutes(rows).TOA5())

	prepareType := extract.PrepareCampbellScientificLdmp(d.client)
	prepare := jobtest.NewRun(jobtest.NewJob(prepareType, organization, job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, extract.PrepareLdmpSpec{
		Organization: organization, Location: "files", OperationMode: pipeline.OperationBulk, Database: "{location}", Measurement: "{table}", Field: "{name}", IterationDuration: job.Duration(time.Hour),
	}))
	prepared := make(chan error, 1)
	go func() {
		_, err := prepareType.Handle(t.Context(), prepare)
		prepared <- err
	}()
	stacktest.WaitFor(t, "the prepare job", func() (bool, error) {
		return d.client.Consumed(t.Context(), pipeline.StreamRaw, pipeline.RawSubject(pipeline.OperationBulk, organization, "csi")), nil
	})
	run := d.newRun("first")
	imported := make(chan error, 1)
	go func() {
		_, err := d.jobType.Handle(t.Context(), run)
		imported <- err
	}()
	for _, waits := range []struct {
		run    *jobtest.Run
		behind string
	}{
		{prepare, "waits for consumer load-bulk-files of stream PREPARED"},
		{run, "waits for consumer prepare-bulk-large-csi-large of stream RAW"},
	} {
		stacktest.WaitFor(t, waits.behind, func() (bool, error) {
			return slices.ContainsFunc(waits.run.Checkpoints(), func(c jobtest.Checkpoint) bool { return strings.Contains(c.Progress.Message, waits.behind) }), nil
		})
	}
	for taken := 0; taken < rows; {
		messages, rewound, err := load.FetchInOrder(t.Context(), 500, time.Second, nil)
		require.NoError(t, err)
		require.Zero(t, rewound)
		for _, message := range messages {
			points, err := pipeline.DecodePoints(message.Body)
			require.NoError(t, err)
			want := midnight.Add(8*time.Hour + time.Duration(taken)*10*time.Minute)
			require.Equal(t, want, points.Payload.Points[0].Time.Time, "point %d", taken)
			taken++
		}
		if len(messages) > 0 {
			require.NoError(t, load.Ack(t.Context(), messages))
		}
	}
	require.NoError(t, <-imported)
	prepare.Stop()
	require.NoError(t, <-prepared)
}
