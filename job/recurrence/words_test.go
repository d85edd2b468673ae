package recurrence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job/recurrence"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for every, want := range map[time.Duration]string{
		time.Second: "every second", 90 * time.Second: "every 1 min 30 s", 15 * time.Minute: "every 15 min", time.Hour: "every hour",
		24 * time.Hour: "every day", 26*time.Hour + time.Second: "every 1 d 2 h 1 s",
	} {
		require.Equal(t, want, recurrence.Rule{Every: every}.Words())
	}
	for cron, want := range map[string]string{
		"* * * * *":         "every minute UTC",
		"*/15 * * * *":      "at minute 0, 15, 30, 45 of each hour UTC",
		"*/5 * * * *":       "cron */5 * * * * UTC",
		"30 4 * * *":        "daily at 04:30 UTC",
		"0,30 4,16 * * *":   "daily at 04:00, 04:30, 16:00, 16:30 UTC",
		"30 4 * * mon-fri":  "Mon to Fri at 04:30 UTC",
		"30 4 * * sun":      "Sun at 04:30 UTC",
		"0 4 * * mon,sun":   "Mon, Sun at 04:00 UTC",
		"5 * * * sat,sun":   "Sat, Sun at minute 5 of each hour UTC",
		"0 0 1,15 * *":      "on day 1, 15 of the month at 00:00 UTC",
		"0 0 1 * mon":       "cron 0 0 1 * mon UTC",
		"0 0 1 6 *":         "cron 0 0 1 6 * UTC",
		"no cron, but text": "cron no cron, but text",
	} {
		require.Equal(t, want, recurrence.Rule{Cron: cron}.Words(), cron)
	}
	require.Equal(t, "daily at 04:30 Europe/Prague", recurrence.Rule{Cron: "30 4 * * *", TimeZone: "Europe/Prague"}.Words())
}
