package job

import "time"

// maxProbeWait is the longest wait between two tries of a job that was paused
// after failures, unless already the first one is longer.
const maxProbeWait = Duration(time.Hour)

// ProbeBackoff is the wait between tries of a job that was paused after failures.
func (r Recurring) ProbeBackoff() Backoff {
	initial := r.ProbeEvery
	if initial == 0 {
		initial = max(r.Period(), Duration(time.Minute))
	}
	return Backoff{Initial: initial, Max: max(initial, maxProbeWait), Coefficient: 2}
}

func (v *validator) failurePause(r Recurring) {
	path := []string{"recurring", "pause_after_failures"}
	switch {
	case r.PauseAfterFailures < 0:
		v.at(path, "%d is negative; 0 means never", r.PauseAfterFailures)
	case r.PauseAfterFailures > 0 && r.OverlapPolicy() == OverlapAllowAll:
		v.at(path, "runs that overlap have no order, so that none fail in a row: it does not go with overlap allow_all")
	}
	if r.ProbeEvery == 0 {
		return
	}
	path = []string{"recurring", "probe_every"}
	if r.PauseAfterFailures == 0 {
		v.atKey(path, "probe_every goes with pause_after_failures")
	}
	v.atLeast(path, r.ProbeEvery, MinProbeEvery)
}
