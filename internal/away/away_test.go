package away_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/away"
)

// awaits lets virtual time pass until so many servers are away.
func awaits(t *testing.T, w *away.Watch, n int) {
	t.Helper()
	for tick := time.NewTicker(time.Second); len(w.Away()) != n; <-tick.C {
		require.NoError(t, t.Context().Err())
	}
}

// TestAway has one server answer always, one never, and one not for a while.
func TestAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w away.Watch
		var broken atomic.Bool
		w.Add("well", func(context.Context) error { return nil })
		w.Add("stands", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		w.Add("breaks", func(context.Context) error {
			if broken.Load() {
				return errors.New("refused\nmore")
			}
			return nil
		})
		ctx, stop := context.WithCancel(t.Context())
		began := time.Now().UTC()
		go w.Run(ctx)
		awaits(t, &w, 1)
		require.Greater(t, time.Since(began), away.Patience, "a short absence is none")
		require.Equal(t, []away.Server{{Name: "stands", Since: began, Error: context.DeadlineExceeded.Error()}}, w.Away())

		broken.Store(true)
		awaits(t, &w, 2)
		require.Equal(t, "refused", w.Away()[1].Error)
		broken.Store(false)
		awaits(t, &w, 1)
		stop()
		synctest.Wait()
	})
}

// TestNoted: what others find out counts as an answer, and what nobody watches does not.
func TestNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w away.Watch
		w.Note("unknown", errors.New("x"))
		w.Add("Temporal", nil)
		require.Empty(t, w.Away(), "nobody has asked it")
		w.Note("Temporal", errors.New("no"))
		require.Empty(t, w.Away(), "it answered a moment ago")
		awaits(t, &w, 1)
		w.Note("Temporal", nil)
		require.Empty(t, w.Away())
	})
}
