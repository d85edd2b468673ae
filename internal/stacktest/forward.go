package stacktest

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
)

// Forward passes requests on to the server of a URL, under the host that the client asked for: it
// may be signed. It says nothing of connections that break: tests cut them on purpose.
//
// A server may begin its answer before it knows that a request has ended, as InfluxDB does. Go's
// server then closes the request, and the transport, which still looks for its end, the connection
// with the answer. Full duplex keeps it open.
func Forward(t testing.TB, target string) http.Handler {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // A recorder has none, and needs none.
		proxy.ServeHTTP(w, r)
	})
}
