package cli

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

// toTime is a time of the Job API, zero if there is none.
func toTime(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// when writes a time in the user's time zone, with its distance from now.
func (i *invocation) when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	now := i.Now().In(i.Location)
	local := t.In(i.Location)
	layout := "2006-01-02 15:04"
	if local.Year() == now.Year() && local.YearDay() == now.YearDay() {
		layout = "15:04:05"
	}
	return fmt.Sprintf("%s (%s)", local.Format(layout), relative(t.Sub(now)))
}

// moment writes a time in the user's time zone.
func (i *invocation) moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	text, _, _ := strings.Cut(i.when(t), " (")
	return text
}

// relative writes the distance of a time from now.
func relative(d time.Duration) string {
	if d >= 0 {
		return "in " + span(d)
	}
	return span(-d) + " ago"
}

// span writes a length of time in its largest unit, rounded to the nearest.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	in := func(unit time.Duration) time.Duration { return (d + unit/2) / unit }
	switch {
	case in(time.Second) < 60:
		return fmt.Sprintf("%d s", in(time.Second))
	case in(time.Minute) < 60:
		return fmt.Sprintf("%d min", in(time.Minute))
	case in(time.Hour) < 48:
		return fmt.Sprintf("%d h", in(time.Hour))
	}
	return fmt.Sprintf("%d d", in(day))
}

// took writes a duration with at most three digits.
func took(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
