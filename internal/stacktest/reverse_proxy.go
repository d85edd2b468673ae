package stacktest

import (
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
)

// ReverseProxy passes requests on to the server of a URL, under the host that the client asked for:
// it may be signed. It says nothing of connections that break: tests cut them on purpose.
//
// InfluxDB begins its answer before it has seen the end of a request. Without full duplex, Go's
// server closes the body of the request at that moment. The transport may still read it, fails,
// and closes the connection of the answer.
func ReverseProxy(t testing.TB, target string) http.Handler {
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
