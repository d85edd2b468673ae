package page_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/activities/load"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// TestOneCauseIsOneLine stops an InfluxDB that thirty jobs load into. The page tells it in one line,
// and is calm again once the server is back.
func TestOneCauseIsOneLine(t *testing.T) {
	t.Parallel()
	const jobs = 30
	st, influx := stacktest.StartOwn(t, "--only", "temporal,nats"), stacktest.StartOwn(t, "--only", "influx")
	nats := st.Pipeline(t)
	w := newWorld(t, st, nats, []job.Type{load.LiveInflux(nats)})
	require.NoError(t, nats.Ready(t.Context()))
	publish := func(n int) {
		var messages []pipeline.Outgoing
		for location := range jobs {
			body := fmt.Sprintf(`{"context":{"imported_at":"2026-03-04T12:00:00Z","org_slug":"org"},"payload":{"options":{"database":"db"},`+
				`"points":[{"measurement":"m","fields":{"v":%d},"time":%d}]}}`, n, time.Now().UnixMilli())
			subject := pipeline.PrepSubject(pipeline.OperationLive, fmt.Sprintf("station%02d", location))
			messages = append(messages, pipeline.Outgoing{Subject: subject, Body: []byte(body)})
		}
		_, err := nats.Publish(t.Context(), messages)
		require.NoError(t, err)
	}
	for location := range jobs {
		name := fmt.Sprintf("station%02d", location)
		w.create(t, &jobsv1.Job{Id: "live_load_influx_v1." + name, Mode: &jobsv1.Job_Continuous{
			Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Second)},
		}}, map[string]any{"location": name, "influx_url": influx.Influx, "batch_age": "PT0.1S", "iteration_duration": "PT3S"})
	}
	publish(1)
	stacktest.WaitFor(t, "all to load", func() (bool, error) {
		answer, err := w.api.Loads.ListLoads(t.Context(), &jobsv1.ListLoadsRequest{})
		loaded := 0
		for _, l := range answer.GetLoads() {
			if l.GetPoints() > 0 {
				loaded++
			}
		}
		return loaded == jobs, err
	})
	b := newTab(t, 1280, 900)
	b.open(w.url + "/")
	b.until("calm", `document.querySelector("#needs-you .calm")`)

	influx.Kill()
	publish(2)
	began := time.Now()
	b.until("one line that says what is held up", fmt.Sprintf(`document.querySelectorAll(".alerts > li").length === 1 &&
		document.querySelector(".alerts > li").innerText.includes("holds up %d jobs, %d loads")`, jobs, jobs))
	t.Logf("%d jobs are one line %s after the server was killed", jobs, time.Since(began).Round(time.Second))
	require.Less(t, time.Since(began), time.Minute)
	line := is[string](b, `document.querySelector(".alerts > li").innerText`)
	require.Contains(t, line, "Server down")
	require.Contains(t, line, "Start InfluxDB")
	require.Equal(t, "1", is[string](b, `document.querySelector("#needs-title .count").textContent`))
	require.Equal(t, 1, is[int](b, `document.querySelectorAll(".servers .down").length`), "one server is one server")
	lookAt(t, w.url, map[string]string{"one-cause": "/"})
	b.click(".alerts details > summary")
	b.until("the first of the jobs", `document.querySelector(".alerts details li").innerText.includes("live_load_influx_v1.station00")`)
	require.Equal(t, 10, is[int](b, `document.querySelectorAll(".alerts > li > .told > details > ul > li").length`))

	influx.Restart(t)
	began = time.Now()
	b.until("calm again", `document.querySelector("#needs-you .calm") && !document.querySelector(".alerts")`)
	t.Logf("calm %s after the server was back", time.Since(began).Round(time.Second))
	b.requireCalm()
}
