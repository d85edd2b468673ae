package reversesync_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
)

// start starts an iteration, which ends with the benchmark.
func (s *subscriber) start(b *testing.B) {
	b.Helper()
	s.run = s.run.NextAttempt()
	var running errgroup.Group
	running.Go(func() error {
		_, err := s.typ.Handle(context.WithoutCancel(b.Context()), s.run)
		return err
	})
	b.Cleanup(func() {
		s.run.Stop()
		require.NoError(b, running.Wait())
	})
}

// BenchmarkSubscribe measures how fast changes reach Release 2 that wait in the feed, and
// how long after a write its document is changed.
func BenchmarkSubscribe(b *testing.B) {
	begin := func(b *testing.B) *subscriber {
		b.Helper()
		s := newReleases(b).subscribe(reversesync.SubscribeSpec{})
		s.iterate()
		return s
	}
	wait := func(b *testing.B, s *subscriber, n int, name string) {
		b.Helper()
		for s.name("stations", stationID(n)) != name {
			require.NoError(b, b.Context().Err())
		}
	}
	b.Run("feed", func(b *testing.B) {
		s := begin(b)
		s.putStations(b.N, "Station")
		s.put(station(b.N+1, "Last"), "")
		b.ResetTimer()
		s.start(b)
		wait(b, s, b.N+1, "Last")
		b.StopTimer()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "changes/s")
	})
	b.Run("lag", func(b *testing.B) {
		s := begin(b)
		s.put(station(1, "First"), "")
		s.start(b)
		wait(b, s, 1, "First")
		lags := make([]time.Duration, b.N)
		for n := range lags {
			name := fmt.Sprint("Name ", n)
			s.put(station(1, name), "")
			began := time.Now()
			wait(b, s, 1, name)
			lags[n] = time.Since(began)
		}
		slices.Sort(lags)
		b.ReportMetric(float64(lags[b.N/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(lags[b.N*95/100].Microseconds())/1000, "p95-ms")
	})
}
