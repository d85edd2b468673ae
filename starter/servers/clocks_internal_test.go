package servers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHowFarAClockIsOff(t *testing.T) {
	t.Parallel()
	asked := time.Unix(1000, 0)
	heard := asked.Add(100 * time.Millisecond)
	for off, c := range map[time.Duration]clock{
		0:                {shown: asked.Add(50 * time.Millisecond)},
		-3 * time.Second: {shown: asked.Add(-4 * time.Second), wholeSeconds: true},
		time.Minute:      {shown: heard.Add(time.Minute)},
		-time.Minute:     {shown: asked.Add(-time.Minute)},
	} {
		c.asked, c.heard = asked, heard
		require.Equal(t, off, c.off())
	}
	require.Zero(t, clock{asked: asked.Add(time.Millisecond), heard: heard, shown: asked, wholeSeconds: true}.off())
}

func TestOrderOfReleases(t *testing.T) {
	t.Parallel()
	for _, older := range []string{"1.28.3", "0.99", "1.9.1"} {
		require.True(t, before(older, "1.29"), older)
	}
	for _, newer := range []string{"1.29.0", "1.32.1", "2.0.0-rc.1", "edge", ""} {
		require.False(t, before(newer, "1.29"), newer)
	}
}
