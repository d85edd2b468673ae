package job

import "time"

// maxRetryWait is the longest wait between two tries of a failing job, unless
// already the first one is longer.
const maxRetryWait = Duration(time.Hour)

// FailureBackoff is the wait between tries of a job that has failed
// PauseAfterFailures times in a row.
func (r Recurring) FailureBackoff() Backoff {
	initial := r.RetryEvery
	if initial == 0 {
		initial = max(r.Period(), Duration(time.Minute))
	}
	return Backoff{Initial: initial, Max: max(initial, maxRetryWait), Coefficient: 2}
}

// NextRun is the start at which a failing job runs again: starts before it are held
// back. The job has failed so many times in a row, the last time at ended. It is zero
// if no start is held back.
//
// The wait is counted from start to start: with a wait of one interval the next start
// runs.
func (r Recurring) NextRun(jobID string, failures int, ended time.Time) time.Time {
	if r.PauseAfterFailures == 0 || failures < r.PauseAfterFailures {
		return time.Time{}
	}
	times, err := r.Times(jobID)
	if err != nil {
		return time.Time{}
	}
	next := times.Next(ended)
	further := r.FailureBackoff().Wait(failures-r.PauseAfterFailures+1) - r.Period().Std()
	if next.IsZero() || further <= 0 {
		return next
	}
	return times.Next(next.Add(further - time.Nanosecond)) // Next is after the time.
}

// IsStart reports whether a start of the job with the id lies at a time, in whole seconds.
// Runs that someone has triggered have other times.
func (r Recurring) IsStart(jobID string, at time.Time) bool {
	times, err := r.Times(jobID)
	return err == nil && times.Next(at.Add(-time.Second)).Equal(at)
}

func (v *validator) failures(r Recurring) {
	path := []string{"recurring", "pause_after_failures"}
	switch {
	case r.PauseAfterFailures > 0 && r.OverlapPolicy() == OverlapAllowAll:
		v.at(path, "runs that overlap have no order, so that none fail in a row: it does not go with overlap allow_all")
	case r.PauseAfterFailures > 0 && r.RecurEvery == MinRecurEvery:
		v.at(path, "a trigger of a job that starts every second cannot be told from a start: recur_every is at least PT2S")
	}
	if r.RetryEvery != 0 && r.PauseAfterFailures == 0 {
		v.atKey([]string{"recurring", "retry_every"}, "retry_every goes with pause_after_failures")
	}
}
