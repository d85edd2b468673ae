package watchdog_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/watchdog"
)

const down = jobsv1.AlertRule_ALERT_RULE_SERVER_DOWN

// have sets the alerts that are on.
func (s *scene) have(list ...*jobsv1.Alert) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = watchdog.Now{Known: true, Complete: true, Alerts: list}
}

// told are the phases with the alerts, in the order in which they were told.
func (i *inbox) told() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []string
	for _, m := range i.messages {
		all = append(all, string(m.Phase)+" "+m.Alert)
	}
	return all
}

func TestWhatIsExplainedIsNotTold(t *testing.T) {
	t.Parallel()
	cause := &jobsv1.Alert{Name: "server-down/influxdb/db:80", Rule: down, Object: "influxdb/db:80"}
	alone := func(name string) *jobsv1.Alert {
		return &jobsv1.Alert{Name: "job-failing/" + name, Rule: failing, Object: name}
	}
	explained := func(name string) *jobsv1.Alert {
		a := alone(name)
		a.CausedBy = cause.GetName()
		return a
	}
	for name, c := range map[string]struct {
		off  bool
		play func(*scene)
		want []string
	}{
		"the cause is told alone": {
			play: func(s *scene) {
				s.have(cause, explained("a"), explained("b"))
				pass(time.Hour)
				s.have()
				pass(5 * time.Minute)
			},
			want: []string{"firing server-down/influxdb/db:80", "cleared server-down/influxdb/db:80"},
		},
		"what was on before its cause waits for that": {
			play: func(s *scene) {
				s.have(alone("a"))
				pass(8 * time.Second)
				s.have(cause, explained("a"))
				pass(time.Minute)
				s.have()
				pass(5 * time.Minute)
			},
			want: []string{"firing server-down/influxdb/db:80", "cleared server-down/influxdb/db:80"},
		},
		"what recovers after its cause is not told": {
			play: func(s *scene) {
				s.have(cause, explained("a"))
				pass(time.Minute)
				s.have(alone("a"))
				pass(50 * time.Second)
				s.have()
				pass(5 * time.Minute)
			},
			want: []string{"firing server-down/influxdb/db:80", "cleared server-down/influxdb/db:80"},
		},
		"what outlives its cause is told": {
			play: func(s *scene) {
				s.have(cause, explained("a"))
				pass(time.Minute)
				s.have(alone("a"))
				pass(2 * time.Minute)
			},
			want: []string{"firing server-down/influxdb/db:80", "cleared server-down/influxdb/db:80", "firing job-failing/a"},
		},
		"a cause that was too short to be told explains nothing": {
			play: func(s *scene) {
				s.have(cause, explained("a"))
				pass(20 * time.Second)
				s.have(alone("a"))
				pass(15 * time.Second)
			},
			want: []string{"firing job-failing/a"},
		},
		"a cause whose rule is off explains nothing": {
			off: true,
			play: func(s *scene) {
				s.have(cause, explained("a"))
				pass(time.Minute)
			},
			want: []string{"firing job-failing/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, in := &scene{}, &inbox{}
				s.have()
				start(t, s, in, func(config *watchdog.Config) {
					config.Timings = map[string]watchdog.Timing{"server-down": {Hold: 30 * time.Second, Clear: time.Minute, Off: c.off}}
				})
				c.play(s)
				require.Equal(t, c.want, in.told())
			})
		})
	}
}
