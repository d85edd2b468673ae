package influx_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/dendrascience/dendra-jobs/devstack/internal/influx"
)

// TestOtherSites holds the server against pages of other sites, and what it is for.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	s, err := influx.Start(influx.Options{
		Folder: t.TempDir(), Version: "1.8.3", Databases: []string{"meadow"}, LogLevel: slog.LevelError, Failed: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	do := func(method, path, body string, headers ...string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(headers); n += 2 {
			r.Header.Set(headers[n], headers[n+1])
		}
		if host := r.Header.Get("Host"); host != "" {
			r.Host = host
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	query := func(text string) string { return "/query?" + url.Values{"db": {"meadow"}, "q": {text}}.Encode() }
	if status, text := do("POST", "/write?db=meadow", "air value=1 1"); status != http.StatusNoContent {
		t.Errorf("a write: %d %s", status, text)
	}
	for _, headers := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Host", "evil.example"}} {
		if status, text := do("GET", query("SELECT * FROM air"), "", headers...); status != http.StatusForbidden {
			t.Errorf("%v reads: %d %s", headers, status, text)
		}
		if status, text := do("POST", query("CREATE DATABASE stolen"), "", headers...); status != http.StatusForbidden {
			t.Errorf("%v changes: %d %s", headers, status, text)
		}
	}
	if status, _ := do("GET", "/debug/pprof/", ""); status != http.StatusNotFound {
		t.Errorf("profiles: %d", status)
	}
	if _, text := do("GET", query("SELECT value FROM air"), ""); !strings.Contains(text, `["1970-01-01T00:00:00.000000001Z",1]`) {
		t.Errorf("what was written: %s", text)
	}
	if _, text := do("GET", query("SHOW DATABASES"), ""); strings.Contains(text, "stolen") || !strings.Contains(text, "meadow") {
		t.Errorf("the databases: %s", text)
	}
	if _, text := do("GET", "/ping?verbose=true", ""); !strings.Contains(text, "1.8.3") {
		t.Errorf("the version: %s", text)
	}
}
