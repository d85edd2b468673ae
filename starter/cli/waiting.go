package cli

import (
	"context"
	"path"
	"time"

	"connectrpc.com/connect/v2"
)

// defaultPatience is how long a command waits without a sign.
const defaultPatience = 4 * time.Second

// waiting shows what a command waits for, if that takes long, until done is called. Of
// several waits at once, one is shown.
func (i *invocation) waiting(what string) (done func()) {
	select {
	case i.sign <- struct{}{}:
	default:
		return func() {}
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
				line.show("waiting for "+what, time.Since(began))
				next.Reset(time.Second)
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
		line.clear()
		<-i.sign
	}
}

// patient is an interceptor that shows which call a command waits for.
func (i *invocation) patient(next connect.ClientFunc) connect.ClientFunc {
	return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
		stream, err := next(ctx, spec)
		if err != nil || spec.StreamType != connect.StreamTypeUnary {
			return stream, err // Who follows a stream shows what it tells.
		}
		return patientStream{stream, i, "the answer to " + path.Base(spec.Procedure)}, nil
	}
}

type patientStream struct {
	connect.ClientStream
	i    *invocation
	what string
}

func (s patientStream) Send(msg any) error {
	defer s.i.waiting(s.what)()
	return s.ClientStream.Send(msg)
}

func (s patientStream) Receive(msg any) error {
	defer s.i.waiting(s.what)()
	return s.ClientStream.Receive(msg)
}
