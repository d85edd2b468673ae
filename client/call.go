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

// Tries of a call: for seven seconds in all while the server is away, and for 15 while it is
// busy. A Schedule whose task is lost takes one reader, who waits, and refuses the others
// with "busy" until it answers.
const (
	awayTries = 8
	busyTries = 12
)

// call makes a call of the Temporal API that the SDK has no function for, or one
// that leaves out what is needed. It is tried again while the server is too busy
// or briefly away, so requests carry a request id, where they have one.
func call[In, Out any](ctx context.Context, do func(context.Context, In, ...grpc.CallOption) (Out, error), in In) (Out, error) {
	once := func() (Out, error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return do(ctx, in)
	}
	for try := 1; ; try++ {
		out, err := once()
		if try >= triesFor(err) {
			return out, ofServer(ctx, err)
		}
		if pause(ctx, callBackoff.Wait(try)) != nil {
			return out, err
		}
	}
}

// triesFor is how often a call is made that ends with err.
func triesFor(err error) int {
	var exhausted *serviceerror.ResourceExhausted
	switch {
	case errors.As(err, &exhausted):
		return busyTries
	case passing(err):
		return awayTries
	default:
		return 1
	}
}

// passing says that a call may succeed a moment later.
func passing(err error) bool {
	var unavailable *serviceerror.Unavailable
	var exhausted *serviceerror.ResourceExhausted
	return errors.As(err, &unavailable) || errors.As(err, &exhausted)
}
