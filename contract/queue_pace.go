package contract

import (
	"slices"
	"time"
)

// Pace counts the items that ran, in steps of ten seconds over the last minute
// and in steps of a minute over the last hour.
type Pace struct {
	Tens    []PaceStep `json:"tens,omitempty"`
	Minutes []PaceStep `json:"minutes,omitempty"`
}

// PaceStep is a step of time with how many items ended in it.
type PaceStep struct {
	Start time.Time `json:"start"`
	Items int       `json:"items"`
}

// Count adds an item that ended.
func (p *Pace) Count(ended time.Time) {
	p.Tens = countStep(p.Tens, ended, 10*time.Second, time.Minute)
	p.Minutes = countStep(p.Minutes, ended, time.Minute, time.Hour)
}

func countStep(steps []PaceStep, ended time.Time, step, span time.Duration) []PaceStep {
	start := ended.UTC().Truncate(step)
	if n := len(steps); n > 0 && !steps[n-1].Start.Before(start) {
		steps[n-1].Items++
		return steps
	}
	kept := make([]PaceStep, 0, len(steps)+1)
	for _, s := range steps {
		if start.Sub(s.Start) <= span {
			kept = append(kept, s)
		}
	}
	return append(kept, PaceStep{Start: start, Items: 1})
}

// LastMinute is how many items ran in the minute before now, give or take ten
// seconds.
func (p Pace) LastMinute(now time.Time) int { return itemsSince(p.Tens, now.Add(-time.Minute)) }

// LastHour is how many items ran in the hour before now, give or take a minute.
func (p Pace) LastHour(now time.Time) int { return itemsSince(p.Minutes, now.Add(-time.Hour)) }

// RanSince is when the first item began of those that ran in the hour before now: to the
// minute if it is none of the latest. It is zero if none ran.
func (s *QueueState) RanSince(now time.Time) time.Time {
	hour := now.Add(-time.Hour)
	left := itemsSince(s.Pace.Minutes, hour)
	var first time.Time
	for _, item := range slices.Backward(s.Recent) {
		if left > 0 && item.Ran() {
			first = item.Started
			left--
		}
	}
	for _, step := range s.Pace.Minutes {
		if left > 0 && !step.Start.Before(hour) {
			return step.Start
		}
	}
	return first
}

func itemsSince(steps []PaceStep, since time.Time) int {
	items := 0
	for _, s := range steps {
		if !s.Start.Before(since) {
			items += s.Items
		}
	}
	return items
}
