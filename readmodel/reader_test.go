package readmodel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// newReader is a reader that asks nobody: a test says what it reads.
func newReader(t *testing.T, config readmodel.Config, every time.Duration, read func(*readmodel.Reader) error) *readmodel.Reader {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	temporal, err := sdk.NewLazyClient(sdk.Options{HostPort: "127.0.0.1:1", Logger: config.Logger})
	require.NoError(t, err)
	r := readmodel.NewWith(config, client.New(temporal, "default"))
	r.OnlySource(every, func(context.Context) error { return read(r) })
	return r
}

// start runs a reader for the time of a test.
func start(t *testing.T, r *readmodel.Reader) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-done })
}

// elapse lets the time of a bubble pass.
func elapse(d time.Duration) { <-time.After(d) }

func TestReaderRestsWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		r := newReader(t, readmodel.Config{Grace: 10 * time.Second}, time.Second, func(*readmodel.Reader) error { reads++; return nil })
		start(t, r)
		elapse(time.Minute)
		synctest.Wait()
		require.Zero(t, reads, "nobody has asked")

		_, err := r.Await(t.Context())
		require.NoError(t, err)
		elapse(time.Minute)
		synctest.Wait()
		asked := reads
		require.InDelta(t, 10, asked, 2, "it goes on for the time of grace")

		subscription := r.Subscribe()
		elapse(time.Minute)
		synctest.Wait()
		require.InDelta(t, 60, reads-asked, 2, "it goes on while someone watches")
		subscription.Close()
		elapse(time.Minute)
		synctest.Wait()
		before := reads
		elapse(time.Hour)
		synctest.Wait()
		require.Equal(t, before, reads)
	})
}

func TestReaderReadsAlwaysIfItIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		start(t, newReader(t, readmodel.Config{Always: true}, time.Second, func(*readmodel.Reader) error { reads++; return nil }))
		elapse(time.Hour)
		synctest.Wait()
		require.InDelta(t, 3600, reads, 5)
	})
}

func TestSlowReadsAreFarApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		start(t, newReader(t, readmodel.Config{Always: true}, time.Second, func(*readmodel.Reader) error {
			reads++
			elapse(2 * time.Second)
			return nil
		}))
		elapse(time.Hour)
		synctest.Wait()
		require.InDelta(t, 3600/8, reads, 3, "between two reads is three times what one takes")
	})
}

func TestOldDataStaysWithANote(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Pointer[error]
		r := newReader(t, readmodel.Config{Always: true}, time.Second, func(r *readmodel.Reader) error {
			if failed := broken.Load(); failed != nil {
				return *failed
			}
			r.SetJobs("a.b")
			return nil
		})
		start(t, r)
		first, err := r.Await(t.Context())
		require.NoError(t, err)
		require.Empty(t, first.Overview.GetNotes())
		require.Len(t, first.Overview.GetJobs(), 1)
		gone := errors.New("the server\nis gone")
		broken.Store(&gone)
		elapse(3 * time.Second)
		then := r.Snapshot().Overview
		require.Equal(t, []string{"test: the server; is gone"}, then.GetNotes())
		require.Len(t, then.GetJobs(), 1)
		require.Greater(t, then.GetRevision(), first.Revision())
		broken.Store(nil)
		elapse(3 * time.Second)
		require.Empty(t, r.Snapshot().Overview.GetNotes())
	})
}

// TestSlowWatchers requires that one who takes a minute for each snapshot holds nobody up,
// and gets the latest.
func TestSlowWatchers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		r := newReader(t, readmodel.Config{}, time.Second, func(r *readmodel.Reader) error {
			reads++
			r.SetJobs(fmt.Sprintf("a.%d", reads))
			return nil
		})
		start(t, r)
		slow, quick := r.Subscribe(), r.Subscribe()
		defer slow.Close()
		defer quick.Close()
		first, err := slow.Next(t.Context())
		require.NoError(t, err)
		for range 60 {
			_, err := quick.Next(t.Context())
			require.NoError(t, err)
		}
		synctest.Wait()
		latest := r.Snapshot()
		got, err := slow.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, latest.Revision(), got.Revision())
		require.Greater(t, got.Revision(), first.Revision()+50)
		delta := got.Delta(first, 0)
		require.Equal(t, []string{first.Overview.GetJobs()[0].GetId()}, delta.GetRemovedJobs())
		require.Equal(t, got.Overview.GetJobs(), delta.GetOverview().GetJobs())
		require.Same(t, got, r.Since(got.Revision()))
		require.Nil(t, r.Since(1))

		ended, stop := context.WithCancel(t.Context())
		stop()
		_, err = quick.Next(ended)
		if err == nil { // There was one more.
			_, err = quick.Next(ended)
		}
		require.ErrorIs(t, err, context.Canceled)
	})
}
