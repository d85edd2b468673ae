package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// inFlight counts the calls that each caller has under way.
type inFlight struct {
	limit int

	mu    sync.Mutex
	calls map[string]int
}

func newInFlight(limit int) *inFlight { return &inFlight{limit: limit, calls: map[string]int{}} }

// begin counts a call, or says that it is one too many.
func (f *inFlight) begin(caller string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[caller] >= f.limit {
		return false
	}
	f.calls[caller]++
	return true
}

func (f *inFlight) end(caller string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[caller]--; f.calls[caller] == 0 {
		delete(f.calls, caller)
	}
}

// callerLimits lets each caller have a few large calls under way at a time. Others of the caller
// wait, before anything of them is read.
type callerLimits struct {
	limit int

	mu      sync.Mutex
	callers map[string]*callerLimit
}

type callerLimit struct {
	taken chan struct{}
	users int // calls that have a turn, or wait for one
}

func newCallerLimits(limit int) *callerLimits {
	return &callerLimits{limit: limit, callers: map[string]*callerLimit{}}
}

// acquire waits for a turn, and gives the function that ends it. It is nil if there was none in
// time.
func (t *callerLimits) acquire(ctx context.Context, caller string) (end func()) {
	t.mu.Lock()
	own := t.callers[caller]
	if own == nil {
		own = &callerLimit{taken: make(chan struct{}, t.limit)}
		t.callers[caller] = own
	}
	own.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(t.callers, caller)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, TurnTimeout)
	defer cancel()
	select {
	case own.taken <- struct{}{}:
		return func() { <-own.taken; leave() }
	case <-ctx.Done():
		leave()
		return nil
	}
}

// timedBody is a body that has to come within BodyTimeout. Its reader is then left alone: a
// stream goes on for longer.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	once    sync.Once
}

type bodyKey struct{}

// limitBody bounds the size of a body, and the time that it takes to come.
func limitBody(w http.ResponseWriter, r *http.Request) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	body := &timedBody{ReadCloser: http.MaxBytesReader(w, r.Body, maxBody), control: http.NewResponseController(w)}
	if body.control.SetReadDeadline(time.Now().Add(BodyTimeout)) != nil {
		body.done()
	}
	r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, body))
	r.Body = body
	return r
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.done()
	}
	return n, err
}

// done ends the time limit. On HTTP/1 it would end the call.
func (b *timedBody) done() {
	b.once.Do(func() { _ = b.control.SetReadDeadline(time.Time{}) }) // What is not supported was not set.
}

// requestRead says that the request of a stream has come.
func requestRead(ctx context.Context) {
	if body, ok := ctx.Value(bodyKey{}).(*timedBody); ok {
		body.done()
	}
}
