package temporal

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.temporal.io/server/api/historyservice/v1"
	"go.temporal.io/server/client"
	"go.temporal.io/server/common"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/testing/testhooks"
	"go.temporal.io/server/temporal"
	"google.golang.org/grpc"
)

// PrepareStore makes the files of a server in folder and returns that of the lists.
func PrepareStore(ctx context.Context, folder string) (string, error) {
	o := Options{Folder: folder, Namespace: "default", Tuning: TuningLatency}
	return filepath.Join(folder, visibilityFile), prepareStore(ctx, o, serverConfig(o))
}

// StartWith starts a server with a further option.
func StartWith(ctx context.Context, o Options, further temporal.ServerOption) (*Server, error) {
	return start(ctx, o, further)
}

// LateRecords delays the answers about tasks that were recorded as started.
type LateRecords struct {
	delay time.Duration
	count atomic.Int64
}

// NewLateRecords delays each answer by delay, longer than the matching service waits.
func NewLateRecords(delay time.Duration) *LateRecords { return &LateRecords{delay: delay} }

// Count of the answers that came late.
func (l *LateRecords) Count() int64 { return l.count.Load() }

// Option has the server's own clients answer late.
func (l *LateRecords) Option() temporal.ServerOption {
	return temporal.WithClientFactoryProvider(patientProvider{lateProvider{client.NewFactoryProvider(), l}})
}

type lateProvider struct {
	client.FactoryProvider
	late *LateRecords
}

func (p lateProvider) NewFactory(
	rpc common.RPCFactory, monitor membership.Monitor, measured metrics.Handler, config *dynamicconfig.Collection,
	hooks testhooks.TestHooks, shards int32, logger, throttled log.Logger,
) client.Factory {
	return lateFactory{p.FactoryProvider.NewFactory(rpc, monitor, measured, config, hooks, shards, logger, throttled), p.late}
}

type lateFactory struct {
	client.Factory
	late *LateRecords
}

func (f lateFactory) NewHistoryClientWithTimeout(timeout time.Duration) (historyservice.HistoryServiceClient, error) {
	made, err := f.Factory.NewHistoryClientWithTimeout(timeout)
	return lateClient{made, f.late}, err
}

type lateClient struct {
	historyservice.HistoryServiceClient
	late *LateRecords
}

func (c lateClient) RecordWorkflowTaskStarted(
	ctx context.Context, in *historyservice.RecordWorkflowTaskStartedRequest, opts ...grpc.CallOption,
) (*historyservice.RecordWorkflowTaskStartedResponse, error) {
	answer, err := c.HistoryServiceClient.RecordWorkflowTaskStarted(ctx, in, opts...)
	if late := c.wait(ctx); late != nil {
		return nil, late
	}
	return answer, err
}

func (c lateClient) RecordActivityTaskStarted(
	ctx context.Context, in *historyservice.RecordActivityTaskStartedRequest, opts ...grpc.CallOption,
) (*historyservice.RecordActivityTaskStartedResponse, error) {
	answer, err := c.HistoryServiceClient.RecordActivityTaskStarted(ctx, in, opts...)
	if late := c.wait(ctx); late != nil {
		return nil, late
	}
	return answer, err
}

func (c lateClient) wait(ctx context.Context) error {
	timer := time.NewTimer(c.late.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		c.late.count.Add(1)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// NewLogger passes messages of a server on to the logger to; serving says whether it serves.
func NewLogger(to *slog.Logger, serving *atomic.Bool) log.WithLogger {
	return &logger{to: to, fatal: newFatal(), serving: serving}
}
