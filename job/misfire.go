package job

import (
	"slices"
	"time"
)

// Misfire says what becomes of the starts that were missed while the server was
// away.
type Misfire string

// The misfire policies.
const (
	MisfireSkip Misfire = "skip" // nothing is made up for
	MisfireOnce Misfire = "once" // one run makes up for all
	MisfireAll  Misfire = "all"  // every missed start is made up for, at most max_missed
)

// Misfires lists every misfire policy in the order of the documentation.
func Misfires() []Misfire { return []Misfire{MisfireSkip, MisfireOnce, MisfireAll} }

// Limits of what is made up for after an outage.
const (
	// DefaultMaxMissed is the default of MaxMissed.
	DefaultMaxMissed = 100
	// MaxMaxMissed is the largest MaxMissed: as many starts wait in a schedule
	// at most.
	MaxMaxMissed = 1000
	// longestOnce bounds the catch-up window of a job that did not set one: a
	// start that is later than that is given up.
	longestOnce = 31 * 24 * time.Hour
	// longestAll bounds the catch-up window of misfire all.
	longestAll = 365 * 24 * time.Hour
)

// MisfirePolicy is Misfire or its default.
func (r Recurring) MisfirePolicy() Misfire {
	if r.Misfire == "" {
		return MisfireOnce
	}
	return r.Misfire
}

// MissedLimit is MaxMissed or its default.
func (r Recurring) MissedLimit() int {
	if r.MaxMissed <= 0 {
		return DefaultMaxMissed
	}
	return r.MaxMissed
}

// Catchup is how late a start may be after an outage: CatchupWindow or its
// default, and with misfire all at most the window of MaxMissed starts.
func (r Recurring) Catchup() Duration {
	switch {
	case r.Misfire == MisfireSkip:
		return MinCatchupWindow
	case r.Misfire == MisfireAll:
		window := r.allWindow()
		if r.OverlapPolicy() == OverlapBufferAll {
			// Starts wait for each other, and one that waits beyond the window is
			// lost: the limit is kept by giving way instead.
			window = min(window+max(window, waitAfterOutage), Duration(longestAll))
		}
		if r.CatchupWindow != 0 {
			window = min(window, r.CatchupWindow)
		}
		return max(window, MinCatchupWindow)
	case r.CatchupWindow != 0:
		return r.CatchupWindow
	}
	// The server's own default is a year.
	window := max(2*r.Period(), Duration(time.Minute))
	if r.Misfire == MisfireOnce || r.OverlapPolicy() == OverlapSkip {
		window = max(window, r.onceWindow())
	}
	return window
}

// GivesWay says that a late start of the job gives way to later ones that are
// due too, so that its run ends at once without doing anything: what the overlap
// policy of its schedule does not see to.
func (r Recurring) GivesWay() bool {
	switch r.OverlapPolicy() {
	case OverlapAllowAll:
		return r.Misfire == MisfireSkip || r.Misfire == MisfireOnce
	case OverlapBufferAll:
		return r.Misfire == MisfireOnce || r.Misfire == MisfireAll
	case OverlapSkip:
		return r.Misfire == MisfireSkip
	default:
		return false
	}
}

// waitAfterOutage is how long starts may at least wait for each other, and for
// workers to come back.
const waitAfterOutage = Duration(time.Minute)

// TakenAsMissed is how late a start may be to give way, unless the misfire
// policy is once: one that is later was asked for by hand.
func (r Recurring) TakenAsMissed() Duration { return r.Catchup() + waitAfterOutage }

// GivesWayTo is the later start that a start of the job gives way to when its
// run begins only now; zero if there is none. due is its nominal time. With
// misfire all it is the last of as many as are made up for.
func (r Recurring) GivesWayTo(jobID string, due, now time.Time) time.Time {
	if !r.GivesWay() || r.Misfire != MisfireOnce && now.Sub(due) > r.TakenAsMissed().Std() {
		return time.Time{}
	}
	times, err := r.Times(jobID)
	if err != nil {
		return time.Time{}
	}
	last := now
	limit := 1
	switch r.Misfire {
	case MisfireAll:
		limit = r.MissedLimit()
	case MisfireSkip:
		last = now.Add(-r.Jitter.Std()) // A later start may not be due yet.
	}
	for later := range times.After(due) {
		if later.After(last) {
			break
		}
		if limit--; limit == 0 {
			return later
		}
	}
	return time.Time{}
}

