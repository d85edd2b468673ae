package cli

import (
	"context"
	"path"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
)

// defaultPatience is how long a command waits without a sign.
const defaultPatience = 4 * time.Second

// waits are what a command waits for at the moment.
type waits struct {
	mu    sync.Mutex
	of    []*string // the latest last
	shown bool      // somebody shows it
}

// begin adds a wait, and says whether its caller has to show all.
func (w *waits) begin(what *string) (show bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of = append(w.of, what)
	show = !w.shown
	w.shown = true
	return show
}

func (w *waits) end(what *string, showed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of = slices.DeleteFunc(w.of, func(one *string) bool { return one == what })
	if showed {
		w.shown = false
	}
}

// latest is what was begun last: the others may wait for it.
func (w *waits) latest() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *w.of[len(w.of)-1]
}

// waiting shows what a command waits for, if that takes long, until done is called. Of
// several waits at once, the latest is shown.
func (i *invocation) waiting(what string) (done func()) {
	if i.fullScreen {
		return func() {}
	}
	if !i.waits.begin(&what) {
		return func() { i.waits.end(&what, false) }
	}
	line, began := i.newProgress(), time.Now()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		next := time.NewTimer(i.Patience)
		defer next.Stop()
		for {
			select {
			case <-stop:
				return
			case <-next.C:
				line.show("waiting for "+i.waits.latest(), time.Since(began))
				next.Reset(time.Second)
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
		line.clear()
		i.waits.end(&what, true)
	}
}

// patient is an interceptor that shows which call a command waits for: from its beginning until
// its stream is closed, which a unary call always does.
func (i *invocation) patient(next connect.ClientFunc) connect.ClientFunc {
	return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
		if spec.StreamType != connect.StreamTypeUnary {
			return next(ctx, spec) // Who follows a stream shows what it tells.
		}
		done := sync.OnceFunc(i.waiting("the answer to " + path.Base(spec.Procedure)))
		stream, err := next(ctx, spec)
		if err != nil {
			done()
			return nil, err
		}
		return patientStream{stream, done}, nil
	}
}

type patientStream struct {
	connect.ClientStream
	done func()
}

func (s patientStream) Close() error {
	defer s.done()
	return s.ClientStream.Close()
}
