package stacktest_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestAnAnswerBeginsBeforeItsRequestEnds: the client sends the end of its request once it has the
// status of the answer.
func TestAnAnswerBeginsBeforeItsRequestEnds(t *testing.T) {
	t.Parallel()
	early := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		if err := control.Flush(); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(w, r.Body)
	}))
	body, end := io.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = end.CloseWithError(ctx.Err()) }) // What sends it waits for it.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, stacktest.Serve(t, stacktest.ReverseProxy(t, early)), body)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	_, err = io.WriteString(end, "the end")
	require.NoError(t, err)
	require.NoError(t, end.Close())
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, "the end", string(answer))
}
