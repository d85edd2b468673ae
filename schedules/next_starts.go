package schedules

import (
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
)

// shownStarts is how many coming starts a plan shows.
const shownStarts = 3

// starts lists when a schedule that changes starts runs next, now and then: both
// without jitter, so that one can be held against the other, and without the
// starts that people have skipped.
func (change *Change) starts(live *client.Live, now time.Time) {
	if change.Action != ActionUpdate {
		return
	}
	skipped := map[time.Time]bool{}
	for _, at := range live.SkippedStarts(now) {
		skipped[at.UTC()] = true
	}
	switch {
	case live.Paused:
	case change.Drifted:
		next := live.Next() // Only the server knows.
		change.NextNow = next[:min(len(next), shownStarts)]
	case live.Job.Recurring != nil:
		change.NextNow = nextStarts(live.Job, now, skipped)
	}
	declared := change.job.Options.Paused
	keepsPause := live.Paused && !change.setPause && live.Job.Options.Paused == declared
	if !keepsPause {
		change.NextThen = nextStarts(change.job, now, skipped)
	}
}

// nextStarts are the coming starts of a job, jitter aside; none while it is
// declared as paused.
func nextStarts(j job.Job, now time.Time, skipped map[time.Time]bool) []time.Time {
	times, err := j.Recurring.Times(j.ID)
	if err != nil || j.Options.Paused {
		return nil
	}
	var next []time.Time
	for at := times.Next(now); !at.IsZero() && len(next) < shownStarts; at = times.Next(at) {
		if !skipped[at] {
			next = append(next, at)
		}
	}
	return next
}

// hasNoStart reports whether a job's last start has passed.
func hasNoStart(j job.Job, now time.Time) (bool, error) {
	times, err := j.Recurring.Times(j.ID)
	return err == nil && times.Next(now).IsZero(), err
}

// lastStart is the last start before a job's end_at; zero if it has no end_at.
// One that has no start at all has ended with its end_at.
func lastStart(j job.Job) (time.Time, error) {
	end := j.Recurring.EndAt
	if end.IsZero() {
		return time.Time{}, nil
	}
	times, err := j.Recurring.Times(j.ID)
	if err != nil {
		return time.Time{}, err
	}
	// The last time after which there is a start, to the second: starts have no
	// smaller parts.
	low, high := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), end
	if times.Next(low).IsZero() {
		return end, nil
	}
	for high.Sub(low) > time.Second {
		middle := low.Add(high.Sub(low) / 2).Truncate(time.Second)
		if middle.Equal(low) {
			break
		}
		if times.Next(middle).IsZero() {
			high = middle
		} else {
			low = middle
		}
	}
	return times.Next(low), nil
}
