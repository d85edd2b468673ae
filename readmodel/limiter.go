package readmodel

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// callTimeout bounds an attempt of a call, once it is its turn.
const callTimeout = 10 * time.Second

// reading is one read of a source. Its calls find it in their context.
type reading struct {
	// ctx is that of the read. Calls wait for their turn as long as it lasts: the SDK gives a
	// call less time, which the wait would use up.
	ctx     context.Context //nolint:containedctx // See above.
	limiter *rate.Limiter
	waited  atomic.Int64 // nanoseconds, of all calls
}

type readingKey struct{}

// newReading gives the context for the calls of a read, which a limiter bounds.
func newReading(ctx context.Context, limiter *rate.Limiter) (context.Context, *reading) {
	read := &reading{limiter: limiter}
	read.ctx = context.WithValue(ctx, readingKey{}, read)
	return read.ctx, read
}

// lasting is a context with the values of a call that ends with another one.
type lasting struct {
	context.Context

	call context.Context //nolint:containedctx // Its values are those of lasting.
}

// Value implements context.Context.
func (l lasting) Value(key any) any { return l.call.Value(key) }

// intercept bounds the calls of Temporal per second. It is the innermost interceptor of the
// connection, so that each attempt waits for a turn of its own, also those that the SDK makes.
func (r *Reader) intercept(
	ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	read, ok := ctx.Value(readingKey{}).(*reading)
	if !ok {
		_, read = newReading(ctx, r.limiter)
	}
	begin := time.Now()
	err := read.limiter.Wait(read.ctx)
	read.waited.Add(int64(time.Since(begin)))
	if err != nil {
		return status.Error(codes.Canceled, err.Error()) // The SDK does not try this code again.
	}
	ctx, cancel := context.WithTimeout(lasting{read.ctx, ctx}, callTimeout)
	defer cancel()
	return invoke(ctx, method, in, out, conn, options...)
}

// connect connects to Temporal.
func (r *Reader) connect(ctx context.Context) error {
	options, err := temporalclient.Options(r.Temporal)
	if err != nil {
		return err
	}
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(r.intercept))
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	temporal, err := temporalclient.Connect(ctx, options)
	if err != nil {
		return err
	}
	r.client, r.address = client.New(temporal, options.Namespace), options.HostPort
	return nil
}
