package alerts_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

func TestSilencesHaveABound(t *testing.T) {
	t.Parallel()
	bucket := alerts.NewBucket(stacktest.StartOwn(t, "--only", "nats").Pipeline(t))
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	create := func(n int, at time.Time) error {
		return bucket.CreateSilence(t.Context(), alerts.Silence{Name: fmt.Sprintf("s%d", n), Created: at, End: at.Add(time.Hour)})
	}
	for n := range alerts.MaxSilences {
		require.NoError(t, create(n, now))
	}
	require.ErrorIs(t, create(alerts.MaxSilences, now), alerts.ErrTooMany)
	require.NoError(t, create(alerts.MaxSilences, now.Add(time.Hour)), "those that have ended take no room")
}
