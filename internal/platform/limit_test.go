package platform_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// silent is a server that does not answer.
func silent(connect.ClientFunc) connect.ClientFunc {
	return func(ctx context.Context, _ connect.Spec) (connect.ClientStream, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

func TestCallsAreGivenUpAndStreamsAreNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, err := platform.New(platform.Config{URL: "http://127.0.0.1:1", Token: "token"}, silent)
		require.NoError(t, err)
		began := time.Now()
		_, err = client.Integrations.GetIntegrationConfig(t.Context(), &platformv1.GetIntegrationConfigRequest{Id: "a"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, platform.Explain(err), "the Platform API does not answer")
		require.Equal(t, 30*time.Second, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err = client.Changes.StreamChanges(ctx, &platformv1.StreamChangesRequest{})
		require.Error(t, err)
		require.Equal(t, time.Hour+30*time.Second, time.Since(began))
	})
}
