package page_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/server/page"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// brokenOff pauses many jobs by a server that holds calls back, and stops that on the way: what
// is under way ends, and the other jobs stay as they are.
func brokenOff(t *testing.T, w *world) {
	const many, let = 20, 4
	ids := make([]string, many)
	for n := range ids {
		ids[n] = w.daily(t, fmt.Sprintf("stop-%02d", n), map[string]any{})
	}
	for _, id := range ids {
		w.outcomes(t, id, "")
	}
	var begun atomic.Int32
	held := make(chan struct{})
	hold := func(next connect.ServerFunc) connect.ServerFunc {
		return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
			if spec.Procedure == jobsv1connect.JobServicePauseJobProcedure && begun.Add(1) > let {
				<-held
			}
			return next(ctx, spec, stream)
		}
	}
	server := api.New(api.Config{Client: w.client, Pipeline: w.pipeline, Reads: w.reads, Types: types(), Interceptors: []connect.ServerInterceptor{hold}})
	t.Cleanup(server.Close)
	b := newTab(t, 1280, 900)
	shown, left := page.New(page.Config{API: server.InProcess()}), make(chan struct{}, 10)
	s := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			defer context.AfterFunc(r.Context(), func() { left <- struct{}{} })()
		}
		shown.ServeHTTP(w, r)
	}))
	b.open(s + "/?q=take_steps.stop-")
	b.click(`#bulk [value="pause-job"]`)
	b.until("the preview", `document.querySelector("#ask").open`)
	require.Contains(t, is[string](b, `document.querySelector("#ask").innerText`), "Pause 20 jobs?")
	b.click("#confirm")
	b.until("the progress", `document.querySelector("#message progress + span")?.innerText === "Pause: 4 of 20 jobs"`)
	b.click("#stop")
	b.until("the end", `document.querySelector("#message").innerText.includes("It was stopped: 4 of 20 jobs have an answer.")`)
	<-left
	close(held)
	paused := func() int {
		n := 0
		answer, err := w.api.Jobs.ListJobs(t.Context(), &jobsv1.ListJobsRequest{Filter: `id = "take_steps.stop-*"`})
		require.NoError(t, err)
		for _, j := range answer.GetJobs() {
			if j.GetState().GetStatus() == jobsv1.JobStatus_JOB_STATUS_PAUSED {
				n++
			}
		}
		return n
	}
	stacktest.WaitFor(t, "those that were under way to end", func() (bool, error) { return paused() == let+verbs.AtOnce, nil })
	require.EqualValues(t, let+verbs.AtOnce, begun.Load(), "no more were begun")
	b.requireCalm()
}
