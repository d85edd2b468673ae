package check

import (
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// The reasons of starts without a run that can be looked up in the ledger.
const (
	reasonOverlap    = "overlap"
	reasonPaused     = "paused"
	reasonSuperseded = "superseded"
)

// scheduleLag is how late a schedule may hear of the end of a run or of a resume.
const scheduleLag = 10 * time.Second

// lostTaskLag is that of a schedule that made its next run late: a lost task costs ten seconds.
const lostTaskLag = 15 * time.Second

// lostTime is how long Temporal may take to end a run whose handler was cut off: a
// frozen server, what clients need to find it again, and a heartbeat timeout.
const lostTime = 45 * time.Second

// span is how long something is known to have been so.
type span struct{ from, to time.Duration }

// spanOf is the time in which a run was under way. Before its first handler it may have
// waited for a worker, after one that was cut off for the next. After the last one
// it is under way until Temporal has recorded its end: a server that is slow, or away,
// records it late, and holds starts off until then.
func (b Book) spanOf(run ledger.Run, attempts []*attempt) span {
	s := span{from: attempts[0].At}
	if !run.Started.IsZero() {
		s.from = min(s.from, b.at(run.Started))
	}
	for _, a := range attempts {
		end := a.last()
		if run.Ended.IsZero() && (!a.byItself() || b.cutOff(a)) {
			end += lostTime
		}
		s.to = max(s.to, end)
	}
	if !run.Ended.IsZero() {
		s.to = max(s.to, b.at(run.Ended))
	}
	return s
}

// busy reports whether a run of the job was under way in a time, or ended right before. Runs
// that were due from a time on do not count. One that was stopped while it waited for a
// worker has no handler: it is known by the stop.
func (b Book) busy(job *account, from, to time.Duration, before time.Time) bool {
	for id, attempts := range job.attempts {
		run := job.runs[id]
		if !run.Due.IsZero() && !run.Due.Before(before) {
			continue
		}
		if s := b.spanOf(run, attempts); s.from <= to && s.to >= from-scheduleLag {
			return true
		}
	}
	for id, run := range job.runs {
		if len(job.attempts[id]) == 0 && run.Status == "canceled" && !run.Ended.IsZero() && (run.Due.IsZero() || run.Due.Before(before)) &&
			b.at(run.Started) <= to && b.at(run.Ended) >= from-scheduleLag && b.stopped(job, run) {
			return true
		}
	}
	return false
}

// paused reports whether a job was paused at a time: by a pause that was not refused, up to
// the next resume that was done, and the lag with which a schedule hears of that. A pause
// lasts through outages, and through resumes that were not answered.
func (b Book) paused(job string, at, lag time.Duration) bool {
	return slices.ContainsFunc(b.Verbs, func(pause ledger.Verb) bool {
		if pause.Name != "pause" || pause.Target != job || pause.Refused() || at < pause.From {
			return false
		}
		return !slices.ContainsFunc(b.Verbs, func(v ledger.Verb) bool {
			return v.Name == "resume" && (v.Target == job || v.Target == ledger.AllJobs) && v.OK && v.From >= pause.To && at > v.To+lag
		})
	})
}

// checkReason compares the reason that is listed for a start with the ledger.
func (b Book) checkReason(r *Report, job *account, due time.Time, reason, when string) {
	r.Reasons[reason]++
	at, known, lag := b.at(due), true, scheduleLag
	if job.lateAfter(due) {
		lag = lostTaskLag
	}
	switch reason {
	case reasonPaused:
		known = b.paused(job.Job, at, lag)
	case reasonOverlap:
		known = b.busy(job, at-(lag-scheduleLag), at, due)
	case reasonSuperseded:
		known = b.gaveWay(job, due)
	}
	if !known {
		r.add(Starts, "job %s: the reason listed for the start of %s is %q, and the ledger has nothing of the kind", job.Job, when, reason)
	}
}

// lateAfter reports whether the next run after a start was made a second late, or later.
func (a *account) lateAfter(due time.Time) bool {
	var next ledger.Run
	for _, run := range a.runs {
		if run.Due.After(due) && (next.Due.IsZero() || run.Due.Before(next.Due)) {
			next = run
		}
	}
	return next.Started.Sub(next.Due) >= time.Second
}

// gaveWay reports whether there was a run for the run of a start to give way to: that of an
// earlier start, or the later one that it names.
func (b Book) gaveWay(job *account, due time.Time) bool {
	at := b.at(due)
	return b.busy(job, at, at, due) || slices.ContainsFunc(job.byDue[due], func(run ledger.Run) bool {
		if later := run.Superseded.UTC(); later.After(due) {
			return len(job.byDue[later]) > 0
		}
		return b.busy(job, at, b.at(run.Started), due)
	})
}

// stopped reports whether a stop of the job, which was not refused, can have met a run.
func (b Book) stopped(job *account, run ledger.Run) bool {
	s := span{from: b.at(run.Started), to: b.at(run.Ended)}
	if attempts := job.attempts[run.ID]; run.Ended.IsZero() && len(attempts) > 0 {
		s.to = b.spanOf(run, attempts).to + scheduleLag
	} else if run.Ended.IsZero() {
		s.to = s.from + lostTime
	}
	return slices.ContainsFunc(b.Verbs, func(v ledger.Verb) bool {
		return v.Name == "stop" && v.Target == job.Job && !v.Refused() && v.From <= s.to && v.To >= s.from
	})
}
