package page_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/activities/load"
	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// TestThreeInTheMorning breaks four things at once: an InfluxDB dies, a vendor refuses a token, a
// handler has a bug, and the host of a worker is gone. The home view tells each in one line,
// with what to do, within a minute. Once they are mended it is calm within a minute. How many
// jobs there are is 60, and 300 in make soak-tests.
func TestThreeInTheMorning(t *testing.T) {
	t.Parallel()
	var (
		loads, readers, buggy, hosted = stacktest.Size(20, 100), stacktest.Size(8, 30), stacktest.Size(5, 10), 3
		quiet                         = stacktest.Size(60, 300) - loads - readers - buggy - hosted
	)
	st, influx := stacktest.StartOwn(t, "--only", "temporal,nats"), stacktest.StartOwn(t, "--only", "influx")
	nats := st.Pipeline(t)
	require.NoError(t, nats.Ready(t.Context()))

	var refuses, bug atomic.Bool
	good, bad := hobolinktest.NewHandler(hobolinktest.Options{RateLimit: 1e6}), hobolinktest.NewHandler(hobolinktest.Options{RateLimit: 1e6, Token: "new"})
	vendor := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() {
			bad.ServeHTTP(w, r)
			return
		}
		good.ServeHTTP(w, r)
	}))
	w := newWorld(t, st, nats, []job.Type{
		load.LiveInflux(nats), extract.HoboTimeFrame(nats), types()[0],
		job.NewType("CountWords", "pagetest", "Counts words.", func(_ context.Context, run job.Run, _ struct{}) (job.Result, error) {
			var words []string
			if bug.Load() {
				run.Logger().Info("the first of the words", "word", words[0])
			}
			return job.Result{Message: "counted"}, nil
		}),
	})
	host := stacktest.StartProcess(t, st, "backend")
	every := func(period time.Duration) *jobsv1.Job_Recurring {
		return &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{RecurEvery: durationpb.New(period)}}
	}
	noRetry := int32(0)
	for n := range loads {
		name := fmt.Sprintf("station%03d", n)
		w.create(t, &jobsv1.Job{Id: "live_load_influx_v1." + name, Mode: &jobsv1.Job_Continuous{
			Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Second)},
		}}, map[string]any{"location": name, "influx_url": influx.Influx, "batch_age": "PT0.1S", "iteration_duration": "PT10S"})
	}
	for n := range readers {
		w.create(t, &jobsv1.Job{Id: fmt.Sprintf("extract_hobo_time_frame.r%03d", n), Mode: every(10 * time.Second), Options: &jobsv1.JobOptions{MaxRetryCount: &noRetry}}, map[string]any{
			"base_url": vendor, "token": "secret://hobolink", "organization": "org", "location": fmt.Sprintf("site%03d", n), "backfill": "PT1H", "increment": "PT1H", "overlap": "PT10M",
			"loggers": []any{map[string]any{"serial": hobolinktest.DefaultLoggers()[0], "station": fmt.Sprintf("s%03d", n)}},
		})
	}
	for n := range buggy {
		w.create(t, &jobsv1.Job{Id: fmt.Sprintf("count_words.b%03d", n), Mode: every(5 * time.Second)}, nil)
	}
	stacktest.WaitFor(t, "the host", func() (bool, error) {
		answer, err := w.api.Workers.ListJobTypes(t.Context(), &jobsv1.ListJobTypesRequest{})
		for _, known := range answer.GetJobTypes() {
			if known.GetName() == "Maintenance" {
				return true, nil
			}
		}
		return false, err
	})
	for n := range hosted {
		w.create(t, &jobsv1.Job{Id: fmt.Sprintf("maintenance.h%03d", n), Mode: every(24 * time.Hour)}, map[string]any{"for": "PT1M", "jobs": []any{"none.*"}})
	}
	for n := range quiet {
		w.daily(t, fmt.Sprintf("quiet-%03d", n), map[string]any{})
	}
	publish := func() {
		var messages []pipeline.Outgoing
		for n := range loads {
			body := fmt.Sprintf(`{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"org"},"payload":{"options":{"database":"db"},`+
				`"points":[{"measurement":"m","fields":{"v":1},"time":%d}]}}`, time.Now().UnixMilli())
			messages = append(messages, pipeline.Outgoing{Subject: pipeline.PrepSubject(pipeline.OperationLive, fmt.Sprintf("station%03d", n)), Body: []byte(body)})
		}
		_, err := nats.Publish(t.Context(), messages)
		require.NoError(t, err)
	}
	publish()
	b := newTab(t, 1280, 1200)
	b.open(w.url + "/")
	stacktest.WaitFor(t, "every job to do its work", func() (bool, error) {
		answer, err := w.api.Overview.GetOverview(t.Context(), &jobsv1.GetOverviewRequest{})
		loaded, completed := 0, 0
		for _, l := range answer.GetOverview().GetLoads() {
			if l.GetPoints() > 0 {
				loaded++
			}
		}
		for _, j := range answer.GetOverview().GetJobs() {
			if j.GetMode() == "recurring" && strings.HasSuffix(j.GetOutcomes(), "C") {
				completed++
			}
		}
		return loaded == loads && completed >= readers+buggy, err
	})
	b.until("calm", `document.querySelector("#needs-you .calm")`)
	b.picture("page-night-before")

	influx.Kill()
	host.Kill()
	refuses.Store(true)
	bug.Store(true)
	publish()
	began := time.Now()
	const lines = `[...document.querySelectorAll(".alerts > li")].map((line) => line.innerText)`
	told := map[string]string{ // what each line says: what broke, and what to do
		"InfluxDB": fmt.Sprintf("holds up %d jobs, %d loads", loads, loads), "the token": "HobolinkToken", "the bug": "Panic", "the host": "Maintenance",
	}
	left := map[string]bool{"InfluxDB": true, "the token": true, "the bug": true, "the host": true}
	stacktest.WaitWithin(t, 3*time.Minute, "four lines", func() (bool, error) {
		shown := is[[]string](b, lines)
		for what := range left {
			for _, line := range shown {
				if strings.Contains(line, told[what]) {
					t.Logf("%s is told after %s", what, time.Since(began).Round(time.Second))
					delete(left, what)
					break
				}
			}
		}
		return len(left) == 0 && len(shown) == len(told), nil
	})
	t.Logf("four lines for four causes after %s:\n%s", time.Since(began).Round(time.Second), strings.Join(is[[]string](b, lines), "\n---\n"))
	b.picture("page-night-1280")
	lookAt(t, w.url, map[string]string{"night": "/"})

	influx.Restart(t)
	refuses.Store(false)
	bug.Store(false)
	stacktest.StartProcess(t, st, "backend")
	began = time.Now()
	b.until("calm again", `document.querySelector("#needs-you .calm") && !document.querySelector(".alerts")`)
	t.Logf("calm %s after all was mended", time.Since(began).Round(time.Second))
	b.picture("page-night-after")
	b.requireCalm()
}
