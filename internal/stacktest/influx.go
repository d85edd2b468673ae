package stacktest

import (
	"io"
	"net/http"
	"net/url"
	"testing"
)

// DiscardQuery reads the whole answer to one query of InfluxDB, as it comes, and throws it away.
func (s *Stack) DiscardQuery(t testing.TB, database, command string) {
	t.Helper()
	query := url.Values{"db": {database}, "epoch": {"ns"}, "chunked": {"true"}, "q": {command}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Influx+"/query?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err = io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("query %q: %s: %v", command, response.Status, err)
	}
}
