package schedules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/job"
)

// cronCalendars turns a cron text into calendars, whose times together are its
// times. The server would turn the text into calendars as well, but takes a day
// for right only if both day fields match, and gives the text up; here it stays
// as a comment, which the Web UI shows.
func cronCalendars(text string) ([]client.ScheduleCalendarSpec, error) {
	cron, err := job.ParseCron(text)
	if err != nil {
		return nil, err
	}
	calendar := client.ScheduleCalendarSpec{
		Second:     []client.ScheduleRange{{}},
		Minute:     ranges(cron.Minutes),
		Hour:       ranges(cron.Hours),
		DayOfMonth: ranges(cron.DaysOfMonth),
		Month:      ranges(cron.Months),
		DayOfWeek:  ranges(cron.Weekdays),
		Comment:    text,
	}
	if !cron.EitherDay {
		return []client.ScheduleCalendarSpec{calendar}, nil
	}
	byDate, byWeekday := calendar, calendar
	byDate.DayOfWeek = []client.ScheduleRange{{Start: 0, End: 6, Step: 1}}
	byWeekday.DayOfMonth = []client.ScheduleRange{{Start: 1, End: 31, Step: 1}}
	return []client.ScheduleCalendarSpec{byDate, byWeekday}, nil
}

// ranges writes ascending values as ranges: one with a step if they are evenly
// spaced, else one for each run of neighbours.
func ranges(values []int) []client.ScheduleRange {
	last := len(values) - 1
	if step, even := spacing(values); even {
		return []client.ScheduleRange{{Start: values[0], End: values[last], Step: step}}
	}
	var list []client.ScheduleRange
	for i, value := range values {
		if i > 0 && value == values[i-1]+1 {
			list[len(list)-1].End = value
			continue
		}
		list = append(list, client.ScheduleRange{Start: value, End: value, Step: 1})
	}
	return list
}

// spacing is the distance between neighbours, if it is the same everywhere.
func spacing(values []int) (step int, even bool) {
	if len(values) < 3 {
		return 1, len(values) < 2 || values[0]+1 == values[1]
	}
	step = values[1] - values[0]
	for i := 2; i < len(values); i++ {
		if values[i]-values[i-1] != step {
			return 0, false
		}
	}
	return step, true
}

// calendarText writes a calendar in the form of a cron text, with the second
// before it and the year after it where they are not the usual. Calendars that
// mean the same are written the same, however the server or a person put it.
func calendarText(c client.ScheduleCalendarSpec) string {
	fields := []string{
		fieldText(c.Minute, 0, 59), fieldText(c.Hour, 0, 23), fieldText(c.DayOfMonth, 1, 31),
		fieldText(c.Month, 1, 12), fieldText(c.DayOfWeek, 0, 6),
	}
	if second := fieldText(c.Second, 0, 59); second != "0" {
		fields = append([]string{"second " + second + ":"}, fields...)
	}
	if len(c.Year) > 0 {
		fields = append(fields, "in "+fieldText(c.Year, 2000, 2100))
	}
	return strings.Join(fields, " ")
}

// fieldText writes the values that ranges hold, within the limits of a field.
func fieldText(list []client.ScheduleRange, least, most int) string {
	var values []int
	for _, r := range list {
		// The server takes an end before the start, and a step of zero, as not given.
		for value := r.Start; value <= max(r.Start, r.End); value += max(r.Step, 1) {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	switch len(values) {
	case 0:
		return "never"
	case most - least + 1:
		return "*"
	}
	var parts []string
	for _, r := range ranges(values) {
		switch {
		case r.Start == r.End:
			parts = append(parts, strconv.Itoa(r.Start))
		case r.Step > 1:
			parts = append(parts, fmt.Sprintf("%d-%d/%d", r.Start, r.End, r.Step))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", r.Start, r.End))
		}
	}
	return strings.Join(parts, ",")
}
