package loggerfiles_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/loggerfiles"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestClock shows the moments of half hours of two years in zones that change, and finds
// them again.
func TestClock(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"America/Los_Angeles", "Europe/Zurich", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		clock := loggerfiles.NewClock(zone)
		for at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2027; at = at.Add(30 * time.Minute) {
			in := at.In(zone)
			shown := time.Date(in.Year(), in.Month(), in.Day(), in.Hour(), in.Minute(), 0, 0, time.UTC)
			got, err := clock.At(shown)
			require.NoError(t, err)
			require.Truef(t, got.Equal(at), "%s: %s shows %s, which is read as %s", name, at, in, got.UTC())
		}
	}
}

func TestClockOfATimeThatDoesNotExist(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	_, err = loggerfiles.NewClock(zone).At(time.Date(2026, 3, 8, 2, 30, 0, 0, time.UTC))
	require.EqualError(t, err, "the time 2026-03-08 02:30:00 does not exist in America/Los_Angeles, where clocks were set forward")
}

// TestSplit reads cells as they were quoted.
func TestSplit(t *testing.T) {
	t.Parallel()
	r := stacktest.Random(t)
	for range 1000 {
		var cells []string
		line := ""
		for i := range 1 + r.IntN(5) {
			cell := ""
			for range r.IntN(6) {
				cell += string(`a",; é`[r.IntN(4)])
			}
			cells = append(cells, cell)
			if i > 0 {
				line += ";"
			}
			line += quoted(cell)
		}
		got, wrong := loggerfiles.Split([]byte(line), ';', nil)
		require.Empty(t, wrong)
		require.Equal(t, cells, got, line)
	}
}

func quoted(cell string) string {
	text := `"`
	for _, char := range cell {
		if char == '"' {
			text += `"`
		}
		text += string(char)
	}
	return text + `"`
}
