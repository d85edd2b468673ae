package watchdog_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
	"github.com/dendrascience/dendra-jobs/server/watchdog"
)

// TestReplicas works with watchdogs that share a bucket of a real NATS.
func TestReplicas(t *testing.T) {
	t.Parallel()
	// The bucket has one name: these tests have a NATS of their own, one after the other.
	st := stacktest.StartOwn(t)
	p := st.Pipeline(t)
	quick := func(name string, in *inbox) func(*watchdog.Config) {
		return func(c *watchdog.Config) {
			c.Shared, c.Replica, c.Every, c.TakeOver = alerts.NewBucket(p), name, 20*time.Millisecond, 2*time.Second
			c.Timings = map[string]watchdog.Timing{"job-failing": {Hold: 100 * time.Millisecond, Clear: 3 * time.Second}}
		}
	}
	t.Run("tell once", func(t *testing.T) {
		s, in := &scene{}, &inbox{}
		s.set(true, failing)
		for _, name := range []string{"a", "b", "c"} {
			start(t, s, in, quick(name, in))
		}
		require.Eventually(t, func() bool { return len(in.phases()) == 1 && marked(t, p, true) }, 20*time.Second, 20*time.Millisecond)
		s.set(false, failing)
		require.Eventually(t, func() bool { return len(read(t, p).Records) == 0 }, 30*time.Second, 20*time.Millisecond)
		require.Equal(t, []alerts.Phase{alerts.Firing, alerts.Cleared}, in.phases())
	})
	t.Run("a crash between record and message", func(t *testing.T) {
		s, in, lost := &scene{}, &inbox{}, &inbox{hangs: true}
		s.set(true, failing)
		ctx, crash := context.WithCancel(t.Context())
		config := watchdog.Config{Alerts: s.get, Logger: quiet, Routes: []watchdog.Route{{Name: "inbox", Receiver: lost}}}
		quick("crashes", lost)(&config)
		done := make(chan error, 1)
		go func() { done <- watchdog.New(config).Run(ctx) }()
		require.Eventually(t, func() bool { return len(lost.phases()) == 1 }, 20*time.Second, 10*time.Millisecond)
		start(t, s, in, quick("lives", in))
		// As long as the first one is at it, the other leaves it alone.
		before := read(t, p).Records["job-failing/probe.a"]
		require.Eventually(t, func() bool { return read(t, p).Records["job-failing/probe.a"].Count > before.Count+4 }, 30*time.Second, 20*time.Millisecond)
		require.Empty(t, in.phases())
		crash()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Eventually(t, func() bool { return len(in.phases()) == 1 && marked(t, p, true) }, 30*time.Second, 20*time.Millisecond)
		require.Equal(t, lost.all()[0].ID, in.all()[0].ID, "it is the same message")
		s.set(false, failing)
		require.Eventually(t, func() bool { return len(read(t, p).Records) == 0 }, 30*time.Second, 20*time.Millisecond)
		require.Equal(t, []alerts.Phase{alerts.Firing, alerts.Cleared}, in.phases())
	})
	t.Run("a crash with several alerts in a message", func(t *testing.T) {
		s, in, lost := &scene{}, &inbox{}, &inbox{hangs: true}
		together := func(name string, in *inbox) func(*watchdog.Config) {
			return func(c *watchdog.Config) {
				quick(name, in)(c)
				c.GroupWait, c.Timings["queue-halted"] = time.Second, c.Timings["job-failing"]
			}
		}
		s.alerts(several()...)
		ctx, crash := context.WithCancel(t.Context())
		config := watchdog.Config{Alerts: s.get, Logger: quiet, Routes: []watchdog.Route{{Name: "inbox", Receiver: lost}}}
		together("crashes", lost)(&config)
		done := make(chan error, 1)
		go func() { done <- watchdog.New(config).Run(ctx) }()
		require.Eventually(t, func() bool { return len(lost.phases()) == 1 }, 20*time.Second, 10*time.Millisecond)
		start(t, s, in, together("lives", in))
		crash()
		require.ErrorIs(t, <-done, context.Canceled)
		require.Eventually(t, func() bool { return len(in.phases()) == 1 && marked(t, p, true) }, 30*time.Second, 20*time.Millisecond)
		require.Equal(t, lost.all()[0], in.all()[0], "it is the same message")
		require.Len(t, in.all()[0].Alerts, 3)
		s.alerts()
		require.Eventually(t, func() bool { return len(read(t, p).Records) == 0 }, 30*time.Second, 20*time.Millisecond)
		require.Equal(t, []alerts.Phase{alerts.Firing, alerts.Cleared}, in.phases())
		require.Len(t, in.all()[1].Alerts, 3)
	})
	t.Run("a silence", func(t *testing.T) {
		bucket := alerts.NewBucket(p)
		now := time.Now()
		require.NoError(t, bucket.CreateSilence(t.Context(), alerts.Silence{Name: "quiet", Rule: "job-failing", Object: "probe.*", Created: now, End: now.Add(time.Hour)}))
		s, in := &scene{}, &inbox{}
		s.set(true, failing)
		looks := 0
		start(t, s, in, func(c *watchdog.Config) {
			quick("a", in)(c)
			c.Alerts = func() watchdog.Now {
				s.mu.Lock()
				looks++
				s.mu.Unlock()
				return s.get()
			}
		})
		require.Eventually(t, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return looks > 50
		}, 20*time.Second, 10*time.Millisecond)
		require.Empty(t, in.phases())
		require.NoError(t, bucket.DeleteSilence(t.Context(), "quiet"))
		require.Eventually(t, func() bool { return len(in.phases()) == 1 }, 20*time.Second, 10*time.Millisecond, "it is told once the silence has ended")
		require.ErrorIs(t, bucket.DeleteSilence(t.Context(), "quiet"), alerts.ErrNotFound)
	})
}

func read(t *testing.T, p *pipeline.Client) alerts.State {
	t.Helper()
	state, err := alerts.NewBucket(p).Read(t.Context())
	require.NoError(t, err)
	return state
}

func marked(t *testing.T, p *pipeline.Client, told bool) bool {
	t.Helper()
	for _, record := range read(t, p).Records {
		if record.Sent == told {
			return true
		}
	}
	return false
}
