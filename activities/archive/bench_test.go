package archive_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// bench is a stream of raw messages and an archive of it, behind a proxy that a
// test can make fail.
type bench struct {
	*testing.T
	client  *pipeline.Client
	s3      objects.Config
	proxy   *objectstest.Proxy
	store   *objects.Store  // through the proxy
	archive archive.Archive // past the proxy
	spec    archive.PostSpec
	last    *jobtest.Run
	serial  int
}

func newBench(t *testing.T, st *stacktest.Stack, name string) *bench {
	t.Helper()
	client := st.Pipeline(t)
	require.NoError(t, client.Ready(t.Context()))
	config := objectstest.Config(st.S3)
	past := config
	direct, err := objects.New(config)
	require.NoError(t, err)
	proxy := objectstest.NewProxy(t, st.S3.Endpoint)
	config.Endpoint = proxy.URL
	store, err := objects.New(config)
	require.NoError(t, err)
	return &bench{
		T: t, client: client, s3: past, proxy: proxy, store: store,
		archive: archive.Archive{Store: direct, Bucket: archive.DefaultBucket, Prefix: name + "/"},
		spec: archive.PostSpec{
			Prefix: name + "/", FlushAge: job.Duration(100 * time.Millisecond), IterationDuration: job.Duration(200 * time.Millisecond),
		},
	}
}

// publish puts n raw messages of each source on the stream, in turns.
func (b *bench) publish(n int, sources ...string) {
	b.Helper()
	var messages []pipeline.Outgoing
	for range n {
		for _, source := range sources {
			b.serial++
			messages = append(messages, pipeline.Outgoing{
				Subject: "dendra.raw.v1." + source, ID: pipeline.ID(b.Name(), fmt.Sprint(b.serial)),
				Body: fmt.Appendf(nil, `{"context":{"imported_at":"2026-03-04T12:00:00Z"},"payload":{"test":%q,"n":%d}}`, b.Name(), b.serial),
			})
		}
	}
	published, err := b.client.Publish(b.Context(), messages)
	require.NoError(b, err)
	require.EqualValues(b, len(messages), published.Stored)
}

func (b *bench) definition(key string) job.Job {
	return jobtest.NewJob(archive.PostToArchive(nil, nil), key, job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, b.spec)
}

// newRun makes the next iteration, which has the cursor of the last one.
func (b *bench) newRun(options ...jobtest.Option) *jobtest.Run {
	if b.last == nil {
		b.last = jobtest.NewRun(b.definition(b.key()), options...)
	} else {
		b.last = b.last.NextAttempt(options...)
	}
	return b.last
}

func (b *bench) key() string { return pipeline.SafeName(b.archive.Prefix) }

// iteration runs one iteration.
func (b *bench) iteration(options ...jobtest.Option) (job.Result, error) {
	return archive.PostToArchive(b.client, b.store).Handle(b.Context(), b.newRun(options...))
}

// drain runs iterations until all is archived, and sums their counts up.
func (b *bench) drain() map[string]int64 {
	b.Helper()
	sums := map[string]int64{}
	stacktest.WaitFor(b, "the stream to be archived", func() (bool, error) {
		result, err := b.iteration()
		for name, n := range result.Counts {
			sums[name] += n
		}
		if err != nil {
			return false, err
		}
		state, err := b.client.StreamState(b.Context(), pipeline.StreamRaw)
		return err == nil && b.ackFloor() == state.Last, err
	})
	return sums
}

func (b *bench) consumer() *jetstream.ConsumerInfo {
	b.Helper()
	consumer, err := b.client.JetStream().Consumer(b.Context(), pipeline.StreamRaw, archive.ConsumerName("post_to_archive."+b.key(), b.spec.Generation))
	require.NoError(b, err)
	return consumer.CachedInfo()
}

func (b *bench) ackFloor() uint64 { return b.consumer().AckFloor.Stream }

// stream is everything that the stream holds.
func (b *bench) stream() []pipeline.Stored {
	b.Helper()
	messages, all, err := b.client.Range(b.Context(), pipeline.StreamRaw, 1, 1<<62, pipeline.Limit{})
	require.NoError(b, err)
	require.True(b, all)
	return messages
}

// archived is everything that the archive holds, in the order of the stream.
func (b *bench) archived() []pipeline.Stored {
	b.Helper()
	var all []pipeline.Stored
	for found, err := range b.archive.Find(b.Context(), archive.Filter{}, "") {
		require.NoError(b, err)
		content, err := b.archive.Read(b.Context(), found.Key)
		require.NoError(b, err)
		for m, err := range b.archive.Messages(found.Key, content) {
			require.NoError(b, err)
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b pipeline.Stored) int { return int(a.Sequence) - int(b.Sequence) })
	return all
}

// requireArchived compares archive and stream, message by message.
func (b *bench) requireArchived() {
	b.Helper()
	var want []pipeline.Stored
	for _, m := range b.stream() {
		if !pipeline.IsReplay(m.Header) {
			want = append(want, m)
		}
	}
	got := b.archived()
	require.Len(b, got, len(want))
	for i := range want {
		require.Equal(b, want[i].Sequence, got[i].Sequence)
		require.Equal(b, want[i].Subject, got[i].Subject)
		require.True(b, want[i].Time.Equal(got[i].Time))
		require.True(b, maps.EqualFunc(want[i].Header, got[i].Header, slices.Equal))
		require.True(b, bytes.Equal(want[i].Body, got[i].Body))
	}
	require.Empty(b, b.audit(true).Findings)
}

func (b *bench) audit(deep bool) archive.Report {
	b.Helper()
	report, err := b.archive.Audit(b.Context(), archive.AuditOptions{Deep: deep, Stream: b.client})
	require.NoError(b, err)
	return report
}

// keys are the keys of the archive's objects.
func (b *bench) keys() []string {
	b.Helper()
	var keys []string
	for info, err := range b.archive.Store.List(b.Context(), b.archive.Bucket, b.archive.Prefix) {
		require.NoError(b, err)
		keys = append(keys, info.Key)
	}
	return keys
}

func newLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func purgeUpTo(sequence uint64) jetstream.StreamPurgeOpt {
	return jetstream.WithPurgeSequence(sequence)
}

// overwrite writes an object that claims to have the hash of another.
func (b *bench) overwrite(key string, data []byte, hash string) error {
	client, err := minio.New(strings.TrimPrefix(b.s3.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(b.s3.AccessKey, b.s3.SecretKey, ""), Region: b.s3.Region,
	})
	if err != nil {
		return err
	}
	_, err = client.PutObject(b.Context(), b.archive.Bucket, key, bytes.NewReader(data), int64(len(data)),
		minio.PutObjectOptions{ContentType: "application/zstd", UserMetadata: map[string]string{"sha256": hash}})
	return err
}
