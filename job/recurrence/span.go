package recurrence

import (
	"slices"
	"time"
)

// The reference years, of which the first is a leap year: the spans of a rule do
// not depend on when it is read.
const referenceYear, referenceYears = 2028, 2

// ShortestGap is the shortest time between two starts if every day is right, a day
// at most.
func (c Cron) ShortestGap() time.Duration {
	minutes := c.minutesOfDay()
	shortest := minutes[0] + hoursPerDay*minutesPerHour - minutes[len(minutes)-1]
	for n := 1; n < len(minutes); n++ {
		shortest = min(shortest, minutes[n]-minutes[n-1])
	}
	return time.Duration(shortest) * time.Minute
}

// minutesOfDay are the minutes of a day at which a cron text has starts.
func (c Cron) minutesOfDay() []int {
	var minutes []int
	for _, hour := range c.Hours {
		for _, minute := range c.Minutes {
			minutes = append(minutes, hour*minutesPerHour+minute)
		}
	}
	return minutes
}

// LongestGap is the longest time between two starts, with what transitions of the
// zone may add to it, and at most the given time.
func (t Times) LongestGap(most time.Duration) time.Duration {
	if t.every > 0 {
		return min(time.Duration(t.every)*time.Second, most)
	}
	days := t.referenceDays()
	if len(days) < 2 {
		return most
	}
	var gap time.Duration
	minutes := t.cron.minutesOfDay()
	for n := 1; n < len(minutes); n++ {
		gap = max(gap, time.Duration(minutes[n]-minutes[n-1])*time.Minute)
	}
	overnight := time.Duration(minutes[0]-minutes[len(minutes)-1]) * time.Minute
	for n := 1; n < len(days); n++ {
		gap = max(gap, time.Duration(days[n]-days[n-1])*day+overnight)
	}
	if t.zone != time.UTC {
		gap += time.Hour + t.moves // Clocks may go back, and a start be moved on such a day.
	}
	return min(gap, most)
}

// ShortestSpan is the shortest time from a start to the one after so many others,
// at most the given time. It is that time if there are fewer starts in two years.
func (t Times) ShortestSpan(starts int, most time.Duration) time.Duration {
	if t.every > 0 {
		every := time.Duration(t.every) * time.Second
		if every >= most/time.Duration(starts) {
			return most
		}
		return every * time.Duration(starts)
	}
	days, minutes := t.referenceDays(), t.cron.minutesOfDay()
	shortest := most
	for n, minute := range minutes {
		apart, other := (n+starts)/len(minutes), (n+starts)%len(minutes)
		between := time.Duration(minutes[other]-minute) * time.Minute
		for d := range max(len(days)-apart, 0) {
			shortest = min(shortest, time.Duration(days[d+apart]-days[d])*day+between)
		}
	}
	return min(shortest, t.shortestSpanAtTransitions(shortest, starts))
}

// referenceDays are the days of the reference years on which a cron text has
// starts, counted from the first.
func (t Times) referenceDays() []int {
	var days []int
	cals := calendarsFor(t.cron, time.UTC)
	at := time.Date(referenceYear, 1, 1, t.cron.Hours[0], t.cron.Minutes[0], 0, 0, time.UTC)
	for n := 0; at.Year() < referenceYear+referenceYears; n++ {
		if slices.ContainsFunc(cals, func(c calendar) bool { return c.matches(at) }) {
			days = append(days, n)
		}
		at = at.AddDate(0, 0, 1)
	}
	return days
}

// shortestSpanAtTransitions is the shortest span around the transitions of the
// reference years, which bring starts nearer to each other, move or double them.
// Other spans are not shorter than regular.
func (t Times) shortestSpanAtTransitions(regular time.Duration, starts int) time.Duration {
	shortest := regular
	t.start, t.end = time.Unix(-1, 0), time.Time{} // The limits do not matter.
	from := time.Date(referenceYear, 1, 1, 0, 0, 0, 0, time.UTC)
	for change := range transitionsWithin(t.zone, from, from.AddDate(referenceYears, 0, 0)) {
		// A shorter span has the transition within it, and few starts on either side.
		var around []time.Time
		most := regular + time.Hour + 2*t.moves
		for at := range t.After(change.at.Add(-most)) {
			if at.After(change.at.Add(most)) {
				break
			}
			around = append(around, at)
		}
		for n := starts; n < len(around); n++ {
			shortest = min(shortest, around[n].Sub(around[n-starts]))
		}
	}
	return shortest
}
