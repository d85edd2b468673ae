package client_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	querypb "go.temporal.io/api/query/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
)

// givingUp is a server that gives up so many queries of a queue, and then answers that it is
// empty, or that no worker asks for work.
type givingUp struct {
	times    int
	noWorker bool
	asked    int
}

func (g *givingUp) intercept(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
	answer, ok := reply.(*workflowservice.QueryWorkflowResponse)
	if !ok {
		return nil
	}
	g.asked++
	switch {
	case g.asked <= g.times:
		return status.Error(codes.Canceled, "context canceled")
	case g.noWorker:
		return status.Error(codes.FailedPrecondition, "no poller seen for task queue recently, worker may be down")
	}
	state, err := converter.GetDefaultDataConverter().ToPayloads(contract.QueueState{Name: "q"})
	answer.QueryResult, answer.QueryRejected = state, (*querypb.QueryRejected)(nil)
	return err
}

// answeredBy is a client whose calls a function answers.
func answeredBy(t *testing.T, intercept grpc.UnaryClientInterceptor) *client.Client {
	t.Helper()
	c, err := sdk.NewLazyClient(sdk.Options{
		HostPort: "127.0.0.1:1", Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: sdk.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(intercept)}},
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return client.New(c, "default")
}

// A query that a busy server gives up is made again; one that no worker will answer is not.
func TestAQueryThatTheServerGivesUpIsMadeAgain(t *testing.T) {
	t.Parallel()
	ask := func(g *givingUp) error {
		_, err := answeredBy(t, g.intercept).Queues.Get(t.Context(), "q")
		return err
	}
	busy := &givingUp{times: 2}
	require.NoError(t, ask(busy))
	require.Equal(t, 3, busy.asked)
	idle := &givingUp{noWorker: true}
	require.ErrorIs(t, ask(idle), client.ErrNoWorker)
	require.Equal(t, 1, idle.asked)
}
