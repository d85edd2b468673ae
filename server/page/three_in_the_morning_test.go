package page_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/activities/load"
	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/workers"
)

// Jobs of the morning: each kind has a cause of its own to stand still. There are 48 in make test,
// and 300 in make soak-tests.
var (
	morningLoads   = stacktest.Size(12, 30)
	morningLoggers = stacktest.Size(12, 90)
	morningChecks  = stacktest.Size(12, 90)
	morningFolders = stacktest.Size(12, 90)
)

// morningPeriod is that of the recurring ones.
const morningPeriod = 2 * time.Minute

type checkSpec struct {
	Record string `json:"record" help:"site and name of the record to check"`
}

// checks is a worker's build of CheckRecords: one that takes records apart in a way that not all of
// them allow, or one that does not.
func checks(separator string) []job.Type {
	return []job.Type{job.NewType("CheckRecords", "checks", "Checks records.", func(_ context.Context, _ job.Run, s checkSpec) (job.Result, error) {
		return job.Result{Message: strings.Split(s.Record, separator)[1] + " is whole"}, nil
	})}
}

// morning is many jobs, and all that they need.
type morning struct {
	*world
	st, influx *stacktest.Stack
	nats       *pipeline.Client
	// refuses says that the vendor accepts no token.
	refuses    atomic.Bool
	stopChecks func()
	folders    *stacktest.Process
}

// TestThreeInTheMorning breaks four things at once under many jobs. The page tells each in a line with
// what to do, and is calm again once they are mended.
func TestThreeInTheMorning(t *testing.T) {
	t.Parallel()
	m := newMorning(t)
	b := newTab(t, 1280, 900)
	b.open(m.url + "/")
	b.until("calm", `document.querySelector("#needs-you .calm") && !document.querySelector(".alerts")`)
	lookAt(t, m.url, map[string]string{"morning-before": "/"})

	m.influx.Kill()
	m.publish(t, 2)
	m.refuses.Store(true)
	m.deployChecks(t, "/")
	m.folders.Kill()
	broke := time.Now()
	told := map[string]time.Duration{}
	causes := map[string][]string{
		"InfluxDB":  {"Server down", fmt.Sprintf("holds up %d jobs, %d loads", morningLoads, morningLoads), "Start InfluxDB"},
		"the token": {"Job failing", "refuses the token", "jobs fail alike", "Put a valid token into the secret", "Retry all"},
		"the bug":   {"Job failing", "CheckRecords panicked", "jobs fail alike", "To do:", "Retry all"},
		"the host":  {"No worker", "HashFiles", fmt.Sprintf("%d jobs need", morningFolders), "Start a worker that serves it"},
	}
	stacktest.WaitFor(t, "a line of each cause", func() (bool, error) {
		lines := needs(b)
		for name, texts := range causes {
			if _, known := told[name]; !known && len(having(lines, texts)) == 1 {
				told[name] = time.Since(broke)
				t.Logf("%s is told %s after it broke", name, told[name].Round(time.Second/10))
			}
		}
		return len(told) == len(causes), nil
	})
	lines := needs(b)
	require.Len(t, lines, len(causes), "a line is a cause: %s", strings.Join(lines, "\n\n"))
	require.Equal(t, "4", is[string](b, `document.querySelector("#needs-title .count").textContent`))
	require.Equal(t, 1, is[int](b, `document.querySelectorAll(".servers .down").length`), "one server is one server")
	lookAt(t, m.url, map[string]string{"morning": "/"})
	b.click(".alerts details > summary")
	b.until("the first that it holds up", `document.querySelector(".alerts details li").innerText.includes(".n000")`)
	require.Equal(t, 10, is[int](b, `document.querySelectorAll(".alerts > li > .told > details[open] > ul > li").length`))

	m.influx.Restart(t)
	m.refuses.Store(false)
	m.deployChecks(t, "-")
	m.startFolders(t)
	mended := time.Now()
	for _, name := range []string{"the token", "the bug"} {
		text := causes[name][1]
		// The page asks again if more jobs have failed meanwhile.
		press := `(() => {
			const [line] = ` + lineOf(text) + `, ask = document.querySelector("#ask");
			if (!line && !ask.open) return true;
			(ask.open ? ask.querySelector("#confirm") : line.querySelector("[value=retry-run], [action$=retry-run] button, [action$=run-job] button"))?.click();
			return false;
		})()`
		stacktest.WaitFor(t, "no line of "+name, func() (bool, error) { return is[bool](b, press), nil })
		t.Logf("%s is gone %s after all was mended", name, time.Since(mended).Round(time.Second/10))
	}
	for _, name := range []string{"the host", "InfluxDB"} {
		b.until("no line of "+name, lineOf(causes[name][0])+".length === 0")
		t.Logf("%s is gone %s after all was mended", name, time.Since(mended).Round(time.Second/10))
	}
	b.until("calm again", `document.querySelector("#needs-you .calm") && !document.querySelector(".alerts")`)
	t.Logf("calm %s after all was mended", time.Since(mended).Round(time.Second/10))
	lookAt(t, m.url, map[string]string{"morning-after": "/"})
	b.requireCalm()
}

