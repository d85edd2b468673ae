// Package wording writes times, durations and lists as people do. The page's script writes the
// same times and durations: server/page/ts/spans.ts. Both are held against one table,
// testdata/spans.json.
package wording

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// layout is that of a time: 24 hours, to the second, with its zone.
const layout = "2006-01-02 15:04:05 MST"

// Stamp is a time in UTC, as texts have it: 2026-05-01 06:00:00 UTC.
func Stamp(t time.Time) string { return t.UTC().Format(layout) }

const day = 24 * time.Hour

// Span is a duration in its two largest units: 2 h 5 min. What is shorter than a minute has
// tenths of seconds, or milliseconds. It is never rounded up.
func Span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return strconv.FormatFloat(float64(d/(100*time.Millisecond))/10, 'f', -1, 64) + " s"
	case d < time.Hour:
		return two(d, time.Minute, "min", time.Second, "s")
	case d < day:
		return two(d, time.Hour, "h", time.Minute, "min")
	}
	return two(d, day, "d", time.Hour, "h")
}

func two(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}

// Away says how far a time is from now: in 5 min, now, 2 h 5 min ago. Clocks differ, and
// answers take a while: what is less than a second away is now.
func Away(d time.Duration) string {
	switch {
	case d >= time.Second:
		return "in " + Span(coarse(d))
	case d > -time.Second:
		return "now"
	}
	return Span(coarse(-d)) + " ago"
}

// coarse leaves out what changes all the time, and tells people nothing.
func coarse(d time.Duration) time.Duration {
	if d < time.Minute {
		return d.Truncate(time.Second)
	}
	return d.Truncate(time.Minute)
}

// List names as many of the names as it may, and says how many more there are: a, b and 3 more.
func List(names []string, most int) string {
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
