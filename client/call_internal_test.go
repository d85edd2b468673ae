package client

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc"
)

var errBusy = serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW, "consistent query buffer is full")

// TestABusyServerIsAskedLongerThanALostTaskTakes has a Schedule refuse a reader, or not answer
// at all, for as long as Temporal takes to give a lost task to another worker.
func TestABusyServerIsAskedLongerThanALostTaskTakes(t *testing.T) {
	t.Parallel()
	const lost = 10 * time.Second
	for name, test := range map[string]struct {
		err             error // nil hangs
		read, forChange bool
	}{
		"busy":   {errBusy, true, true},
		"silent": {nil, true, false}, // A change may have been made.
		"away":   {serviceerror.NewUnavailable("connection refused"), false, false},
		"wrong":  {serviceerror.NewInvalidArgument("no such thing"), false, false},
	} {
		for _, kind := range []struct {
			name     string
			ask      func(context.Context, *conn, rpc[string, string], string) (string, error)
			answered bool
		}{{"read", read[string, string], test.read}, {"change", call[string, string], test.forChange}} {
			t.Run(name+"/"+kind.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					answer := func(ctx context.Context, _ string, _ ...grpc.CallOption) (string, error) {
						switch {
						case time.Since(began) >= lost:
							return "answer", nil
						case test.err == nil:
							<-ctx.Done()
							return "", serviceerror.NewDeadlineExceeded("context deadline exceeded")
						}
						return "", test.err
					}
					out, err := kind.ask(t.Context(), &conn{limiter: newLimiter()}, answer, "question")
					if kind.answered {
						require.NoError(t, err)
						require.Equal(t, "answer", out)
						return
					}
					if test.err == nil {
						require.ErrorIs(t, err, ErrSlow)
						require.True(t, Busy(err))
						return
					}
					require.ErrorIs(t, err, test.err)
					require.Less(t, time.Since(began), lost)
				})
			})
		}
	}
}

// TestASlowServerIsAskedByFewer has a server that takes four calls at once and refuses the
// others. 64 callers are to get all their answers, and soon nearly none is refused.
func TestASlowServerIsAskedByFewer(t *testing.T) {
	t.Parallel()
	const bears, callers, calls = 4, 64, 50
	synctest.Test(t, func(t *testing.T) {
		c := &conn{limiter: newLimiter()}
		var underWay, refused, hung atomic.Int64
		answer := func(context.Context, string, ...grpc.CallOption) (string, error) {
			defer underWay.Add(-1)
			if underWay.Add(1) > bears {
				refused.Add(1)
				return "", errBusy
			}
			<-time.After(50 * time.Millisecond)
			return "answer", nil
		}
		failed := make(chan error, callers*calls)
		for range callers {
			go func() {
				for range calls {
					_, err := read(t.Context(), c, answer, "question")
					failed <- err
				}
			}()
		}
		for range callers * calls {
			require.NoError(t, <-failed)
		}
		require.Less(t, refused.Load(), int64(callers*calls/4), "of %d calls", callers*calls)

		// One that hangs keeps no other waiting.
		hang := func(ctx context.Context, _ string, _ ...grpc.CallOption) (string, error) {
			hung.Add(1)
			<-ctx.Done()
			return "", ctx.Err()
		}
		c.limiter.limit = minUnderWay
		ended := make(chan error)
		go func() {
			_, err := read(t.Context(), c, hang, "question")
			ended <- err
		}()
		synctest.Wait()
		began := time.Now()
		_, err := read(t.Context(), c, answer, "question")
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second)
		require.ErrorIs(t, <-ended, ErrSlow)
		require.EqualValues(t, 2, hung.Load(), "it is asked again once")

		// The server bears more by and by.
		ok := func(context.Context, string, ...grpc.CallOption) (string, error) { return "answer", nil }
		for range maxUnderWay * maxUnderWay {
			_, err := read(t.Context(), c, ok, "question")
			require.NoError(t, err)
		}
		require.Equal(t, maxUnderWay, c.limiter.limit)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		c.limiter.underWay = c.limiter.limit
		_, err = read(canceled, c, ok, "question")
		require.True(t, errors.Is(err, context.Canceled))
	})
}
