package client

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/job"
)

// callBackoff spaces the tries of a call that the server was too busy for.
var callBackoff = job.Backoff{
	Initial: job.Duration(100 * time.Millisecond), Max: job.Duration(2 * time.Second), Coefficient: 2,
}

// callTimeout bounds a try. A Schedule is a workflow of Temporal's own: when a task of it is
// lost, it is given to another worker after ten seconds, and answers then.
const callTimeout = 15 * time.Second

// awayTries bounds the tries of a call, for seven seconds in all, while the server is away.
const awayTries = 8

// busyFor is how long a call is made again while the server is busy. A Schedule whose task
// is lost takes one reader, who waits, and refuses the others with "busy" until it answers.
const busyFor = 20 * time.Second

// rpc is a call of the Temporal API.
type rpc[In, Out any] func(context.Context, In, ...grpc.CallOption) (Out, error)

// call makes a call of the Temporal API that the SDK has no function for, or one
// that leaves out what is needed. It is tried again while the server is too busy
// or briefly away, so requests carry a request id, where they have one. While the server is
// busy, fewer calls are under way.
func call[In, Out any](ctx context.Context, c *conn, do rpc[In, Out], in In) (Out, error) {
	return ask(ctx, c, busy, do, in)
}

// read is call for what changes nothing: it is also tried again when no answer came in time.
func read[In, Out any](ctx context.Context, c *conn, do rpc[In, Out], in In) (Out, error) {
	return ask(ctx, c, func(err error) bool { return Busy(ofServer(ctx, err)) }, do, in)
}

func ask[In, Out any](ctx context.Context, c *conn, again func(error) bool, do rpc[In, Out], in In) (Out, error) {
	began := time.Now()
	for try := 1; ; try++ {
		out, err := askOnce(ctx, c.limiter, do, in)
		var away *serviceerror.Unavailable
		switch {
		case errors.As(err, &away) && try < awayTries:
		case again(err) && time.Since(began) < busyFor:
		default:
			return out, ofServer(ctx, err)
		}
		if pause(ctx, callBackoff.Wait(try)) != nil {
			return out, err
		}
	}
}

func askOnce[In, Out any](ctx context.Context, l *limiter, do rpc[In, Out], in In) (out Out, err error) {
	if err := l.acquire(ctx); err != nil {
		return out, err
	}
	once, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err = do(once, in)
	l.release(Busy(ofServer(ctx, err)))
	return out, err
}

// busy reports whether a server refused a call since it has too much to do.
func busy(err error) bool {
	var exhausted *serviceerror.ResourceExhausted
	return errors.As(err, &exhausted)
}

// Busy reports whether a server gave no answer since it has too much to do: it refused the call, or
// took too long.
func Busy(err error) bool { return busy(err) || errors.Is(err, ErrSlow) }

// passing reports whether a call may succeed a moment later.
func passing(err error) bool {
	var unavailable *serviceerror.Unavailable
	return errors.As(err, &unavailable) || busy(err)
}
