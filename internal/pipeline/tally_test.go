package pipeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

func TestTally(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	var tally pipeline.Tally
	refuse := func(n int) { tally.Refused(now, n, "RefusedPoint", "field type conflict") }

	refuse(9)
	require.Zero(t, tally.RefusingSince, "nine points say little")
	refuse(1)
	require.Equal(t, now, tally.RefusingSince)
	require.Equal(t, "field type conflict", tally.Reason)

	began := now
	now = now.Add(time.Hour)
	refuse(5)
	require.Equal(t, began, tally.RefusingSince, "since when does not move")
	points, refused := tally.Counts()
	require.EqualValues(t, 15, points)
	require.EqualValues(t, 15, refused)

	tally.Stored(now, 15)
	require.Zero(t, tally.RefusingSince, "half is not most")
	refuse(1)
	require.Equal(t, now, tally.RefusingSince)

	// Two periods later the refused ones no longer count.
	for range 2 {
		now = now.Add(time.Minute)
		tally.Stored(now, 10)
	}
	points, refused = tally.Counts()
	require.EqualValues(t, 20, points)
	require.Zero(t, refused)
	require.Zero(t, tally.RefusingSince)
}

// TestTallyOfASlowLocation: a point every ten minutes is judged by the last ten to
// twenty.
func TestTallyOfASlowLocation(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	var tally pipeline.Tally
	for range 100 {
		now = now.Add(10 * time.Minute)
		tally.Refused(now, 1, "RefusedPoint", "field type conflict")
	}
	require.NotZero(t, tally.RefusingSince)
	stored := 0
	for ; !tally.RefusingSince.IsZero() && stored < 100; stored++ {
		now = now.Add(10 * time.Minute)
		tally.Stored(now, 1)
	}
	require.LessOrEqual(t, stored, 20)
}
