package readmodel

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
)

const (
	// overlap is how far back of the latest run that is known runs are looked for. The list
	// lags by about a second, and the clocks of a cluster differ.
	overlap = 15 * time.Second
	// firstLook is how far back the first look goes: the history has the rest.
	firstLook = time.Minute
	// maxGap is after how long without a look the history is read anew.
	maxGap = 10 * time.Minute
	// maxHistory bounds the runs that are read for it.
	maxHistory = 50_000
	// maxEnded bounds the jobs that ran once, and have ended, that are shown.
	maxEnded = 5000
)

// readRuns looks for runs that have started or ended since the last look, and now and then
// for those that count as under way and are not.
func (r *Reader) readRuns(ctx context.Context) error {
	begin := time.Now()
	r.mu.Lock()
	if begin.Sub(r.state.lastScan) > maxGap {
		r.state.complete, r.state.failures.read = false, false
		r.state.latestSeen = begin.Add(-firstLook)
		for _, j := range r.state.jobs {
			j.starts.facts = nil // It may have been paused meanwhile.
		}
	}
	since := r.state.latestSeen.Add(-overlap)
	r.mu.Unlock()
	if err := r.client.Runs.ScanSince(ctx, since, r.take); err != nil {
		return err //nolint:wrapcheck // It says what it did.
	}
	r.mu.Lock()
	r.state.lastScan = begin
	r.mu.Unlock()
	return nil
}

// take notes a run.
func (r *Reader) take(run client.SeenRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.take(run)
}

// readHistory reads the runs that have ended, the latest first, once.
func (r *Reader) readHistory(ctx context.Context) error {
	r.mu.Lock()
	complete := r.state.complete
	r.mu.Unlock()
	if complete {
		return nil
	}
	if err := r.client.Runs.ScanEnded(ctx, maxHistory, r.take); err != nil {
		return err //nolint:wrapcheck // It says what it did.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.complete = true
	return nil
}

// readOpen lists the runs that are under way. One that counts as such and is not in the
// list was missed, or its history was deleted.
func (r *Reader) readOpen(ctx context.Context) error {
	begin := time.Now()
	open := map[string]bool{}
	if err := r.client.Runs.ScanOpen(ctx, func(run client.SeenRun) {
		open[run.RunID] = true
		r.take(run)
	}); err != nil {
		return err //nolint:wrapcheck // It says what it did.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.state.jobs {
		for _, known := range slices.Clone(j.outcomes.list) {
			if known.open() && !open[known.runID] && known.started < begin.Add(-overlap).UnixNano() {
				j.outcomes.drop(known.runID)
				j.message = nil
				r.state.complete = false // The history has it, if it is still there.
			}
		}
	}
	return nil
}

// readUnscheduled lists the jobs that have no schedule, and forgets those that are gone:
// Temporal keeps what has ended for the retention of the namespace.
func (r *Reader) readUnscheduled(ctx context.Context) error {
	begin := time.Now()
	found := map[string]bool{}
	if err := r.client.Runs.ScanUnscheduled(ctx, maxHistory, func(run client.SeenRun) {
		found[run.JobID] = true
		r.take(run)
	}); err != nil {
		return err //nolint:wrapcheck // It says what it did.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, j := range r.state.jobs {
		if j.own != nil && !found[id] && j.own.Own.Opened.Before(begin.Add(-overlap)) {
			j.own = nil
			if j.schedule == nil {
				delete(r.state.jobs, id)
			}
		}
	}
	r.state.dropEnded()
	return nil
}

// dropEnded leaves out the oldest of the jobs that ran once and have ended.
func (s *state) dropEnded() {
	var ended []*jobState
	for _, j := range s.jobs {
		if j.schedule == nil && j.own != nil && !j.active() && j.own.Mode != job.ModeContinuous {
			ended = append(ended, j)
		}
	}
	if s.dropped = max(0, len(ended)-maxEnded); s.dropped == 0 {
		return
	}
	slices.SortFunc(ended, func(a, b *jobState) int { return cmp.Compare(b.own.Own.Opened.UnixNano(), a.own.Own.Opened.UnixNano()) })
	for _, j := range ended[maxEnded:] {
		delete(s.jobs, j.id)
	}
}

// readSchedules lists the recurring jobs.
func (r *Reader) readSchedules(ctx context.Context) error {
	found := map[string]client.SeenSchedule{}
	if err := r.client.Jobs.ScanSchedules(ctx, func(s client.SeenSchedule) { found[s.ID] = s }); err != nil {
		return err //nolint:wrapcheck // It says what it did.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, s := range found {
		j := r.state.job(id)
		if j.schedule == nil || j.schedule.Schedule.Paused != s.Schedule.Paused || j.schedule.DefinitionHash != s.DefinitionHash || !s.SameSkips(j.schedule) {
			j.starts.changed(firstOf(s.Schedule.Next))
		}
		if j.schedule == nil || !sameSchedule(*j.schedule, s) {
			if j.schedule == nil || j.schedule.Schedule.Paused != s.Schedule.Paused || j.schedule.DefinitionHash != s.DefinitionHash {
				r.state.drift.suspect(id)
			}
			j.schedule, j.message = &s, nil
		} else {
			j.schedule = &s // Its skips are other ones, perhaps.
		}
	}
	for id, j := range r.state.jobs {
		if _, ok := found[id]; !ok && j.schedule != nil {
			j.schedule, j.message = nil, nil
			r.state.drift.suspect(id)
		}
	}
	return nil
}

// firstOf is the first of some times, zero if there is none.
func firstOf(times []time.Time) time.Time {
	if len(times) == 0 {
		return time.Time{}
	}
	return times[0]
}

// sameSchedule reports whether lists show no difference.
func sameSchedule(a, b client.SeenSchedule) bool {
	x, y := a.Schedule, b.Schedule
	return x.Paused == y.Paused && x.PauseReason == y.PauseReason && x.PauseEnd.Equal(y.PauseEnd) &&
		slices.EqualFunc(x.Next, y.Next, time.Time.Equal) && x.LastRun == y.LastRun &&
		a.DefinitionHash == b.DefinitionHash && a.Owner == b.Owner && a.Provider == b.Provider && a.Type == b.Type
}
