package effects_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/activities/platform/feed"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// told are jobs that tell when they have taken one into a queue.
type told struct {
	job.Jobs
	enqueued chan struct{}
}

func (j told) Enqueue(ctx context.Context, definition job.Job, allowRerun bool) error {
	err := j.Jobs.Enqueue(ctx, definition, allowRerun)
	if err == nil {
		j.enqueued <- struct{}{}
	}
	return err
}

// subscribed is a site whose changes SideEffects follows from now on.
type subscribed struct {
	*site
	b    *testing.B
	typ  job.Type
	jobs told
	run  *jobtest.Run
}

// benchSite makes a site that a subscriber has seen. Jobs go into queues of Temporal, and
// run at the same time, or stay in memory.
func benchSite(b *testing.B, stations int, temporal bool) *subscribed {
	b.Helper()
	s := &subscribed{site: newSite(b, stations), b: b, jobs: told{jobtest.NewJobs(), make(chan struct{}, 1<<20)}}
	if temporal {
		st := stacktest.StartNamespace(b)
		s.startWorker(st)
		s.jobs.Jobs = schedules.NewJobs(client.New(st.Dial(b), st.Namespace))
	}
	f := s.follow(s.api, feed.Spec{})
	_, err := f.iterate(b.Context())
	require.NoError(b, err)
	s.typ, s.run = f.typ, f.run.NextAttempt(jobtest.WithJobs(s.jobs))
	return s
}

// start starts the iteration, which ends with the benchmark.
func (s *subscribed) start() {
	var running errgroup.Group
	running.Go(func() error {
		_, err := s.typ.Handle(context.WithoutCancel(s.b.Context()), s.run)
		return err
	})
	s.b.Cleanup(func() {
		s.run.Stop()
		require.NoError(s.b, running.Wait())
	})
}

// BenchmarkSideEffects measures how fast changes are handled that wait in the feed, and
// how long after a write its effect is there.
func BenchmarkSideEffects(b *testing.B) {
	const writers = 8
	b.Run("feed without effect", func(b *testing.B) {
		s := benchSite(b, writers, false)
		var writing errgroup.Group
		for w := range writers {
			writing.Go(func() error {
				for range b.N / writers {
					s.rename(w)
				}
				return nil
			})
		}
		require.NoError(b, writing.Wait())
		s.addPhoto(0) // the effect after all
		b.ResetTimer()
		s.start()
		<-s.jobs.enqueued
		b.StopTimer()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
	})
	b.Run("feed with an effect each", func(b *testing.B) {
		s := benchSite(b, b.N, true)
		for n := range b.N {
			s.addPhoto(n)
		}
		b.ResetTimer()
		s.start()
		for range b.N {
			<-s.jobs.enqueued
		}
		b.StopTimer()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
	})
	b.Run("lag", func(b *testing.B) {
		s := benchSite(b, 1, true)
		s.start()
		lags := make([]time.Duration, b.N)
		for n := range lags {
			s.stations[0].Photos = nil
			s.addPhoto(0)
			began := time.Now()
			<-s.jobs.enqueued
			lags[n] = time.Since(began)
		}
		slices.Sort(lags)
		b.ReportMetric(float64(lags[b.N/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(lags[b.N*95/100].Microseconds())/1000, "p95-ms")
	})
}
