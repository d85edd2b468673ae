package temporalclient_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// compressions notes how calls are compressed.
type compressions chan string

func (compressions) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (compressions) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (compressions) HandleConn(context.Context, stats.ConnStats)                       {}

func (c compressions) HandleRPC(_ context.Context, s stats.RPCStats) {
	if header, ok := s.(*stats.InHeader); ok {
		c <- header.Compression
	}
}

func TestOnlyCallsToAServerFarAwayAreCompressed(t *testing.T) {
	t.Parallel()
	calls := make(compressions, 10)
	server := grpc.NewServer(grpc.StatsHandler(calls))
	workflowservice.RegisterWorkflowServiceServer(server, workflowservice.UnimplementedWorkflowServiceServer{})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	for address, want := range map[string]string{
		"127.0.0.1:7233": "", "[::1]:7233": "", "192.168.0.7:7233": "", "dns:///10.0.0.7:7233": "",
		"192.0.2.7:7233": "gzip", "passthrough:///192.0.2.7:7233": "gzip",
	} {
		c, err := temporalclient.Connect(t.Context(), client.Options{HostPort: address, ConnectionOptions: client.ConnectionOptions{
			DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
			})},
		}})
		require.NoError(t, err, address)
		require.Equal(t, want, <-calls, address)
		c.Close()
	}
}
