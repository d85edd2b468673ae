package schedules

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	schedulepb "go.temporal.io/api/schedule/v1"

	"github.com/dendrascience/dendra-jobs/job/recurrence"
)

// Comments of calendars that are there for changes of the clocks, which the Web UI
// shows.
const (
	movedComment    = "where clocks change: starts that they would skip or repeat"
	excludedComment = "where clocks change: starts that would be more than one"
)

// cronCalendars turns the times of a cron text into calendars: those whose times
// are starts, and those whose times are none. The server would turn the text into
// calendars as well, but takes a day for right only if both day fields match, does
// what comes where clocks change, and gives the text up; here it stays as a comment.
func cronCalendars(text string, times recurrence.Times) (starts, excluded []*schedulepb.StructuredCalendarSpec) {
	calendars := times.Calendars()
	starts = structured(calendars.Named, text)
	starts = append(starts, structured(calendars.Moved, movedComment)...)
	return starts, structured(calendars.Excluded, excludedComment)
}

func structured(calendars []recurrence.Calendar, comment string) []*schedulepb.StructuredCalendarSpec {
	var list []*schedulepb.StructuredCalendarSpec
	for _, c := range calendars {
		list = append(list, &schedulepb.StructuredCalendarSpec{
			Second:     []*schedulepb.Range{{}},
			Minute:     ranges(c.Minutes),
			Hour:       ranges(c.Hours),
			DayOfMonth: ranges(c.DaysOfMonth),
			Month:      ranges(c.Months),
			DayOfWeek:  ranges(c.Weekdays),
			Comment:    comment,
		})
	}
	return list
}

// ranges writes ascending values as ranges: one with a step if they are evenly
// spaced, else one for each run of neighbours.
func ranges(values []int) []*schedulepb.Range {
	last := len(values) - 1
	if step, even := spacing(values); even {
		return []*schedulepb.Range{span(values[0], values[last], step)}
	}
	var list []*schedulepb.Range
	for i, value := range values {
		if i > 0 && value == values[i-1]+1 {
			list[len(list)-1].End++
			continue
		}
		list = append(list, span(value, value, 1))
	}
	return list
}

func span(first, last, step int) *schedulepb.Range {
	return &schedulepb.Range{Start: int32(first), End: int32(last), Step: int32(step)} //nolint:gosec // Of a clock or a calendar.
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
func calendarText(c *schedulepb.StructuredCalendarSpec) string {
	fields := []string{
		fieldText(c.GetMinute(), 0, 59), fieldText(c.GetHour(), 0, 23), fieldText(c.GetDayOfMonth(), 1, 31),
		fieldText(c.GetMonth(), 1, 12), fieldText(c.GetDayOfWeek(), 0, 6),
	}
	if second := fieldText(c.GetSecond(), 0, 59); second != "0" {
		fields = append([]string{"second " + second + ":"}, fields...)
	}
	if len(c.GetYear()) > 0 {
		fields = append(fields, "in "+fieldText(c.GetYear(), 2000, 2100))
	}
	return strings.Join(fields, " ")
}

// fieldText writes the values that ranges hold, within the limits of a field.
func fieldText(list []*schedulepb.Range, least, most int) string {
	var values []int
	for _, r := range list {
		// The server takes an end before the start, and a step of zero, as not given.
		for value := r.GetStart(); value <= max(r.GetStart(), r.GetEnd()); value += max(r.GetStep(), 1) {
			values = append(values, int(value))
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
		case r.GetStart() == r.GetEnd():
			parts = append(parts, strconv.Itoa(int(r.GetStart())))
		case r.GetStep() > 1:
			parts = append(parts, fmt.Sprintf("%d-%d/%d", r.GetStart(), r.GetEnd(), r.GetStep()))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", r.GetStart(), r.GetEnd()))
		}
	}
	return strings.Join(parts, ",")
}
