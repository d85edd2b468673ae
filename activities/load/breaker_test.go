package load_test

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// TestOnlyAStoredBatchClosesABreaker: a mirror fails and then answers pings, while
// there is nothing to write, and then nothing that can be written. It counts as back
// when it has stored something.
func TestOnlyAStoredBatchClosesABreaker(t *testing.T) {
	t.Parallel()
	b := newBench(t, "reopens", stacktest.Start(t))
	said := &log{}
	iteration := func() (job.Result, error) {
		return b.jobType.Handle(t.Context(), b.newRun(jobtest.WithLogger(slog.New(slog.NewTextHandler(said, nil)))))
	}
	b.publishNumbers(t, 0, 1)
	b.proxy.onWrite(answer(http.StatusServiceUnavailable, "busy"))
	stacktest.WaitFor(t, "the mirror to be down", func() (bool, error) {
		_, err := iteration()
		return err != nil && jobtest.FailureOf(t, err).Class == errclass.InfluxUnreachable, nil
	})
	since := b.state(t, pipeline.DefaultMirror).Breaker.Since

	stream, err := b.client.JetStream().Stream(t.Context(), pipeline.StreamPrepared)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(b.subject())))
	stillDown := func() {
		t.Helper()
		stacktest.WaitFor(t, "the mirror to be tried with what waits", func() (bool, error) {
			result, err := iteration()
			if err != nil || !b.loaded(t, pipeline.DefaultMirror) {
				return false, err
			}
			require.EqualValues(t, 1, result.Counts["mirrors_down"])
			require.Contains(t, result.Message, "mirror default is down since ")
			return true, nil
		})
		breaker := b.state(t, pipeline.DefaultMirror).Breaker
		require.Equal(t, pipeline.BreakerTrying, breaker.State)
		require.Equal(t, since, breaker.Since)
		require.Zero(t, said.count("a mirror is back"))
	}
	stillDown() // with nothing to write
	b.publish(t, "no prepared message")
	stillDown() // with nothing that can be written
	require.Len(t, b.quarantine(t), 1)

	b.proxy.onWrite(nil)
	b.publishNumbers(t, 1, 2)
	stacktest.WaitFor(t, "the message to be stored", func() (bool, error) {
		_, err := iteration()
		return b.loaded(t, pipeline.DefaultMirror), err
	})
	require.EqualValues(t, 1, b.count(t, "v"))
	require.Equal(t, pipeline.BreakerClosed, b.state(t, pipeline.DefaultMirror).Breaker.State)
	require.Equal(t, 1, said.count("a mirror is down"))
	require.Equal(t, 1, said.count("a mirror is back"))
}
