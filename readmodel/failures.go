package readmodel

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const (
	// FailuresFor is how far back runs that failed are grouped.
	FailuresFor = 24 * time.Hour
	// maxFailures bounds these runs: the latest are kept.
	maxFailures = 5000
	// maxFailureJobs bounds the jobs that a group names.
	maxFailureJobs = 10
)

// failedRuns are the runs that failed lately, by run id.
type failedRuns struct {
	runs map[string]failure
	// read says that those were read that had failed before the reader began, or since the last
	// gap in its scans.
	read bool
	// since is when the oldest failed of those that are kept, once there were too many.
	since time.Time
}

// failure is a run that failed.
type failure struct {
	failureKind
	run   string // its name
	jobID string
	ended time.Time
	error string
}

// take notes a run that failed.
func (f *failedRuns) take(run client.SeenRun) {
	if run.Loop || FailureOf(run.Run) == "" {
		return
	}
	if _, known := f.runs[run.RunID]; known {
		return
	}
	text := errorOf(run.Run)
	f.runs[run.RunID] = failure{
		failureKind: kindOf(run.JobID, run.Type, run.Class, text), run: RunName(run.RunRef), jobID: run.JobID, ended: run.Ended, error: text,
	}
	if len(f.runs) > maxFailures+maxFailures/10 {
		f.drop(time.Now())
	}
}

// drop forgets what is too old, and the oldest of too many. It gives the rest, the latest first.
func (f *failedRuns) drop(now time.Time) []failure {
	maps.DeleteFunc(f.runs, func(_ string, one failure) bool { return now.Sub(one.ended) > FailuresFor })
	ids := slices.SortedFunc(maps.Keys(f.runs), func(a, b string) int {
		return cmp.Or(f.runs[b].ended.Compare(f.runs[a].ended), strings.Compare(a, b))
	})
	kept := make([]failure, 0, len(ids))
	for n, id := range ids {
		if n < maxFailures {
			kept = append(kept, f.runs[id])
			continue
		}
		f.since = later(f.since, kept[maxFailures-1].ended)
		delete(f.runs, id)
	}
	return kept
}

