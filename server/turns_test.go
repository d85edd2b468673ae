package server_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// largeCallsInTurn has a caller with as many calls of many jobs as are let in at once: more
// of them wait, and other callers, and other calls, do not.
func largeCallsInTurn(t *testing.T, w *world) {
	s := w.guarded(t, nil)
	plan := func(ctx context.Context, name string, body io.Reader) (*http.Request, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+jobsv1connect.JobSetServicePlanJobSetProcedure, body)
		if err == nil {
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Authorization", "Bearer "+s.tokens[name])
		}
		return request, err
	}
	const empty = `{"jobSet":{"provider":"turns"}}`
	var bodies []*io.PipeWriter
	answers := make(chan int)
	send := func() {
		reader, writer := io.Pipe()
		bodies = append(bodies, writer)
		request, err := plan(t.Context(), "vera", reader)
		require.NoError(t, err)
		go func() {
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				answers <- 0
				return
			}
			_ = response.Body.Close()
			answers <- response.StatusCode
		}()
		_, err = io.WriteString(writer, empty[:5])
		require.NoError(t, err)
	}
	for range 3 {
		send()
	}
	stacktest.WaitFor(t, "the calls of vera", func() (bool, error) { return s.Waiting("caller vera") == 3, nil })
	status, _ := s.call(t, "vera", jobsv1connect.JobServiceListJobsProcedure, "{}")
	require.Equal(t, http.StatusOK, status)
	status, _ = s.call(t, "otto", jobsv1connect.JobSetServicePlanJobSetProcedure, empty)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 3, s.Waiting("caller vera"))
	for _, body := range bodies {
		go func() { _, _ = io.WriteString(body, empty[5:]); _ = body.Close() }()
	}
	for range bodies {
		require.Equal(t, http.StatusOK, <-answers)
	}
	stacktest.WaitFor(t, "the end of the calls of vera", func() (bool, error) { return s.Waiting("caller vera") == 0, nil })
}
