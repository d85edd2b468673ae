package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTablesAreSoughtEverMoreRarely: 17 times in a month if there are tables, and
// every hour as long as there are none.
func TestTablesAreSoughtEverMoreRarely(t *testing.T) {
	t.Parallel()
	asked := func(found bool, end time.Duration) (at []time.Duration) {
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s := search{Since: begin}
		for now := begin; now.Sub(begin) < end; now = now.Add(30 * time.Second) {
			some, none := s.due(now, 30*time.Second)
			if some || none && !found {
				s.Asked = now
				at = append(at, now.Sub(begin))
			}
		}
		return at
	}
	const first = 30 * time.Second
	require.Equal(t, []time.Duration{first, 2 * first, 4 * first, 8 * first, 16 * first}, asked(true, 10*time.Minute))
	require.Equal(t, asked(true, time.Hour), asked(false, time.Hour))
	require.Len(t, asked(true, 30*24*time.Hour), 17)
	require.Len(t, asked(false, 24*time.Hour), 7+23)
}
