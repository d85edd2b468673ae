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
		time.Sleep(away.Patience - time.Second) //nolint:forbidigo // Virtual time.
		require.Empty(t, w.Away(), "a short absence is none")
		time.Sleep(6 * time.Second) //nolint:forbidigo // Virtual time.
		require.Equal(t, []away.Server{{Name: "stands", Since: began, Error: context.DeadlineExceeded.Error()}}, w.Away())

		broken.Store(true)
		time.Sleep(away.Patience + 2*away.Every) //nolint:forbidigo // Virtual time.
		list := w.Away()
		require.Len(t, list, 2)
		require.Equal(t, "refused", list[1].Error)
		broken.Store(false)
		time.Sleep(2 * away.Every) //nolint:forbidigo // Virtual time.
		require.Len(t, w.Away(), 1)
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
		time.Sleep(away.Patience + time.Second) //nolint:forbidigo // Virtual time.
		require.Empty(t, w.Away(), "nobody has asked it")
		w.Note("Temporal", errors.New("no"))
		require.Len(t, w.Away(), 1)
		w.Note("Temporal", nil)
		require.Empty(t, w.Away())
	})
}
