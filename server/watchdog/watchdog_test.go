package watchdog_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
	"github.com/dendrascience/dendra-jobs/server/watchdog"
)

var quiet = slog.New(slog.DiscardHandler)

// inbox is a receiver that keeps what it gets.
type inbox struct {
	mu       sync.Mutex
	messages []watchdog.Message
	// hangs has Send wait for the end of its context.
	hangs bool
	err   error
}

func (i *inbox) Send(ctx context.Context, m watchdog.Message) error {
	i.mu.Lock()
	hangs, err := i.hangs, i.err
	i.messages = append(i.messages, m)
	i.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
	return err
}

func (i *inbox) all() []watchdog.Message {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.messages)
}

func (i *inbox) phases() []alerts.Phase {
	phases := []alerts.Phase{}
	for _, m := range i.all() {
		phases = append(phases, m.Phase)
	}
	return phases
}

// scene is what a watchdog sees.
type scene struct {
	mu  sync.Mutex
	now watchdog.Now
}

func (s *scene) set(on bool, rule jobsv1.AlertRule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = watchdog.Now{Known: true, Complete: true}
	if on {
		name := map[jobsv1.AlertRule]string{jobsv1.AlertRule_ALERT_RULE_JOB_FAILING: "job-failing/probe.a"}[rule]
		s.now.Alerts = []*jobsv1.Alert{{Name: name, Rule: rule, Object: "probe.a", Text: "Job probe.a is failing."}}
	}
}

func (s *scene) alerts(list ...*jobsv1.Alert) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = watchdog.Now{Known: true, Complete: true, Alerts: list}
}

func (s *scene) incomplete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = watchdog.Now{Known: true}
}

func (s *scene) get() watchdog.Now {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

const failing = jobsv1.AlertRule_ALERT_RULE_JOB_FAILING

// start runs a watchdog that holds for ten seconds, and clears after a minute.
func start(t *testing.T, s *scene, in *inbox, change func(*watchdog.Config)) {
	t.Helper()
	config := watchdog.Config{Alerts: s.get, Logger: quiet, Routes: []watchdog.Route{{Name: "inbox", Receiver: in}}}
	if change != nil {
		change(&config)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- watchdog.New(config).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

func pass(d time.Duration) {
	time.Sleep(d) // the clock of the test bubble
	synctest.Wait()
}

func TestAnAlertIsToldOnceAndItsEndOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, in := &scene{}, &inbox{}
		s.set(true, failing)
		start(t, s, in, nil)
		pass(9 * time.Second)
		require.Empty(t, in.phases(), "it has to hold")
		pass(3 * time.Second)
		require.Equal(t, []alerts.Phase{alerts.Firing}, in.phases())
		pass(24 * time.Hour)
		require.Len(t, in.phases(), 1, "it is not told again")
		s.set(false, failing)
		pass(59 * time.Second)
		require.Len(t, in.phases(), 1, "it has to be gone for a while")
		pass(25 * time.Second)
		require.Equal(t, []alerts.Phase{alerts.Firing, alerts.Cleared}, in.phases())
		pass(time.Hour)
		require.Len(t, in.phases(), 2)
		require.Equal(t, in.all()[0].FireTime, in.all()[1].FireTime)
		require.NotEqual(t, in.all()[0].ID, in.all()[1].ID)
	})
}

// A run that has ended is told once: not again while its alert is on, and not when it is off.
func TestARunThatHasEndedIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, in := &scene{}, &inbox{}
		const name, link = "run-ended/job/a@1", "https://store.example.org/links"
		s.now = watchdog.Now{Known: true, Complete: true, Links: map[string]string{name: link}, Alerts: []*jobsv1.Alert{
			{Name: name, Rule: jobsv1.AlertRule_ALERT_RULE_RUN_ENDED, Object: "job/a@1", Text: "Job a has completed."},
		}}
		start(t, s, in, func(c *watchdog.Config) {
			c.Timings = watchdog.DefaultTimings()
			c.Timings["run-ended"] = watchdog.Timing{Clear: time.Minute, Repeat: 5 * time.Minute}
		})
		pass(time.Hour)
		require.Equal(t, []alerts.Phase{alerts.Firing}, in.phases())
		require.Equal(t, link, in.all()[0].Link)
		s.alerts()
		pass(time.Hour)
		require.Len(t, in.phases(), 1)
	})
}

func TestAnAlertThatFlapsIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, in := &scene{}, &inbox{}
		start(t, s, in, nil)
		for range 100 { // Too short to fire.
			s.set(true, failing)
			pass(8 * time.Second)
			s.set(false, failing)
			pass(4 * time.Second)
		}
		require.Empty(t, in.phases())
		for range 100 { // It fires, and never clears.
			s.set(true, failing)
			pass(20 * time.Second)
			s.set(false, failing)
			pass(50 * time.Second)
		}
		require.Equal(t, []alerts.Phase{alerts.Firing}, in.phases())
		pass(2 * time.Minute)
		require.Equal(t, []alerts.Phase{alerts.Firing, alerts.Cleared}, in.phases())
	})
}

func TestAnAlertIsToldAgainIfAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, in := &scene{}, &inbox{}
		s.set(true, failing)
		start(t, s, in, func(c *watchdog.Config) {
			c.Timings = map[string]watchdog.Timing{"job-failing": {Hold: 10 * time.Second, Clear: time.Minute, Repeat: time.Hour}}
		})
		pass(3*time.Hour + time.Minute)
		require.Equal(t, []alerts.Phase{alerts.Firing, alerts.Firing, alerts.Firing, alerts.Firing}, in.phases())
	})
}

func TestWhatCannotBeReadDoesNotClear(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, in := &scene{}, &inbox{}
		s.set(true, failing)
		start(t, s, in, nil)
		pass(time.Minute)
		s.incomplete()
		pass(time.Hour)
		require.Equal(t, []alerts.Phase{alerts.Firing}, in.phases())
		s.set(false, failing)
		pass(2 * time.Minute)
		require.Equal(t, []alerts.Phase{alerts.Firing, alerts.Cleared}, in.phases())
	})
}

// A receiver that fails does not have the others told again.
func TestAReceiverThatFailsIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, in, bad := &scene{}, &inbox{}, &inbox{err: errors.New("refused")}
		s.set(true, failing)
		start(t, s, in, func(c *watchdog.Config) {
			c.Routes = append(c.Routes, watchdog.Route{Name: "bad", Receiver: bad},
				watchdog.Route{Name: "other rules", Receiver: &inbox{err: errors.New("not for it")}, Rules: []string{"drift"}})
		})
		pass(time.Hour)
		require.Len(t, in.phases(), 1)
		require.Len(t, bad.phases(), 1)
	})
}

func TestRulesThatAreOffAreNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, in := &scene{}, &inbox{}
		s.set(true, failing)
		start(t, s, in, func(c *watchdog.Config) { c.Timings = map[string]watchdog.Timing{"job-failing": {Off: true}} })
		pass(time.Hour)
		require.Empty(t, in.phases())
	})
}
