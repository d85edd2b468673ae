package webui_test

import (
	"net/http"
	"testing"

	"github.com/dendrascience/dendra-jobs/devstack/internal/webui"
)

// TestOtherSites has the Web UI answer to programs and people of this host alone.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	s, err := webui.Start(webui.Options{Temporal: "127.0.0.1:1", Namespace: "meadow", Failed: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, c := range []struct {
		method, path, host, site string
		want                     int
	}{
		{http.MethodGet, "/", "", "", http.StatusOK},
		{http.MethodGet, "/namespaces/meadow/workflows", "", "cross-site", http.StatusOK}, // a link
		{http.MethodGet, "/api/v1/settings", "", "same-origin", http.StatusOK},
		{http.MethodGet, "/", "evil.example", "", http.StatusForbidden},
		{http.MethodGet, "/api/v1/settings", "evil.example", "same-origin", http.StatusForbidden},
		{http.MethodPost, "/api/v1/namespaces/meadow/workflows/x/terminate", "", "cross-site", http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, s.URL()+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.host != "" {
			r.Host = c.host
		}
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != c.want {
			t.Errorf("%+v: status %d", c, response.StatusCode)
		}
	}
}
