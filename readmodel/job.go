package readmodel

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// jobState is what is known of a job.
type jobState struct {
	id string
	// schedule is set of a recurring job.
	schedule *client.SeenSchedule
	// own is set of a job whose workflow bears its id, as the latest one has it.
	own    *client.Facts
	loop   loopState
	looked looked

	outcomes outcomes
	// ended is the latest run that tells whether a recurring job is failing.
	ended client.LatestEnd
	// definition is that of the latest run that carries one.
	definition  *job.Job
	definedBy   string // its hash
	definedAt   time.Time
	starts      starts
	lastSuccess time.Time
	failed      failedRun
	// known is since when the job is known.
	known time.Time

	// message is what was made of it last; nil if something has changed since.
	message *jobsv1.JobOverview
	// waiting is the item of the job that waits in a queue, nil if none does.
	waiting *waitingItem
	// unserved is why no live worker can have taken the run under way, and under says that
	// there is one, as the message has it.
	unserved string
	under    bool
}

// job gives the state of a job, which is made if there is none.
func (s *state) job(id string) *jobState {
	j := s.jobs[id]
	if j == nil {
		j = &jobState{id: id}
		s.jobs[id] = j
	}
	return j
}

// take notes a run, or the workflow of a continuous job.
func (s *state) take(run client.SeenRun) {
	j := s.job(run.JobID)
	j.message = nil
	if run.Opened.After(s.latestSeen) {
		s.latestSeen = run.Opened
	}
	if run.Closed.After(s.latestSeen) {
		s.latestSeen = run.Closed
	}
	if run.Own && !run.ContinuedAsNew && (j.own == nil || !run.Opened.Before(j.own.Own.Opened)) {
		facts := run.Facts()
		if j.own == nil || j.own.Own.Status != run.Status || j.own.Own.RunID != run.RunID || !sameFailing(j.own.Failing, facts.Failing) {
			j.loop.asked, j.looked = time.Time{}, looked{} // Something has happened: it is asked at once.
		}
		j.own = &facts
	}
	if !run.Loop {
		j.outcomes.take(run.Run, run.DefinitionHash)
		j.takeFailed(run)
		s.failures.take(run)
		s.takeEnded(run)
		j.ended.Take(run)
		if run.Status == client.RunCompleted && run.Ended.After(j.lastSuccess) {
			j.lastSuccess = run.Ended
		}
	}
	j.define(run)
}

func sameFailing(a, b *contract.Failing) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// define notes the definition of a run. Most runs have the one that is known already.
func (j *jobState) define(run client.SeenRun) {
	if run.DefinitionHash == "" || run.Opened.Before(j.definedAt) {
		return
	}
	if run.DefinitionHash != j.definedBy {
		if definition, ok := run.Definition(); ok {
			definition.Spec = nil // It may be large.
			j.definition, j.definedBy = &definition, run.DefinitionHash
			j.starts.define(&definition)
		}
	}
	j.definedAt = run.Opened
}

// active reports whether the job is on schedule or under way.
func (j *jobState) active() bool {
	if j.schedule != nil {
		return true
	}
	return j.own != nil && j.own.Own.Status.Open()
}

// shown reports whether there is a job, and not just runs of one that there was.
func (j *jobState) shown() bool { return j.schedule != nil || j.own != nil }

func (j *jobState) typeName() string {
	if j.schedule != nil {
		return j.schedule.Type
	}
	return j.own.Type
}

// bind are the tags that the job asks for, as far as a run has told.
func (j *jobState) bind() map[string]string {
	if j.definition == nil || j.schedule != nil && j.schedule.DefinitionHash != j.definedBy {
		return nil
	}
	return j.definition.Options.Bind
}

// facts are what is known of the job.
func (j *jobState) facts() client.Facts {
	var facts client.Facts
	switch {
	case j.schedule != nil:
		facts = j.schedule.Facts
		facts.Failing, facts.Run, facts.Latest = j.ended.Failing(facts.DefinitionHash), j.outcomes.latestOpen(), j.outcomes.latest()
	case j.own != nil:
		facts = *j.own
	}
	facts.Bind = j.bind()
	if j.waiting != nil {
		facts.Wait(j.waiting.queue, j.waiting.item)
	}
	switch {
	case facts.Run != nil && facts.Run.RunID == j.looked.run, facts.Schedule == nil && facts.Own != nil && facts.Own.RunID == j.looked.run:
		facts.Look = j.looked.look
	}
	return facts
}

// overview is the message of the job, nil if there is no such job any more. Complete says
// that all its latest runs are known.
func (j *jobState) overview(s *state, now time.Time) *jobsv1.JobOverview {
	if !j.shown() && j.waiting == nil {
		return nil
	}
	facts := j.facts()
	_, under := facts.UnderWay(now)
	if under && s.workersRead {
		facts.Serve(s.services)
	}
	if s.complete && j.starts.update(j, s.lastScan) || j.under != under || j.unserved != facts.Unserved {
		j.message = nil
	}
	if j.message != nil {
		return j.message
	}
	row := facts.Row(now)
	m := rowMessage(row)
	if m.GetFailing() != nil {
		m.Failing.Run = j.failedName()
	}
	m.LastSuccessTime = Timestamp(j.lastSuccess)
	m.Bind = facts.Bind
	if times := j.recurring(); times != nil {
		m.Schedule = times.Words(j.id)
	}
	var median time.Duration
	if row.Mode == job.ModeContinuous {
		m.Service = j.loop.service
		m.Outcomes, m.Durations, median = j.loop.outcomes(under)
		if j.loop.lastSuccess.After(j.lastSuccess) {
			m.LastSuccessTime = Timestamp(j.loop.lastSuccess)
		}
	} else {
		median = j.outcomes.median()
		m.Outcomes, m.Durations = j.outcomes.text(j.starts.missed, median)
	}
	if median > 0 {
		m.MedianDuration = durationpb.New(median)
	}
	if row.WaitReason != "" {
		m.Outcomes = withWaits(m.Outcomes, facts)
	}
	j.addLimits(m, now)
	j.message, j.under, j.unserved = m, under, facts.Unserved
	return m
}

// recurring is when the job starts, nil if no run has told.
func (j *jobState) recurring() *job.Recurring {
	if j.definition == nil || j.schedule == nil || j.schedule.DefinitionHash != j.definedBy {
		return nil
	}
	return j.definition.Recurring
}

// medianOf is 0 if there are none.
func medianOf(durations []time.Duration) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	return durations[len(durations)/2]
}
