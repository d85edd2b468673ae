package alerts_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// A bucket that could not be opened is opened by the next who needs it.
func TestABucketThatIsNotOpened(t *testing.T) {
	t.Parallel()
	nats := stacktest.Start(t).Pipeline(t)
	require.NoError(t, nats.Reach(t.Context()))
	bucket := alerts.NewBucket(nats)
	ended, end := context.WithCancel(t.Context())
	end()
	for range 2 {
		_, err := bucket.Read(ended)
		require.ErrorIs(t, err, context.Canceled)
	}
	_, err := bucket.Read(t.Context())
	require.NoError(t, err)
}
