// Package cadence tells how often the rows of a table come, and where they are missing.
package cadence

import (
	"cmp"
	"slices"
	"time"
)

const (
	// maxGaps bounds the gaps that are told one by one.
	maxGaps = 10
	// maxSteps bounds the different steps of time that are counted.
	maxSteps = 10_000
)

// Report is what the steps from row to row tell.
type Report struct {
	// Cadence is the most frequent time from a row to the next, in seconds.
	Cadence float64 `json:"cadence_seconds,omitempty"`
	// Duplicates have the time of the row before, OutOfOrder an earlier one.
	Duplicates int64 `json:"duplicates"`
	OutOfOrder int64 `json:"out_of_order"`
	// Gaps counts where the next row is more than one and a half cadences later;
	// LongestGaps are at most ten of them.
	Gaps        int64 `json:"gaps"`
	LongestGaps []Gap `json:"longest_gaps,omitempty"`
}

// Gap is a time without rows.
type Gap struct {
	From time.Time `json:"from"` // the row before
	To   time.Time `json:"to"`   // the row after
}

// Length is how long the gap lasts.
func (g Gap) Length() time.Duration { return g.To.Sub(g.From) }

// Longest keeps the ten longest gaps of a list, the longest first.
func Longest[G interface{ Length() time.Duration }](gaps []G) []G {
	slices.SortStableFunc(gaps, func(a, b G) int { return cmp.Compare(b.Length(), a.Length()) })
	return gaps[:min(len(gaps), maxGaps)]
}

// Steps takes the times of rows. The zero value has seen none.
type Steps struct {
	before                 time.Time
	counts                 map[time.Duration]int64
	gaps                   []Gap // the longest, the longest first
	duplicates, outOfOrder int64
}

// Add takes the time of the next row.
func (s *Steps) Add(at time.Time) {
	before := s.before
	s.before = at
	if before.IsZero() {
		return
	}
	step := at.Sub(before)
	switch {
	case step == 0:
		s.duplicates++
		return
	case step < 0:
		s.outOfOrder++
		return
	}
	if s.counts == nil {
		s.counts = map[time.Duration]int64{}
	}
	if _, known := s.counts[step]; known || len(s.counts) < maxSteps {
		s.counts[step]++
	}
	if len(s.gaps) < maxGaps || step > s.gaps[len(s.gaps)-1].Length() {
		place, _ := slices.BinarySearchFunc(s.gaps, step, func(g Gap, s time.Duration) int { return int(max(-1, min(1, s-g.Length()))) })
		s.gaps = slices.Insert(s.gaps, place, Gap{From: before.UTC(), To: at.UTC()})
		s.gaps = s.gaps[:min(len(s.gaps), maxGaps)]
	}
}

// Report tells what the rows so far have shown.
func (s *Steps) Report() Report {
	r := Report{Duplicates: s.duplicates, OutOfOrder: s.outOfOrder}
	var cadence time.Duration
	for step, count := range s.counts {
		if count > s.counts[cadence] || (count == s.counts[cadence] && step < cadence) {
			cadence = step
		}
	}
	r.Cadence = cadence.Seconds()
	for step, count := range s.counts {
		if step > cadence+cadence/2 {
			r.Gaps += count
		}
	}
	for _, gap := range s.gaps {
		if gap.Length() > cadence+cadence/2 {
			r.LongestGaps = append(r.LongestGaps, gap)
		}
	}
	return r
}
