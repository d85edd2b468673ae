package temporal

import (
	"context"
	"time"

	"go.temporal.io/server/api/historyservice/v1"
	"go.temporal.io/server/client"
	"go.temporal.io/server/common"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/testing/testhooks"
	"google.golang.org/grpc"
)

// recordTimeout is the matching service's own for a task that it has read from the database.
const recordTimeout = 10 * time.Second

// patientProvider makes clients that give the history service time to record that a task is
// given to a worker. The matching service gives it a second if the task has not been stored
// before. On a busy machine the record comes later, and the task is lost: the worker does not
// get it, and the workflow stands still until the task times out, after ten seconds. The
// caller of the matching service gives up after three seconds and sends the task again, which
// is harmless: it is recorded once.
type patientProvider struct{ client.FactoryProvider }

// NewFactory implements the interface.
func (p patientProvider) NewFactory(
	rpc common.RPCFactory, monitor membership.Monitor, measured metrics.Handler, config *dynamicconfig.Collection,
	hooks testhooks.TestHooks, shards int32, logger, throttled log.Logger,
) client.Factory {
	return patientFactory{p.FactoryProvider.NewFactory(rpc, monitor, measured, config, hooks, shards, logger, throttled)}
}

type patientFactory struct{ client.Factory }

// NewHistoryClientWithTimeout implements the interface.
func (f patientFactory) NewHistoryClientWithTimeout(timeout time.Duration) (historyservice.HistoryServiceClient, error) {
	made, err := f.Factory.NewHistoryClientWithTimeout(timeout)
	return patientClient{made}, err
}

type patientClient struct {
	historyservice.HistoryServiceClient
}

// RecordWorkflowTaskStarted implements the interface.
func (c patientClient) RecordWorkflowTaskStarted(
	ctx context.Context, in *historyservice.RecordWorkflowTaskStartedRequest, opts ...grpc.CallOption,
) (*historyservice.RecordWorkflowTaskStartedResponse, error) {
	ctx, cancel := recordContext(ctx)
	defer cancel()
	return c.HistoryServiceClient.RecordWorkflowTaskStarted(ctx, in, opts...)
}

// RecordActivityTaskStarted implements the interface.
func (c patientClient) RecordActivityTaskStarted(
	ctx context.Context, in *historyservice.RecordActivityTaskStartedRequest, opts ...grpc.CallOption,
) (*historyservice.RecordActivityTaskStartedResponse, error) {
	ctx, cancel := recordContext(ctx)
	defer cancel()
	return c.HistoryServiceClient.RecordActivityTaskStarted(ctx, in, opts...)
}

func recordContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
}
