package job

import (
	"time"

	"github.com/dendrascience/dendra-jobs/job/recurrence"
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

// GivesWay reports whether a late start of the job gives way to later ones that are
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
	times, err := r.limitless()
	if err != nil {
		return Duration(longestAll) // Another problem of the definition.
	}
	// Jitter may bring two starts nearer to each other. A window that is as long
	// as the span from one start to the one after the last would hold both.
	span := times.ShortestSpan(r.MissedLimit(), longestAll)
	return Duration(max(span-r.Jitter.Std()-time.Millisecond, 0))
}

// onceWindow is a window that holds a start whenever one was missed: the longest
// time between two starts, and at most longestOnce.
func (r Recurring) onceWindow() Duration {
	times, err := r.limitless()
	if err != nil {
		return 0
	}
	return Duration(times.LongestGap(longestOnce))
}

// limitless are the starts without their limits and without the phase of a job.
func (r Recurring) limitless() (recurrence.Times, error) {
	return recurrence.New(recurrence.Rule{Every: r.RecurEvery.Std(), Cron: r.Cron, TimeZone: r.TimeZone})
}
