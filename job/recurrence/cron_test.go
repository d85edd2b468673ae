package recurrence_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job/recurrence"
)

// through lists the numbers from first to last, by step.
func through(first, last, step int) []int {
	var list []int
	for n := first; n <= last; n += step {
		list = append(list, n)
	}
	return list
}

func anyTime() recurrence.Cron {
	return recurrence.Cron{
		Minutes: through(0, 59, 1), Hours: through(0, 23, 1), DaysOfMonth: through(1, 31, 1),
		Months: through(1, 12, 1), Weekdays: through(0, 6, 1),
	}
}

func TestParseCron(t *testing.T) {
	t.Parallel()
	for text, change := range map[string]func(*recurrence.Cron){
		"* * * * *":              func(*recurrence.Cron) {},
		" \t*  * * *\t* ":        func(*recurrence.Cron) {},
		"0 3 * * *":              func(c *recurrence.Cron) { c.Minutes, c.Hours = []int{0}, []int{3} },
		"*/15 * * * *":           func(c *recurrence.Cron) { c.Minutes = []int{0, 15, 30, 45} },
		"5/15 * * * *":           func(c *recurrence.Cron) { c.Minutes = []int{5, 20, 35, 50} },
		"50,10-12,11,05 * * * *": func(c *recurrence.Cron) { c.Minutes = []int{5, 10, 11, 12, 50} },
		"* 8-18/5 * * *":         func(c *recurrence.Cron) { c.Hours = []int{8, 13, 18} },
		"* * * jan,JUN-Aug *":    func(c *recurrence.Cron) { c.Months = []int{1, 6, 7, 8} },
		"* * * * Mon-fri":        func(c *recurrence.Cron) { c.Weekdays = through(1, 5, 1) },
		"* * * * 7":              func(c *recurrence.Cron) { c.Weekdays = []int{0} },
		"* * * * 5-7":            func(c *recurrence.Cron) { c.Weekdays = []int{0, 5, 6} },
		"* * * * fri-sun":        func(c *recurrence.Cron) { c.Weekdays = []int{0, 5, 6} },
		"* * * * sun-tue":        func(c *recurrence.Cron) { c.Weekdays = []int{0, 1, 2} },
		"* * * * */2":            func(c *recurrence.Cron) { c.Weekdays = []int{0, 2, 4, 6} },
		"* * * * 3/2":            func(c *recurrence.Cron) { c.Weekdays = []int{3, 5} },
		"* * 29 2 *":             func(c *recurrence.Cron) { c.DaysOfMonth, c.Months = []int{29}, []int{2} },
		"* * 13 * 5": func(c *recurrence.Cron) {
			c.DaysOfMonth, c.Weekdays, c.EitherDay = []int{13}, []int{5}, true
		},
		"* * */10 * 1": func(c *recurrence.Cron) { c.DaysOfMonth, c.Weekdays = []int{1, 11, 21, 31}, []int{1} },
		"* * 31 2 1": func(c *recurrence.Cron) {
			c.DaysOfMonth, c.Months, c.Weekdays, c.EitherDay = []int{31}, []int{2}, []int{1}, true
		},
	} {
		want := anyTime()
		change(&want)
		got, err := recurrence.ParseCron(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseCronRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"61 * * * *":       `"61 * * * *": minute "61": 61 is not from 0 to 59`,
		"60 24 0 13 8":     `"60 24 0 13 8": minute "60": 60 is not from 0 to 59; hour "24": 24 is not from 0 to 23; day of month "0": 0 is not from 1 to 31; month "13": 13 is not from 1 to 12; day of week "8": 8 is not from 0 to 7`,
		"":                 `"" has 0 fields, not five: minute, hour, day of month, month, day of week`,
		"* * * *":          `"* * * *" has 4 fields, not five: minute, hour, day of month, month, day of week`,
		"0 0 3 * * *":      `"0 0 3 * * *" has 6 fields, not five: minute, hour, day of month, month, day of week`,
		"@daily":           `"@daily" is not a cron text of five fields: write "0 0 * * *"`,
		"@every 5m":        `"@every 5m" is not a cron text of five fields: write recur_every instead of cron`,
		"TZ=UTC * * * * *": `"TZ=UTC * * * * *" names a time zone, which is written as time_zone`,
		"-1 * * * *":       `"-1 * * * *": minute "-1": "" is not a number`,
		"+1 * * * *":       `"+1 * * * *": minute "+1": "+1" is not a number`,
		"1,, * * * *":      `"1,, * * * *": minute "1,,": "" is not a number`,
		"1-2-3 * * * *":    `"1-2-3 * * * *": minute "1-2-3": "2-3" is not a number`,
		"*-5 * * * *":      `"*-5 * * * *": minute "*-5": "*" is not a number`,
		"1/2/3 * * * *":    `"1/2/3 * * * *": minute "1/2/3": "2/3" is not a step, a whole number from 1`,
		"*/0 * * * *":      `"*/0 * * * *": minute "*/0": "0" is not a step, a whole number from 1`,
		"*/ * * * *":       `"*/ * * * *": minute "*/": "" is not a step, a whole number from 1`,
		"*/90 * * * *":     `"*/90 * * * *": minute "*/90": a step of 90 is longer than the range 0-59`,
		"* 17-9 * * *":     `"* 17-9 * * *": hour "17-9": 17-9 ends before it starts`,
		"* * L * *":        `"* * L * *": day of month "L": "L" is not a number`,
		"* * ? * *":        `"* * ? * *": day of month "?": "?" is not a number`,
		"* * * june *":     `"* * * june *": month "june": "june" is not a number or a name such as feb`,
		"* * * * mon#2":    `"* * * * mon#2": day of week "mon#2": "mon#2" is not a number or a name such as mon`,
		"* * 30 2 *":       `"* * 30 2 *": no month of 2 has a day 30`,
		"* * 31 4,6 */2":   `"* * 31 4,6 */2": no month of 4,6 has a day 31`,
		"99999 * * * *":    `"99999 * * * *": minute "99999": 99999 is not from 0 to 59`,
	} {
		_, err := recurrence.ParseCron(text)
		require.EqualError(t, err, want, text)
	}
	_, err := recurrence.ParseCron(string(make([]byte, 201)))
	require.EqualError(t, err, "a cron text has at most 200 bytes, not 201")
}

func FuzzParseCron(f *testing.F) {
	for _, seed := range []string{
		"* * * * *", "61 * * * *", "*/15 9-17 1,15 jan-jun mon-fri", "@daily", "0 0 31 2 *", "1-7/6 * * * 7", "٣ * * * *", "* * * * 7-7/1",
	} {
		f.Add(seed)
	}
	limits := anyTime()
	f.Fuzz(func(t *testing.T, text string) {
		cron, err := recurrence.ParseCron(text)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		for _, field := range [][2][]int{
			{cron.Minutes, limits.Minutes},
			{cron.Hours, limits.Hours},
			{cron.DaysOfMonth, limits.DaysOfMonth},
			{cron.Months, limits.Months},
			{cron.Weekdays, limits.Weekdays},
		} {
			require.NotEmpty(t, field[0])
			require.True(t, slices.IsSorted(field[0]))
			require.Subset(t, field[1], field[0])
		}
		gap := cron.ShortestGap()
		require.Positive(t, gap)
		require.LessOrEqual(t, gap.Hours(), 24.0)
	})
}