// readFailures reads the runs that have failed lately, once: the others are seen as they end.
func (r *Reader) readFailures(ctx context.Context) error {
	r.mu.Lock()
	read := r.state.failures.read
	r.mu.Unlock()
	if read {
		return nil
	}
	if err := r.client.Runs.ScanFailed(ctx, time.Now().Add(-FailuresFor), maxFailures, r.take); err != nil {
		return err //nolint:wrapcheck // It says what it did.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.failures.read = true
	return nil
}

// Failures groups the runs that have failed since a time, and the continuous jobs that fail now.
// Zero means since [FailuresFor] ago. The latest group comes first. From is since when all are
// counted.
func (r *Reader) Failures(since, now time.Time) (groups []*jobsv1.FailureGroup, from time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.state
	kept := s.failures.drop(now)
	from = later(later(since, now.Add(-FailuresFor)), s.failures.since)
	g := grouping{state: s, groups: map[failureKind]*failureGroup{}}
	for _, one := range kept {
		if !one.ended.Before(from) {
			g.add(one, 1, one.ended)
		}
	}
	for id, j := range s.jobs {
		if f := j.message.GetFailing(); f != nil && j.loops() {
			failed := failure{kindOf(id, j.typeName(), f.GetErrorClass(), f.GetErrorMessage()), f.GetRun(), id, time.Time{}, f.GetErrorMessage()}
			g.add(failed, j.loop.failedInARow(), timeOrZero(f.GetSince()))
		}
	}
	for _, group := range g.groups {
		groups = append(groups, group.finish())
	}
	slices.SortFunc(groups, func(a, b *jobsv1.FailureGroup) int {
		return cmp.Or(lastOf(b).Compare(lastOf(a)), cmp.Compare(b.GetFailures(), a.GetFailures()), strings.Compare(a.GetName(), b.GetName()))
	})
	return groups, from
}

// lastOf is when a group failed last. One that fails now is the latest.
func lastOf(g *jobsv1.FailureGroup) time.Time {
	if g.GetLastTime() == nil {
		return time.Unix(1<<40, 0)
	}
	return g.GetLastTime().AsTime()
}

// grouping groups failures.
type grouping struct {
	state  *state
	groups map[failureKind]*failureGroup
}

// failureGroup is a group in the making.
type failureGroup struct {
	*jobsv1.FailureGroup
	ids    map[string]bool // of its jobs
	failed int32           // jobs whose latest run is one of it
	now    bool            // a continuous job fails so now
}

// add adds a failure to its group: the latest of a group comes first.
func (g grouping) add(one failure, failures int32, first time.Time) {
	group := g.groups[one.failureKind]
	if group == nil {
		group = &failureGroup{ids: map[string]bool{}, FailureGroup: &jobsv1.FailureGroup{
			Name: one.name(), JobType: one.jobType, ErrorClass: one.class, Text: one.text,
			LastTime: Timestamp(one.ended), Run: one.run, ErrorMessage: one.error,
		}}
		if class, listed := errclass.Find(one.class); listed {
			group.Cure = class.Cure
		}
		g.groups[one.failureKind] = group
	}
	group.Failures += failures
	group.now = group.now || one.ended.IsZero()
	if group.GetFirstTime() == nil || first.Before(group.GetFirstTime().AsTime()) {
		group.FirstTime = timestamppb.New(first)
	}
	if !group.ids[one.jobID] {
		group.ids[one.jobID] = true
		if j := g.state.jobs[one.jobID]; j != nil && !one.ended.IsZero() && j.failedLast(one.run) {
			group.failed++
		}
	}
}

// finish is the group.
func (g *failureGroup) finish() *jobsv1.FailureGroup {
	ids := slices.Sorted(maps.Keys(g.ids))
	g.Jobs, g.JobIds, g.FailedJobs = int32(len(ids)), ids[:min(len(ids), maxFailureJobs)], g.failed //nolint:gosec // Jobs of a process.
	if g.now {
		g.LastTime = nil
	}
	return g.FailureGroup
}

// failedRun is the latest run of a job that failed by itself.
type failedRun struct {
	client.RunRef
	ended time.Time
}

// takeFailed notes a run, if it failed.
func (j *jobState) takeFailed(run client.SeenRun) {
	if !run.Loop && FailureOf(run.Run) != "" && !run.Ended.Before(j.failed.ended) {
		j.failed = failedRun{run.RunRef, run.Ended}
	}
}

// failedName names the latest run that failed, the iteration, or the run that fails while it is
// under way. It is empty if none is known.
func (j *jobState) failedName() string {
	switch {
	case j.schedule != nil && j.failed.WorkflowID != "":
		return RunName(j.failed.RunRef)
	case j.schedule != nil || j.own == nil:
		return ""
	case j.own.Mode != job.ModeContinuous:
		return RunName(j.own.Own.RunRef)
	}
	for _, it := range slices.Backward(j.loop.iterations) {
		if it.letter == failed {
			return IterationName(j.id, it.number)
		}
	}
	return ""
}

// failedLast reports whether the latest run that tells how the job does is the one of the name.
func (j *jobState) failedLast(run string) bool {
	if j.schedule == nil {
		return j.own != nil && !j.active() && RunName(j.own.Own.RunRef) == run
	}
	for _, known := range slices.Backward(j.outcomes.list) {
		if known.letter != heldBack && known.letter != superseded {
			return j.failed.RunID == known.runID && RunName(j.failed.RunRef) == run
		}
	}
	return false
}

// failedInARow counts the latest iterations that failed; one failed, or the job would not fail.
func (l *loopState) failedInARow() int32 {
	var n int32
	for _, it := range slices.Backward(l.iterations) {
		if it.letter != failed {
			break
		}
		n++
	}
	return max(n, 1)
}
