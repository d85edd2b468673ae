package recurrence

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Cron is a parsed cron text: the values that each field matches, ascending.
type Cron struct {
	Minutes     []int // 0 to 59
	Hours       []int // 0 to 23
	DaysOfMonth []int // 1 to 31
	Months      []int // 1 to 12
	Weekdays    []int // 0 to 6, from Sunday
	// EitherDay says that a day is right if it is one of DaysOfMonth or one of
	// Weekdays. Otherwise it has to be both.
	EitherDay bool
}

// MaxCronText is the longest cron text in bytes, which is what Temporal takes as
// the comment of a calendar.
const MaxCronText = 200

// cronField is what one field of a cron text may hold.
type cronField struct {
	name     string
	min, max int
	// names stand for min and the values after it.
	names []string
}

var cronFields = [...]cronField{
	{name: "minute", min: 0, max: 59},
	{name: "hour", min: 0, max: 23},
	{name: "day of month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, names: []string{
		"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
	}},
	{name: "day of week", min: 0, max: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

const (
	fieldMinute = iota
	fieldHour
	fieldDayOfMonth
	fieldMonth
	fieldWeekday
)

// cronMacros are refused, with what to write for them.
var cronMacros = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// ParseCron reads the five fields of crontab(5): minute, hour, day of month,
// month and day of week, with lists, ranges, steps, the English names of months
// and weekdays by their first three letters, and 7 for Sunday. A step after a
// single value goes up to the greatest: 5/15 is 5-59/15. When neither day field
// starts with a star, a day is right if either field matches it.
//
// Refused are what cron implementations do not agree on: macros (@daily),
// seconds and years, L, W, # and ?; ranges that go backwards, steps that are
// longer than their range, and days that no month has. The error is one
// sentence that names every field at fault.
func ParseCron(text string) (Cron, error) {
	if len(text) > MaxCronText {
		return Cron{}, fmt.Errorf("a cron text has at most %d bytes, not %d", MaxCronText, len(text))
	}
	fields := strings.Fields(text)
	if err := checkCronForm(text, fields); err != nil {
		return Cron{}, err
	}
	var sets [len(cronFields)]uint64
	var wrong []string
	for i, field := range cronFields {
		set, err := field.parse(fields[i])
		if err != nil {
			wrong = append(wrong, err.Error())
		}
		sets[i] = set
	}
	if len(wrong) > 0 {
		return Cron{}, fmt.Errorf("%q: %s", text, strings.Join(wrong, "; "))
	}
	cron := Cron{
		Minutes:     values(sets[fieldMinute]),
		Hours:       values(sets[fieldHour]),
		DaysOfMonth: values(sets[fieldDayOfMonth]),
		Months:      values(sets[fieldMonth]),
		Weekdays:    values(sets[fieldWeekday]),
		EitherDay: !strings.HasPrefix(fields[fieldDayOfMonth], "*") &&
			!strings.HasPrefix(fields[fieldWeekday], "*"),
	}
	if !cron.EitherDay && !cron.dayExists() {
		return Cron{}, fmt.Errorf("%q: no month of %s has a day %s", text, fields[fieldMonth], fields[fieldDayOfMonth])
	}
	return cron, nil
}

func checkCronForm(text string, fields []string) error {
	if len(fields) > 0 {
		first := fields[0]
		if macro, ok := cronMacros[first]; ok {
			return fmt.Errorf("%q is not a cron text of five fields: write %q", text, macro)
		}
		switch {
		case first == "@every":
			return fmt.Errorf("%q is not a cron text of five fields: write recur_every instead of cron", text)
		case strings.HasPrefix(first, "TZ=") || strings.HasPrefix(first, "CRON_TZ="):
			return fmt.Errorf("%q names a time zone, which is written as time_zone", text)
		}
	}
	if len(fields) != len(cronFields) {
		return fmt.Errorf("%q has %d fields, not five: minute, hour, day of month, month, day of week", text, len(fields))
	}
	return nil
}

// parse gives the values of a field as a set of bits.
func (f cronField) parse(text string) (uint64, error) {
	var set uint64
	for item := range strings.SplitSeq(text, ",") {
		first, last, step, err := f.item(item)
		if err != nil {
			return 0, fmt.Errorf("%s %q: %w", f.name, text, err)
		}
		for value := first; value <= last; value += step {
			if f.max == 7 {
				set |= 1 << (value % 7)
			} else {
				set |= 1 << value
			}
		}
	}
	return set, nil
}

// item reads *, n, n-m, each with or without a step.
func (f cronField) item(text string) (first, last, step int, err error) {
	values, stepText, stepped := strings.Cut(text, "/")
	from, to, isRange := strings.Cut(values, "-")
	greatest := f.max
	if f.max == 7 {
		greatest = 6 // 7 is Sunday a second time
	}
	switch {
	case values == "*":
		first, last = f.min, greatest
	case isRange:
		if first, err = f.value(from); err != nil {
			return 0, 0, 0, err
		}
		if last, err = f.value(to); err != nil {
			return 0, 0, 0, err
		}
		if f.max == 7 && last == 0 && first > 0 {
			last = 7 // fri-sun
		}
		if last < first {
			return 0, 0, 0, fmt.Errorf("%s ends before it starts", values)
		}
	default:
		if first, err = f.value(values); err != nil {
			return 0, 0, 0, err
		}
		last = first
		if stepped {
			last = max(first, greatest)
		}
	}
	if !stepped {
		return first, last, 1, nil
	}
	if step, err = number(stepText); err != nil || step == 0 {
		return 0, 0, 0, fmt.Errorf("%q is not a step, a whole number from 1", stepText)
	}
	if step > last-first {
		return 0, 0, 0, fmt.Errorf("a step of %s is longer than the range %d-%d", stepText, first, last)
	}
	return first, last, step, nil
}

func (f cronField) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	value, err := number(text)
	switch {
	case err != nil && f.names != nil:
		return 0, fmt.Errorf("%q is not a number or a name such as %s", text, f.names[1])
	case err != nil:
		return 0, fmt.Errorf("%q is not a number", text)
	case value < f.min || value > f.max:
		return 0, fmt.Errorf("%s is not from %d to %d", text, f.min, f.max)
	}
	return value, nil
}

// number reads digits alone: strconv.Atoi takes a sign too. What is too large
// for 16 bits is cut down to them, since it is too large for every field.
func number(text string) (int, error) {
	value, err := strconv.ParseUint(text, 10, 16)
	if errors.Is(err, strconv.ErrRange) {
		err = nil
	}
	return int(value), err //nolint:gosec // Of 16 bits.
}

// values lists the members of a set of bits.
func values(set uint64) []int {
	list := make([]int, 0, bits.OnesCount64(set))
	for ; set != 0; set &= set - 1 {
		list = append(list, bits.TrailingZeros64(set))
	}
	return list
}

// dayExists reports whether one of the months has one of the days.
func (c Cron) dayExists() bool {
	longest := [...]int{1: 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}
	for _, month := range c.Months {
		if c.DaysOfMonth[0] <= longest[month] {
			return true
		}
	}
	return false
}
