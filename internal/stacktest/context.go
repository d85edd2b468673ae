package stacktest

import "context"

// EndsWhenAsked is a context that finds its end only when it is asked, as a worker's
// does after its machine was suspended: what is derived from it does not ask.
func EndsWhenAsked(ctx context.Context, ended func() bool) context.Context {
	return asked{ctx, ended}
}

type asked struct {
	context.Context
	ended func() bool
}

func (a asked) Err() error {
	if a.ended() {
		return context.Canceled
	}
	return a.Context.Err()
}
