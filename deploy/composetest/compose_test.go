package composetest_test

import (
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompose: from nothing to variants of photos, items of a queue, points, and the page; and
// then everything that may happen to containers. What was acknowledged is done in the end.
func TestCompose(t *testing.T) {
	needs(t)
	p := newProject(t, startEngine(t))
	p.up(t, "--build")
	p.token = regexp.MustCompile(`dendra_jobs_\S+`).FindString(p.run(t, "logs", "--no-log-prefix", "token"))
	require.NotEmpty(t, p.token, "the log of the service token")
	require.Equal(t, http.StatusOK, p.get(t, "/", p.token))
	require.NotEqual(t, http.StatusOK, p.get(t, "/metrics", "wrong"))
}

// get asks the page, as who has the token.
func (p *project) get(t *testing.T, path, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.page+path, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	return response.StatusCode
}
