package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(noon.Add(d)) }

// sample is an overview with so many jobs, of which the first fails.
func sample(jobs int) *jobsv1.Overview {
	o := &jobsv1.Overview{
		Revision: 1, ReadTime: at(0),
		Servers: []*jobsv1.ServerHealth{
			{Name: "temporal", Up: true, Latency: durationpb.New(3 * time.Millisecond)},
			{Name: "nats", ErrorMessage: "connection refused"},
		},
		Alerts: []*jobsv1.Alert{{
			Name: "job-failing/echo.job-000", Object: "echo.job-000", Text: "3 runs in a row failed.", FireTime: at(-time.Hour),
			Actions: []jobsv1.AlertAction{jobsv1.AlertAction_ALERT_ACTION_RUN_JOB},
		}},
		Queues: []*jobsv1.Queue{{Name: "images", Status: jobsv1.QueueStatus_QUEUE_STATUS_HALTED, Waiting: 7, OldestTime: at(-time.Minute)}},
	}
	for n := range jobs {
		o.Jobs = append(o.Jobs, &jobsv1.JobOverview{
			Id: fmt.Sprintf("echo.job-%03d", n), Mode: "recurring", Status: jobsv1.JobStatus_JOB_STATUS_SCHEDULED, Outcomes: strings.Repeat("C", 30),
			LastSuccessTime: at(-time.Minute), NextStartTime: at(time.Minute),
		})
	}
	o.Jobs[0].Status = jobsv1.JobStatus_JOB_STATUS_FAILING
	o.Jobs[0].Failing = &jobsv1.Failing{Failures: 3, ErrorMessage: "no such\x1b[2Jhost"}
	o.Jobs[0].NextStartTime = at(-time.Second)
	return o
}

func newModel(o *jobsv1.Overview, width, height int) *model {
	m := &model{ctx: nil, now: func() time.Time { return noon }, place: time.UTC, width: width, height: height}
	m.Update(read{&jobsv1.WatchOverviewResponse{Overview: o}})
	return m
}

func (m *model) keys(names ...string) {
	for _, name := range names {
		key := tea.KeyPressMsg{Text: name}
		switch name {
		case "enter":
			key = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "space":
			key = tea.KeyPressMsg{Code: tea.KeySpace, Text: " "}
		case "tab":
			key = tea.KeyPressMsg{Code: tea.KeyTab}
		case "down":
			key = tea.KeyPressMsg{Code: tea.KeyDown}
		default:
			key.Code = []rune(name)[0]
		}
		m.Update(key)
	}
}

func TestEveryPaneFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {40, 10}, {20, 8}, {200, 60}} {
		m := newModel(sample(100), size[0], size[1])
		for range panes {
			lines := strings.Split(m.screen(), "\n")
			if len(lines) != size[1] {
				t.Errorf("%s at %v has %d lines", m.pane.title(), size, len(lines))
			}
			for _, text := range lines {
				if width := ansi.StringWidth(text); width > size[0] {
					t.Errorf("%s at %v has a line of %d characters: %q", m.pane.title(), size, width, text)
				}
			}
			m.keys("tab")
		}
	}
}

func TestAlertsComeFirst(t *testing.T) {
	t.Parallel()
	m := newModel(sample(3), 80, 24)
	screen := m.screen()
	for _, want := range []string{"[1 alerts 1]", "echo.job-000", "3 runs in a row failed.", "run job", "nats DOWN: connection refused", "1 failing"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is missing in:\n%s", want, screen)
		}
	}
}

func TestAFrozenScreenStaysAsItIs(t *testing.T) {
	t.Parallel()
	m := newModel(sample(3), 80, 24)
	clock := noon
	m.now = func() time.Time { return clock }
	m.keys("2", "space")
	before := m.screen()
	clock = noon.Add(time.Hour)
	m.Update(tick{})
	m.Update(read{&jobsv1.WatchOverviewResponse{Delta: true, RemovedJobs: []string{"echo.job-001"}, Overview: &jobsv1.Overview{Revision: 2}}})
	if after := m.screen(); after != before {
		t.Errorf("the screen changed while it was frozen:\n%s\nto\n%s", before, after)
	}
	m.keys("space")
	if strings.Contains(m.screen(), "echo.job-001") {
		t.Error("the screen does not go on with what is now")
	}
}

func TestFilterFindsAnyPartOfALine(t *testing.T) {
	t.Parallel()
	m := newModel(sample(100), 80, 24)
	m.keys("2", "/", "B", "-", "0", "4", "2", "enter")
	rows := m.rows()
	if len(rows) != 1 || rows[0].name != "echo.job-042" {
		t.Errorf("the filter left %v", rows)
	}
}

func TestChangesAreAskedAboutFirst(t *testing.T) {
	t.Parallel()
	m := newModel(sample(3), 80, 24)
	m.keys("2", "down", "p")
	if m.asked == nil || !strings.Contains(m.screen(), "Pause job echo.job-001? y/n") {
		t.Fatalf("nothing is asked:\n%s", m.screen())
	}
	_, command := m.Update(tea.KeyPressMsg{Code: 'n', Text: "n"})
	if command != nil || m.asked != nil || !strings.Contains(m.screen(), "Nothing was changed.") {
		t.Errorf("n did not end it:\n%s", m.screen())
	}
	m.keys("1", "enter")
	if m.asked == nil || m.asked.question() != "Run job echo.job-000?" {
		t.Errorf("the alert's action is not asked about: %v", m.asked)
	}
}

func TestAStartThatIsDueIsNow(t *testing.T) {
	t.Parallel()
	if got := jobRow(sample(1).GetJobs()[0], clock{noon, time.UTC}).cells[4]; got != "now" {
		t.Errorf("a start in the past is due in %q", got)
	}
}

func TestTextsOfJobsDoNotControlTheTerminal(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if _, err := Write(&b, sample(2), noon, time.UTC, 0, false); err != nil {
		t.Fatal(err)
	}
	m := newModel(sample(2), 120, 24)
	m.keys("2")
	m.message = "paused: \x1b]0;owned\x07\u202egnihton"
	for _, text := range []string{b.String(), m.View().Content} {
		if strings.ContainsAny(text, "\x1b\x07\u202e") {
			t.Errorf("an escape sequence is let through: %q", text)
		}
	}
}

func TestADeltaChangesOnlyWhatItHas(t *testing.T) {
	t.Parallel()
	was := sample(3)
	changed := &jobsv1.JobOverview{Id: "echo.job-002", Status: jobsv1.JobStatus_JOB_STATUS_PAUSED}
	added := &jobsv1.JobOverview{Id: "echo.a"}
	now := merged(was, &jobsv1.WatchOverviewResponse{
		Delta: true, RemovedJobs: []string{"echo.job-000"},
		Overview: &jobsv1.Overview{Revision: 2, Jobs: []*jobsv1.JobOverview{changed, added}},
	})
	got := make([]string, 0, 3)
	for _, job := range now.GetJobs() {
		got = append(got, job.GetId()+" "+word(job.GetStatus(), "JOB_STATUS_"))
	}
	if want := "echo.a unspecified, echo.job-001 scheduled, echo.job-002 paused"; strings.Join(got, ", ") != want {
		t.Errorf("the jobs are %v, want %s", got, want)
	}
	if len(now.GetQueues()) != 1 || len(now.GetAlerts()) != 0 || len(was.GetJobs()) != 3 {
		t.Errorf("queues %v, alerts %v, jobs before %d", now.GetQueues(), now.GetAlerts(), len(was.GetJobs()))
	}
}
