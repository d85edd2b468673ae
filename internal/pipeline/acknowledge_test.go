package pipeline_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
)

// TestNothingIsAcknowledgedOnceTheContextHasEnded: the messages may be another reader's.
func TestNothingIsAcknowledgedOnceTheContextHasEnded(t *testing.T) {
	t.Parallel()
	source := pipelinetest.NewSource("prep", time.Now(), "1", "2", "3")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, pipeline.Acknowledge(ctx, source.Messages()), context.Canceled)
	require.Empty(t, source.Acknowledged())
	require.NoError(t, pipeline.Acknowledge(t.Context(), source.Messages()))
	require.Len(t, source.Acknowledged(), 3)
}
