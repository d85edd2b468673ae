package watchdog_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
	"github.com/dendrascience/dendra-jobs/server/watchdog"
)

const (
	critical = jobsv1.AlertSeverity_ALERT_SEVERITY_CRITICAL
	warning  = jobsv1.AlertSeverity_ALERT_SEVERITY_WARNING
)

// several are three alerts of two owners.
func several() []*jobsv1.Alert {
	return []*jobsv1.Alert{
		{Name: "job-failing/a.b", Rule: failing, Object: "a.b", Text: "Job a.b is failing.", Severity: warning, Owner: "organization:demo"},
		{Name: "job-failing/a.c", Rule: failing, Object: "a.c", Text: "Job a.c is failing.", Severity: warning},
		{Name: "queue-halted/q", Rule: jobsv1.AlertRule_ALERT_RULE_QUEUE_HALTED, Object: "q", Text: "Queue q waits.", Severity: critical, Owner: "organization:demo"},
	}
}

func grouped(wait time.Duration) func(*watchdog.Config) {
	return func(c *watchdog.Config) { c.GroupWait = wait }
}

func names(m watchdog.Message) []string {
	var list []string
	for _, n := range m.Alerts {
		list = append(list, n.Alert)
	}
	return list
}

func TestAlertsOfAShortTimeAreToldInOneMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, in := &scene{}, &inbox{}
		all := []string{"queue-halted/q", "job-failing/a.b", "job-failing/a.c"}
		s.alerts(several()[:1]...)
		start(t, s, in, grouped(10*time.Second))
		pass(5 * time.Second)
		s.alerts(several()...)
		pass(9 * time.Second)
		require.Empty(t, in.all(), "the first alert waits for others")
		pass(10 * time.Second)
		require.Len(t, in.all(), 1)
		m := in.all()[0]
		require.Equal(t, all, names(m), "the most urgent first")
		require.Equal(t, "queue-halted/q", m.Alert)
		require.Equal(t, "critical", m.Severity)
		require.Equal(t, "3 alerts fire: queue-halted/q, job-failing/a.b, job-failing/a.c", m.Text)
		require.Equal(t, "Job a.b is failing.", m.Alerts[1].Text)
		require.NotContains(t, []string{m.Alerts[0].ID, m.Alerts[1].ID, m.Alerts[2].ID}, m.ID)

		s.alerts()
		pass(2 * time.Minute)
		require.Equal(t, []alerts.Phase{alerts.Firing, alerts.Cleared}, in.phases())
		require.Equal(t, all, names(in.all()[1]))
		require.NotEqual(t, m.ID, in.all()[1].ID)
		pass(time.Hour)
		require.Len(t, in.all(), 2)
	})
}

func TestAnAlertAloneHasItsOwnMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, in, late := &scene{}, &inbox{}, several()[2:]
		s.alerts(several()[:2]...)
		start(t, s, in, nil) // They do not wait for each other.
		pass(15 * time.Second)
		require.Len(t, in.all(), 2)
		for _, m := range in.all() {
			require.Equal(t, []watchdog.Notice{m.Notice}, m.Alerts)
		}
		s.alerts(append(several()[:2], late...)...)
		pass(15 * time.Second)
		require.Len(t, in.all(), 3)
		require.Equal(t, "Queue q waits.", in.all()[2].Text)
	})
}

// A message has the alerts that its receiver takes.
func TestRoutes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{}
		s.alerts(several()...)
		want := map[string][]string{
			"all":      {"queue-halted/q", "job-failing/a.b", "job-failing/a.c"},
			"demo":     {"queue-halted/q", "job-failing/a.b"},
			"nobody":   {"job-failing/a.c"},
			"critical": {"queue-halted/q"},
			"both":     {"job-failing/a.b"},
			"none":     nil,
		}
		got := map[string]*inbox{}
		start(t, s, &inbox{}, func(c *watchdog.Config) {
			c.GroupWait = 10 * time.Second
			for _, route := range []watchdog.Route{
				{Name: "all"}, {Name: "demo", Owners: []string{"organization:demo"}}, {Name: "nobody", Owners: []string{""}},
				{Name: "critical", Severities: []string{"critical"}}, {Name: "both", Severities: []string{"warning"}, Owners: []string{"organization:demo", "user:ann"}},
				{Name: "none", Rules: []string{"drift"}},
			} {
				in := &inbox{}
				got[route.Name], route.Receiver = in, in
				c.Routes = append(c.Routes, route)
			}
		})
		for _, messages := range []int{1, 2} {
			pass(3 * time.Minute)
			for name, in := range got {
				if want[name] == nil {
					require.Empty(t, in.all(), name)
					continue
				}
				require.Len(t, in.all(), messages, name)
				require.Equal(t, want[name], names(in.all()[messages-1]), name)
			}
			s.alerts() // The end goes to those who were told of the begin.
		}
	})
}
