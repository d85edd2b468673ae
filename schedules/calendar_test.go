package schedules_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job/recurrence"
	"github.com/dendrascience/dendra-jobs/schedules"
)

func TestCronCalendars(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"* * * * *":                    {"* * * * *"},
		"*/15 9-17 * jan,mar mon-fri":  {"0-45/15 9-17 * 1,3 1-5"},
		"0-59 7,1,2 1-31/30 */11 7":    {"* 1-2,7 1,31 1,12 *", "* 1-2,7 * 1,12 0"},
		"1,2,3,7,50-55/2,59 0,1 * * *": {"1-3,7,50,52,54,59 0-1 * * *"},
		"0 0 13 * fri":                 {"0 0 13 * *", "0 0 * * 5"},
	} {
		got, err := schedules.CronCalendarTexts(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
}

// FuzzCronCalendars checks that calendars hold the values of their cron text,
// and no others.
func FuzzCronCalendars(f *testing.F) {
	for _, seed := range []string{
		"* * * * *", "*/7 9-17 1,15 jan-jun mon-fri", "0 0 13 * fri", "1-7/6 * */9 * 7", "0-1,58-59 23 31 dec *", "5/27 */22 * * 1/5",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, err := recurrence.ParseCron(text)
		if err != nil {
			return
		}
		texts, err := schedules.CronCalendarTexts(text)
		require.NoError(t, err)
		var got recurrence.Cron
		for i, calendar := range texts {
			cron, err := recurrence.ParseCron(calendar)
			if want.EitherDay && i == 0 && err != nil {
				require.ErrorContains(t, err, "no month of") // The weekdays alone count.
				return
			}
			require.NoError(t, err, calendar)
			if i == 0 {
				got = cron
			}
			got.Weekdays = cron.Weekdays // of the last, which holds them
		}
		got.EitherDay = want.EitherDay
		require.Equal(t, want, got)
	})
}
