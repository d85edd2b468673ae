package pipeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

func TestUTCOffset(t *testing.T) {
	t.Parallel()
	for text, want := range map[pipeline.UTCOffset]time.Duration{
		"-08:00": -8 * time.Hour, "+00:00": 0, "+05:45": 5*time.Hour + 45*time.Minute, "+14:00": 14 * time.Hour, "-03:30": -210 * time.Minute,
	} {
		require.NoError(t, text.Check(), text)
		require.Equal(t, want, text.Std(), text)
	}
	for _, bad := range []pipeline.UTCOffset{"", "8", "-8:00", "08:00", "-08:60", "+15:00", "-08:00 ", "PST", "-0800", "+24:00"} {
		require.ErrorContains(t, bad.Check(), "+HH:MM", bad)
		require.Zero(t, bad.Std())
	}
}
