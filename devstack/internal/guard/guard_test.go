package guard_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dendrascience/dendra-jobs/devstack/internal/guard"
)

func TestHandler(t *testing.T) {
	t.Parallel()
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		what, method, host string
		headers            map[string]string
		strict, lax        int
	}{
		{"a program", "POST", "127.0.0.1:8086", nil, 200, 200},
		{"a program by name", "GET", "localhost:8086", nil, 200, 200},
		{"IPv6", "GET", "[::1]:8086", nil, 200, 200},
		{"its own page", "POST", "127.0.0.1:8233", map[string]string{"Origin": "http://127.0.0.1:8233", "Sec-Fetch-Site": "same-origin"}, 200, 200},
		{"typed in", "GET", "127.0.0.1:8233", map[string]string{"Sec-Fetch-Site": "none"}, 200, 200},
		{"another name for the address", "GET", "evil.example", nil, 403, 403},
		{"a name that begins like it", "GET", "127.0.0.1.evil.example:8086", nil, 403, 403},
		{"no host", "GET", "", nil, 403, 403},
		{"a link", "GET", "127.0.0.1:8233", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, 200},
		{"a script that reads", "GET", "127.0.0.1:8086", map[string]string{"Origin": "https://evil.example"}, 403, 200},
		{"a form", "POST", "127.0.0.1:8086", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, 403},
		{"a page at another port", "POST", "127.0.0.1:8086", map[string]string{"Origin": "http://127.0.0.1:9999"}, 403, 403},
		{"a page of nowhere", "POST", "127.0.0.1:8086", map[string]string{"Origin": "null"}, 403, 403},
	} {
		for reads, want := range map[guard.Reads]int{guard.RefuseReads: c.strict, guard.AllowReads: c.lax} {
			r := httptest.NewRequest(c.method, "/query", nil)
			r.Host = c.host
			for name, value := range c.headers {
				r.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			guard.Handler(next, reads).ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("%s, reads %t: status %d, want %d", c.what, reads, w.Code, want)
			}
		}
	}
}
