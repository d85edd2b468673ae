package readmodel

import (
	"context"
	"sync/atomic"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"

	enumspb "go.temporal.io/api/enums/v1"
)

// throttled is a client of Temporal whose reads wait for their turn. It has the reads that
// a [Reader] makes; others are not slowed down.
type throttled struct {
	client.Client
	turns *turns
}

// turns bounds calls per second.
type turns struct {
	limiter *rate.Limiter
}

func newTurns(perSecond float64, burst int) *turns {
	return &turns{limiter: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

type waitedKey struct{}

// noteWaits has the time that calls wait for their turns counted.
func noteWaits(ctx context.Context) (context.Context, *atomic.Int64) {
	waited := &atomic.Int64{}
	return context.WithValue(ctx, waitedKey{}, waited), waited
}

func (t *turns) take(ctx context.Context) error {
	begin := time.Now()
	err := t.limiter.Wait(ctx)
	if waited, ok := ctx.Value(waitedKey{}).(*atomic.Int64); ok {
		waited.Add(int64(time.Since(begin)))
	}
	return err //nolint:wrapcheck // That of the context.
}

// callTimeout bounds a call: the SDK would try it again for longer.
const callTimeout = 10 * time.Second

// takeFor gives the context of a call whose turn it is.
func (t *turns) takeFor(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := t.take(ctx); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	return ctx, cancel, nil
}

func (t throttled) ListWorkflow(ctx context.Context, in *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel, err := t.turns.takeFor(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return t.Client.ListWorkflow(ctx, in) //nolint:wrapcheck // It is the client.
}

// ListActivities takes one turn. Each page has the time of a call.
func (t throttled) ListActivities(ctx context.Context, in client.ListActivitiesOptions) (client.ListActivitiesResult, error) {
	if err := t.turns.take(ctx); err != nil {
		return client.ListActivitiesResult{}, err
	}
	return client.ListActivitiesResult{Results: func(yield func(*client.ActivityExecutionInfo, error) bool) {
		once, cancel := context.WithCancel(ctx)
		defer cancel()
		late := time.AfterFunc(callTimeout, cancel)
		defer late.Stop()
		found, err := t.Client.ListActivities(once, in)
		if err != nil {
			yield(nil, err)
			return
		}
		for info, err := range found.Results {
			if err == nil {
				late.Reset(callTimeout)
			}
			if !yield(info, err) {
				return
			}
		}
	}}, nil
}

func (t throttled) GetActivityHandle(in client.GetActivityHandleOptions) client.ActivityHandle {
	return throttledActivity{t.Client.GetActivityHandle(in), t.turns}
}

func (t throttled) QueryWorkflow(ctx context.Context, id, runID, kind string, args ...any) (converter.EncodedValue, error) {
	ctx, cancel, err := t.turns.takeFor(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return t.Client.QueryWorkflow(ctx, id, runID, kind, args...) //nolint:wrapcheck // It is the client.
}

func (t throttled) QueryWorkflowWithOptions(ctx context.Context, in *client.QueryWorkflowWithOptionsRequest) (*client.QueryWorkflowWithOptionsResponse, error) {
	ctx, cancel, err := t.turns.takeFor(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return t.Client.QueryWorkflowWithOptions(ctx, in) //nolint:wrapcheck // It is the client.
}

func (t throttled) DescribeWorkflowExecution(ctx context.Context, id, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	ctx, cancel, err := t.turns.takeFor(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return t.Client.DescribeWorkflowExecution(ctx, id, runID) //nolint:wrapcheck // It is the client.
}

func (t throttled) CheckHealth(ctx context.Context, in *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
	ctx, cancel, err := t.turns.takeFor(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return t.Client.CheckHealth(ctx, in) //nolint:wrapcheck // It is the client.
}

// GetWorkflowHistory takes one turn, though a long history has several pages: only that of
// a queue that has ended is read, once.
func (t throttled) GetWorkflowHistory(
	ctx context.Context, id, runID string, longPoll bool, filter enumspb.HistoryEventFilterType,
) client.HistoryEventIterator {
	_ = t.turns.take(ctx) // The iterator has the same context, and its error.
	return t.Client.GetWorkflowHistory(ctx, id, runID, longPoll, filter)
}

func (t throttled) WorkflowService() workflowservice.WorkflowServiceClient {
	return throttledService{t.Client.WorkflowService(), t.turns}
}

// throttledActivity is a service, which is described.
type throttledActivity struct {
	client.ActivityHandle
	turns *turns
}

func (t throttledActivity) Describe(ctx context.Context, in client.DescribeActivityOptions) (*client.ActivityExecutionDescription, error) {
	ctx, cancel, err := t.turns.takeFor(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return t.ActivityHandle.Describe(ctx, in) //nolint:wrapcheck // It is the client.
}

type throttledService struct {
	workflowservice.WorkflowServiceClient
	turns *turns
}

func (t throttledService) ListSchedules(ctx context.Context, in *workflowservice.ListSchedulesRequest, options ...grpc.CallOption) (*workflowservice.ListSchedulesResponse, error) {
	ctx, cancel, err := t.turns.takeFor(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return t.WorkflowServiceClient.ListSchedules(ctx, in, options...) //nolint:wrapcheck // It is the client.
}

func (t throttledService) DescribeSchedule(ctx context.Context, in *workflowservice.DescribeScheduleRequest, options ...grpc.CallOption) (*workflowservice.DescribeScheduleResponse, error) {
	ctx, cancel, err := t.turns.takeFor(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	return t.WorkflowServiceClient.DescribeSchedule(ctx, in, options...) //nolint:wrapcheck // It is the client.
}
