package page_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/server/page"
)

// TestBackLeadsNowhereElse holds the link of an answer against where a form says that it
// comes from.
func TestBackLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	p := page.New(page.Config{API: &api.Clients{}})
	for from, back := range map[string]string{
		"http://jobs.example.org/queues?q=1":      "/queues?q=1",
		"http://jobs.example.org//evil.example/x": "/",
		"http://jobs.example.org/%2Fevil.example": "/",
		"http://evil.example/x":                   "/",
		"":                                        "/",
	} {
		r := httptest.NewRequest(http.MethodPost, "http://jobs.example.org/do/nothing", nil)
		r.Header.Set("Referer", from)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		require.Contains(t, w.Body.String(), `href="`+back+`">Back`, from)
		require.NotContains(t, w.Body.String(), "//evil", from)
	}
}
