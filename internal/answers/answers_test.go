package answers_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/answers"
)

// serve answers as handler does. A handler that waits for its request ends with the test.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func get(t *testing.T, client *http.Client, request *http.Request) (string, error) {
	t.Helper()
	response, err := client.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func TestAnAnswerIsNoLargerThanItsLimit(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1000)) })
	for limit, want := range map[int64]int{999: 999, 1000: 1000, 1001: 1000, 0: 1000} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		text, err := get(t, answers.Client(nil, answers.Limits{Bytes: limit}), request)
		require.Len(t, text, want)
		if limit == 999 {
			require.ErrorIs(t, err, answers.ErrTooLarge)
			require.ErrorContains(t, err, "it has more than 999 bytes")
			text, err = get(t, answers.Client(nil, answers.Limits{Bytes: limit}), request.WithContext(answers.Allow(t.Context(), 1000)))
			require.Len(t, text, 1000)
		}
		require.NoError(t, err)
	}
}

func TestAServerThatStopsInTheMiddleOfItsAnswer(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the beginning")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	text, err := get(t, answers.Client(nil, answers.Limits{Silence: 20 * time.Millisecond}), request)
	require.Equal(t, "the beginning", text)
	require.ErrorIs(t, err, answers.ErrSilent)
}

func TestARedirectIsTheAnswer(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := answers.Client(&http.Client{}, answers.Limits{}).Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusFound, response.StatusCode)
}
