package pipeline

import "time"

const (
	// tallyTime and tallyPoints are the least time and the least number of points of a
	// period: a location that gets a point a minute is judged by its last few, a busy one
	// by its last minutes.
	tallyTime   = time.Minute
	tallyPoints = 10
)

// Tally counts the latest points of a load: those of the present period, and those of the
// period before.
type Tally struct {
	Now    TallyPeriod `json:"now,omitzero"`
	Before TallyPeriod `json:"before,omitzero"`
	// Class and Reason are those of the last point that was refused.
	Class  string `json:"class,omitempty"`
	Reason string `json:"reason,omitempty"`
	// RefusingSince is when most points began to be refused; zero if they are not.
	RefusingSince time.Time `json:"refusing_since,omitzero"`
}

// TallyPeriod is a time in which points came, and how many were stored and refused.
type TallyPeriod struct {
	Start   time.Time `json:"start,omitzero"`
	Stored  int64     `json:"stored,omitempty"`
	Refused int64     `json:"refused,omitempty"`
}

// Stored counts points that the server has stored.
func (t *Tally) Stored(now time.Time, points int64) {
	t.begin(now)
	t.Now.Stored += points
	t.judge(now)
}

// Refused counts points that are in quarantine.
func (t *Tally) Refused(now time.Time, points int, class, reason string) {
	t.begin(now)
	t.Now.Refused += int64(points)
	t.Class, t.Reason = class, reason
	t.judge(now)
}

// Counts are how many points there were in both periods, and how many were refused.
func (t *Tally) Counts() (points, refused int64) {
	refused = t.Now.Refused + t.Before.Refused
	return refused + t.Now.Stored + t.Before.Stored, refused
}

// begin begins a new period if the present one is long enough.
func (t *Tally) begin(now time.Time) {
	if t.Now.Start.IsZero() {
		t.Now.Start = now
	}
	if now.Sub(t.Now.Start) >= tallyTime && t.Now.Stored+t.Now.Refused >= tallyPoints {
		t.Before, t.Now = t.Now, TallyPeriod{Start: now}
	}
}

// judge notes whether more than half of the points are refused.
func (t *Tally) judge(now time.Time) {
	points, refused := t.Counts()
	switch {
	case points < tallyPoints || 2*refused <= points:
		t.RefusingSince = time.Time{}
	case t.RefusingSince.IsZero():
		t.RefusingSince = now
	}
}
