// Package objectstest stands between an S3 client and its store: a test sees
// what is asked of the store, and can answer in its place, or cut it off.
package objectstest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// Request is a request that the store answered.
type Request struct {
	Method string
	Path   string // with the bucket
	Status int
	// Left is closed when the client has given up waiting for the answer.
	Left <-chan struct{}
}

// Proxy passes requests on to a store. Its methods may be called at any time.
type Proxy struct {
	// URL is the endpoint for clients.
	URL string

	upstream http.Handler
	mu       sync.Mutex
	before   func(w http.ResponseWriter, r *http.Request) bool
	after    func(Request)
	seen     []Request
}

// NewProxy starts a proxy for the store at an endpoint. It ends with the test.
func NewProxy(t testing.TB, endpoint string) *Proxy {
	t.Helper()
	p := &Proxy{upstream: stacktest.ReverseProxy(t, endpoint)}
	p.URL = stacktest.Serve(t, p)
	return p
}

// Before sets what sees a request first: true means that it has answered. Nil
// passes all on.
func (p *Proxy) Before(do func(w http.ResponseWriter, r *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = do
}

// After sets what is called when the store has answered, before the client hears
// of it. Nil for nothing.
func (p *Proxy) After(do func(Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = do
}

// Requests lists what the store has answered so far.
func (p *Proxy) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	before, after := p.before, p.after
	p.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	recorder := httptest.NewRecorder()
	p.upstream.ServeHTTP(recorder, r)
	seen := Request{Method: r.Method, Path: r.URL.Path, Status: recorder.Code, Left: r.Context().Done()}
	p.mu.Lock()
	p.seen = append(p.seen, seen)
	p.mu.Unlock()
	if after != nil {
		after(seen)
	}
	for name, values := range recorder.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes())
}

// Cut is a [Proxy.Before] that breaks off every connection, as a store that is
// away does.
func Cut(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