// allWindow is the longest window that never holds more than MissedLimit starts.
func (r Recurring) allWindow() Duration {
	limit := r.MissedLimit()
	span := longestAll
	if r.Cron == "" {
		if every := r.RecurEvery.Std(); every > 0 && every < longestAll/time.Duration(limit) {
			span = every * time.Duration(limit)
		}
	} else if cron, err := ParseCron(r.Cron); err == nil {
		span = min(span, r.shortestSpan(cron, limit))
	}
	// Jitter may bring two starts nearer to each other. A window that is as long
	// as the span from one start to the one after the last would hold both.
	return Duration(max(span-r.Jitter.Std()-time.Millisecond, 0))
}

// onceWindow is a window that holds a start whenever one was missed: the longest
// time between two starts, and at most longestOnce.
func (r Recurring) onceWindow() Duration {
	if r.Cron == "" {
		return Duration(min(r.RecurEvery.Std(), longestOnce))
	}
	cron, err := ParseCron(r.Cron)
	if err != nil {
		return 0
	}
	gap := longestOnce
	if days := referenceDays(cron); len(days) > 1 {
		gap = 0
		times := cron.minutesOfDay()
		for n := 1; n < len(times); n++ {
			gap = max(gap, time.Duration(times[n]-times[n-1])*time.Minute)
		}
		overnight := time.Duration(times[0]-times[len(times)-1]) * time.Minute
		for n := 1; n < len(days); n++ {
			gap = max(gap, time.Duration(days[n]-days[n-1])*day+overnight)
		}
	}
	if r.Zone() != "UTC" {
		gap += time.Hour // Clocks may go back.
		if times, err := r.Times(""); err == nil {
			gap += times.moves // And a start be moved on such a day.
		}
	}
	return Duration(min(gap, longestOnce))
}

const day = 24 * time.Hour

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

// The reference years, of which the first is a leap year: what a definition
// gives does not depend on when it is read.
const referenceYear, referenceYears = 2028, 2

// referenceDays are the days of the reference years on which a cron text has
// starts, counted from the first.
func referenceDays(cron Cron) []int {
	var days []int
	cals := calendars(cron, time.UTC)
	at := time.Date(referenceYear, 1, 1, cron.Hours[0], cron.Minutes[0], 0, 0, time.UTC)
	for n := 0; at.Year() < referenceYear+referenceYears; n++ {
		if slices.ContainsFunc(cals, func(c calendar) bool { return c.shows(at) }) {
			days = append(days, n)
		}
		at = at.AddDate(0, 0, 1)
	}
	return days
}

// shortestSpan is the shortest time from a start to the one after so many
// others, in the reference years. It is longestAll if there are fewer.
func (r Recurring) shortestSpan(cron Cron, starts int) time.Duration {
	days, times := referenceDays(cron), cron.minutesOfDay()
	shortest := longestAll
	for n, minute := range times {
		apart, other := (n+starts)/len(times), (n+starts)%len(times)
		between := time.Duration(times[other]-minute) * time.Minute
		for d := range max(len(days)-apart, 0) {
			shortest = min(shortest, time.Duration(days[d+apart]-days[d])*day+between)
		}
	}
	return min(shortest, r.shortestSpanAtChanges(shortest, starts))
}

// shortestSpanAtChanges is shortestSpan around the changes of the clocks in the
// reference years, which bring starts nearer to each other, move or double
// them. Other spans are not shorter than regular.
func (r Recurring) shortestSpanAtChanges(regular time.Duration, starts int) time.Duration {
	shortest := regular
	limitless := Recurring{Cron: r.Cron, TimeZone: r.TimeZone}
	times, err := limitless.Times("")
	if err != nil {
		return shortest
	}
	from := time.Date(referenceYear, 1, 1, 0, 0, 0, 0, time.UTC)
	for change := range times.changes(from, from.AddDate(referenceYears, 0, 0)) {
		// A shorter span has the change within it, and few starts on either side.
		var around []time.Time
		most := regular + time.Hour + 2*times.moves
		for at := range times.After(change.Add(-most)) {
			if at.After(change.Add(most)) {
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
