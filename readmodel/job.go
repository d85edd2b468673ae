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
	own       *client.JobRow
	ownOpened time.Time
	ownRunID  string
	loop      loopState
	// blocked is why the run of a teardown does not go on, nil if it does.
	blocked *contract.Failing

	outcomes outcomes
	// ended is the latest run that tells whether a recurring job is failing.
	ended endedRun
	// definition is that of the latest run that carries one.
	definition  *job.Job
	definedBy   string // its hash
	definedAt   time.Time
	starts      starts
	lastSuccess time.Time
	// known is since when the job is known.
	known time.Time

	// message is what was made of it last; nil if something has changed since.
	message *jobsv1.JobOverview
	// waited says that the message is of a job that waits in a queue.
	waited bool
}

// endedRun is a run of a recurring job that has ended, and the failures that it left.
type endedRun struct {
	opened     time.Time
	definition string
	left       *contract.Failing
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
	if run.Own && !run.ContinuedAsNew && !run.Opened.Before(j.ownOpened) {
		row := run.Row()
		if j.own == nil || j.own.Status != row.Status || j.ownRunID != run.RunID {
			j.loop.asked = time.Time{} // Something has happened: it is asked at once.
		}
		j.own, j.ownOpened, j.ownRunID = &row, run.Opened, run.RunID
	}
	if !run.Loop {
		j.outcomes.take(run.Run, run.DefinitionHash)
		j.takeEnd(run)
		if run.Status == client.RunCompleted && run.Ended.After(j.lastSuccess) {
			j.lastSuccess = run.Ended
		}
	}
	j.define(run)
}

// takeEnd notes whether the run leaves the job failing. Runs that were terminated leave
// what was before.
func (j *jobState) takeEnd(run client.SeenRun) {
	switch run.Status {
	case client.RunCompleted, client.RunFailed, client.RunCanceled, client.RunHeldBack, client.RunSuperseded:
	default:
		return
	}
	if run.Mode == job.ModeRecurring && !run.Opened.Before(j.ended.opened) {
		j.ended = endedRun{opened: run.Opened, definition: run.DefinitionHash, left: run.Left}
	}
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

// active says that the job is on schedule or under way.
func (j *jobState) active() bool {
	if j.schedule != nil {
		return true
	}
	if j.own == nil {
		return false
	}
	switch j.own.Status {
	case client.JobRunning, client.JobFailing, client.JobPaused, client.JobWaiting:
		return true
	default:
		return false
	}
}

// shown says that there is a job, and not just runs of one that there was.
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

// row is the job as a list has it.
func (j *jobState) row() client.JobRow {
	if j.schedule == nil {
		row := *j.own
		if j.loop.progresses && row.Status == client.JobFailing {
			row.Status, row.Failing = client.JobRunning, nil
		}
		if j.blocked != nil && row.Status == client.JobRunning {
			row.Status, row.Failing = client.JobFailing, j.blocked
		}
		return row
	}
	row := j.schedule.JobRow
	if j.ended.left != nil && j.ended.definition == j.schedule.DefinitionHash {
		row.ShowAs(j.ended.left)
	}
	if latest := j.outcomes.latest(); latest.After(row.LastStart) {
		row.LastStart = latest
	}
	return row
}

// overview is the message of the job, nil if there is no such job any more. Waiting is how
// it waits in a queue, if it does. Known is the time up to which all its latest runs are known, zero if they are not.
func (j *jobState) overview(waiting client.JobRow, waits bool, known, now time.Time) *jobsv1.JobOverview {
	if !j.shown() && !waits {
		return nil
	}
	if !known.IsZero() && j.starts.update(j, known) || j.waited != waits {
		j.message = nil
	}
	if j.message != nil {
		return j.message
	}
	row := waiting
	if !waits || j.schedule != nil || j.own != nil && j.own.Status == client.JobRunning {
		row = j.row()
	}
	m := rowMessage(row)
	m.LastSuccessTime = Timestamp(j.lastSuccess)
	m.Bind = j.bind()
	if row.Mode == job.ModeContinuous {
		m.Service = j.loop.service
		m.Outcomes, m.MedianDuration = j.loop.outcomes(row)
		if j.loop.lastSuccess.After(j.lastSuccess) {
			m.LastSuccessTime = Timestamp(j.loop.lastSuccess)
		}
	} else {
		m.Outcomes, m.MedianDuration = j.outcomes.text(j.starts.missed), j.outcomes.median()
	}
	j.addLimits(m, now)
	j.message, j.waited = m, waits
	return m
}

// medianOf is on the wire, nil if there is none.
func medianOf(durations []time.Duration) *durationpb.Duration {
	if len(durations) == 0 {
		return nil
	}
	slices.Sort(durations)
	return durationpb.New(durations[len(durations)/2])
}
