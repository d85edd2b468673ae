package temporalclient

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
	"golang.org/x/sync/errgroup"
)

// CallLimit is how many calls are under way at once by default.
const CallLimit = 8

// Each calls do for 0..n-1, at most limit at a time, and joins the errors. A limit of 0
// is CallLimit. When the server is gone or refuses a call, or the caller no longer waits, no
// further calls are begun: they would all wait and fail alike.
func Each(n, limit int, do func(i int) error) error {
	if limit <= 0 {
		limit = CallLimit
	}
	errs := make([]error, n)
	// The first error that says so ends ctx.
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(limit)
	for i := range n {
		group.Go(func() error {
			if ctx.Err() == nil {
				errs[i] = do(i)
			}
			if ServerGone(errs[i]) || errors.Is(errs[i], context.Canceled) {
				return errs[i]
			}
			return nil
		})
	}
	_ = group.Wait() // Its error is one of errs.
	return errors.Join(errs...)
}

// ServerGone reports whether a server no longer answers, or refuses access.
func ServerGone(err error) bool {
	var unavailable *serviceerror.Unavailable
	var denied *serviceerror.PermissionDenied
	return errors.As(err, &unavailable) || errors.As(err, &denied)
}
