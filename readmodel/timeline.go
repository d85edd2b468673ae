package readmodel

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/client"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// maxComing bounds the starts to come of a job on a timeline.
const maxComing = 100

// Timeline is when the jobs ran between two times, and when they are due.
func (r *Reader) Timeline(since, until time.Time) []*jobsv1.JobTimeline {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []*jobsv1.JobTimeline
	for _, id := range slices.Sorted(maps.Keys(r.state.jobs)) {
		j := r.state.jobs[id]
		if !j.shown() {
			continue
		}
		line := &jobsv1.JobTimeline{Id: id}
		if j.loops() {
			line.Runs, line.KeptSinceTime = j.loop.runs(since, until)
		} else {
			line.Runs, line.KeptSinceTime = j.outcomes.timeline(since, until)
		}
		for at := range j.coming(now, until) {
			if !at.Before(since) {
				line.NextStartTimes = append(line.NextStartTimes, timestamppb.New(at))
			}
		}
		if len(line.GetRuns()) > 0 || len(line.GetNextStartTimes()) > 0 || line.GetKeptSinceTime().AsTime().After(since) {
			lines = append(lines, line)
		}
	}
	return lines
}

// statuses are what letters stand for. Others than a list of them know of a run is being canceled.
var statuses = func() map[byte]jobsv1.RunStatus {
	all := map[byte]jobsv1.RunStatus{}
	for status, letter := range letters {
		if status != client.RunCanceling {
			all[letter] = EnumOf[jobsv1.RunStatus](status)
		}
	}
	return all
}()

// spanned is a run on a timeline, nil if it was over before a time, or began after another.
func spanned(letter byte, start time.Time, took time.Duration, since, until time.Time) *jobsv1.TimelineRun {
	run := &jobsv1.TimelineRun{Status: statuses[letter], StartTime: timestamppb.New(start)}
	end := start.Add(took)
	if letter == running || letter == waiting {
		end = until
	} else {
		run.EndTime = timestamppb.New(end)
	}
	if end.Before(since) || start.After(until) {
		return nil
	}
	return run
}

// timeline are the runs between two times, and since when all are kept.
func (o *outcomes) timeline(since, until time.Time) (runs []*jobsv1.TimelineRun, kept *timestamppb.Timestamp) {
	for _, known := range o.list {
		if run := spanned(known.letter, time.Unix(0, known.started), time.Duration(known.took), since, until); run != nil {
			runs = append(runs, run)
		}
	}
	if len(o.list) >= maxOutcomes {
		kept = timestamppb.New(time.Unix(0, o.list[0].started))
	}
	return runs, kept
}

// runs are the iterations between two times, and since when all are kept.
func (l *loopState) runs(since, until time.Time) (runs []*jobsv1.TimelineRun, kept *timestamppb.Timestamp) {
	for _, it := range l.iterations {
		if run := spanned(it.letter, it.start, it.took, since, until); run != nil {
			runs = append(runs, run)
		}
	}
	if n := len(l.iterations); n > 0 && l.iterations[0].number > 1 {
		kept = timestamppb.New(l.iterations[0].start)
	}
	return runs, kept
}

// coming gives the starts after now up to a time, those aside that do nothing: of a paused
// job, and those that are held back.
func (j *jobState) coming(now, until time.Time) func(yield func(time.Time) bool) {
	return func(yield func(time.Time) bool) {
		if j.schedule == nil || j.schedule.Schedule.Paused {
			return
		}
		facts := j.facts()
		if facts.Failing != nil && facts.Failing.NextRun.After(now) {
			now = facts.Failing.NextRun.Add(-time.Nanosecond)
		}
		starts := slices.Values(j.schedule.Schedule.Next) // Until a run has told the definition.
		if j.starts.times != nil && j.schedule.DefinitionHash == j.definedBy {
			starts = j.starts.times.After(now)
		}
		given := 0
		for at := range starts {
			if at.Before(now) {
				continue
			}
			if given++; at.After(until) || given > maxComing || !yield(at) {
				return
			}
		}
	}
}