// needs are the lines of what needs a person.
func needs(b *tab) []string {
	b.t.Helper()
	return is[[]string](b, `Array.from(document.querySelectorAll(".alerts > li")).map(li => li.innerText)`)
}

// having are the lines that have all of some texts.
func having(lines, texts []string) []string {
	var found []string
	for _, line := range lines {
		has := true
		for _, text := range texts {
			has = has && strings.Contains(line, text)
		}
		if has {
			found = append(found, line)
		}
	}
	return found
}

// newMorning makes the jobs, and waits until all loads have written.
func newMorning(t *testing.T) *morning {
	t.Helper()
	m := &morning{st: stacktest.StartOwn(t, "--only", "temporal,nats"), influx: stacktest.StartOwn(t, "--only", "influx")}
	m.nats = m.st.Pipeline(t)
	m.world = newWorld(t, m.st, m.nats, []job.Type{load.LiveInflux(m.nats)})
	require.NoError(t, m.nats.Ready(t.Context()))
	vendor := hobolinktest.NewHandler(hobolinktest.Options{RateLimit: 100_000, Interval: 10 * time.Minute})
	address := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.refuses.Load() {
			http.Error(w, `{"error":"ATH-001","message":"the token has been revoked"}`, http.StatusUnauthorized)
			return
		}
		vendor.ServeHTTP(w, r)
	}))
	stacktest.StartProgram(t, m.st, stacktest.Program{Name: "extract", Env: []string{"DENDRA_SECRET_HOBOLINK=owners: *\n\n" + hobolinktest.DefaultToken}})
	m.deployChecks(t, "-")
	m.startFolders(t)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "file"), []byte("text"), 0o600))
	stacktest.WaitFor(t, "all workers to be listed", func() (bool, error) {
		listed, err := m.client.Workers.List(t.Context())
		return err == nil && len(listed.Services) == 4, err
	})

	for n := range morningLoads {
		w, name := m.world, numbered(n)
		w.create(t, &jobsv1.Job{Id: "live_load_influx_v1." + name, Mode: &jobsv1.Job_Continuous{
			Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Second)},
		}}, map[string]any{"location": name, "influx_url": m.influx.Influx, "batch_age": "PT0.1S", "iteration_duration": "PT10S"})
	}
	m.recurring(t, "extract_hobo_time_frame", morningLoggers, func(name string) map[string]any {
		return map[string]any{
			"token": "secret://hobolink", "organization": "org", "location": name, "base_url": address, "backfill": "PT1H", "increment": "PT1H",
			"overlap": "PT0S", "loggers": []any{map[string]any{"serial": hobolinktest.DefaultLoggers()[0], "station": "Ridge"}},
		}
	})
	m.recurring(t, "check_records", morningChecks, func(name string) map[string]any { return map[string]any{"record": "ridge-" + name} })
	m.recurring(t, "hash_files", morningFolders, func(string) map[string]any { return map[string]any{"folder": folder} })
	m.publish(t, 1)
	stacktest.WaitFor(t, "all to load", func() (bool, error) {
		answer, err := m.api.Loads.ListLoads(t.Context(), &jobsv1.ListLoadsRequest{})
		loaded := 0
		for _, l := range answer.GetLoads() {
			if l.GetPoints() > 0 {
				loaded++
			}
		}
		return loaded == morningLoads, err
	})
	return m
}

func numbered(n int) string { return fmt.Sprintf("n%03d", n) }

// recurring makes jobs of a type whose starts are spread over their period.
func (m *morning) recurring(t *testing.T, jobType string, jobs int, values func(name string) map[string]any) {
	t.Helper()
	for n := range jobs {
		offset := morningPeriod * time.Duration(n) / time.Duration(jobs)
		m.create(t, &jobsv1.Job{Id: jobType + "." + numbered(n), Mode: &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{
			RecurEvery: durationpb.New(morningPeriod), Offset: durationpb.New(offset.Truncate(time.Second)),
		}}}, values(numbered(n)))
	}
}

// publish gives each load a point to write.
func (m *morning) publish(t *testing.T, value int) {
	t.Helper()
	var messages []pipeline.Outgoing
	for n := range morningLoads {
		body := fmt.Sprintf(`{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"org"},"payload":{"options":{"database":%q},`+
			`"points":[{"measurement":"m","fields":{"v":%d},"time":%d}]}}`, numbered(n), value, time.Now().UnixMilli())
		messages = append(messages, pipeline.Outgoing{Subject: pipeline.PrepSubject(pipeline.OperationLive, numbered(n)), Body: []byte(body)})
	}
	_, err := m.nats.Publish(t.Context(), messages)
	require.NoError(t, err)
}

// deployChecks replaces the worker of CheckRecords by one of another build.
func (m *morning) deployChecks(t *testing.T, separator string) {
	t.Helper()
	if m.stopChecks != nil {
		m.stopChecks()
	}
	m.stopChecks = workertest.Run(t, m.st, workers.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Types: checks(separator)})
}

// startFolders starts the only host that serves HashFiles.
func (m *morning) startFolders(t *testing.T) {
	t.Helper()
	m.folders = stacktest.StartProcess(t, m.st, "example-worker", "--service", "shed")
}
