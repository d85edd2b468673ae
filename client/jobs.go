package client

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// JobStatus is the status of a job.
type JobStatus string

// The statuses of a job.
const (
	JobScheduled JobStatus = "scheduled" // recurring, waits for its time
	JobRunning   JobStatus = "running"   // a run is under way, or a continuous job
	JobFailing   JobStatus = "failing"   // recurring or continuous: its latest runs or iterations failed
	JobPaused    JobStatus = "paused"
	// JobWaiting: queued, not its turn yet; one-shot, not its time yet; or WaitReason says
	// what its run under way waits for.
	JobWaiting   JobStatus = "waiting"
	JobCompleted JobStatus = "completed"
	JobFailed    JobStatus = "failed"
	JobStopped   JobStatus = "stopped" // stopped or canceled
	// JobTerminated says that someone ended its run or loop over the handler's head.
	JobTerminated JobStatus = "terminated"
	// JobDeleted says of a continuous job that it was stopped since it is no longer declared.
	JobDeleted JobStatus = "deleted"
	// JobCanceling says that the run under way was asked to stop, and has not ended.
	JobCanceling JobStatus = "canceling"
)

// JobRow is a job in a list.
type JobRow struct {
	ID          string       `json:"id"`
	Type        string       `json:"type"`
	Mode        job.Mode     `json:"mode"`
	Status      JobStatus    `json:"status"`
	Queue       string       `json:"queue,omitempty"`
	Owner       string       `json:"owner,omitempty"`
	Provider    job.Provider `json:"provider"`
	PauseReason string       `json:"pause_reason,omitempty"`
	// PauseEnd is when the pause ends by itself.
	PauseEnd time.Time `json:"pause_end,omitzero"`
	// Failing is set of a recurring or continuous job whose latest runs or iterations
	// failed, also while it is paused.
	Failing *contract.Failing `json:"failing,omitempty"`
	// Tags are those of the definition; of recurring jobs a list only has them if
	// they were asked for.
	Tags map[string]string `json:"tags,omitempty"`
	// LastStart is the start of the latest run, or of a continuous job's loop. Runs of a
	// recurring job that its schedule has not started count while they are under way.
	LastStart time.Time `json:"last_start,omitzero"`
	// Next is when a recurring job is due, or one that was started for later. Starts
	// of a failing job that are held back do not count.
	Next time.Time `json:"next,omitzero"`
	// Ended is the end of the latest run of a job that runs once, or of a continuous job.
	Ended time.Time `json:"ended,omitzero"`
	// Class and Error say why a job that runs once has failed.
	Class string `json:"class,omitempty"`
	Error string `json:"error,omitempty"`
	// StopReason says why a continuous job was stopped or deleted.
	StopReason string `json:"stop_reason,omitempty"`
	// WaitReason says what the run of the job waits for.
	WaitReason string `json:"wait_reason,omitempty"`
	// Reason says why the job is in its status: one of the above.
	Reason string `json:"reason,omitempty"`
	// UnderWay says that a run has not ended, or that a continuous job is neither paused nor
	// stopped. LatestRun is the status of the latest run that did something.
	UnderWay  bool      `json:"under_way,omitempty"`
	LatestRun RunStatus `json:"latest_run,omitempty"`
}

func (row *JobRow) reason() string {
	switch row.Status {
	case JobPaused:
		return contract.PauseText(row.PauseReason, row.PauseEnd)
	case JobFailing:
		return errorText(row.Failing.Class, row.Failing.Error)
	default:
		return cmp.Or(errorText(row.Class, row.Error), row.StopReason, row.WaitReason)
	}
}

// errorText is an error with its class.
func errorText(class, message string) string {
	if class == "" || message == "" {
		return class + message
	}
	return class + ": " + message
}

// HasEnded reports whether nothing more comes of the job unless someone starts it again: it runs
// once and has, or it was deleted. One that failed needs someone to look at it.
func (row *JobRow) HasEnded() bool {
	switch row.Status {
	case JobDeleted:
		return true
	case JobCompleted, JobStopped, JobTerminated:
		return row.Mode == job.ModeOneShot || row.Mode == job.ModeQueued
	default:
		return false
	}
}

// JobFilter narrows a list of jobs. Empty fields do not.
type JobFilter struct {
	Type   string
	Mode   job.Mode
	Status JobStatus
	Owner  string
	Queue  string
	// Tags are those that a job has, all of them; "" stands for any value.
	Tags map[string]string
}

func (f JobFilter) matches(row JobRow) bool {
	return (f.Type == "" || f.Type == row.Type) &&
		(f.Mode == "" || f.Mode == row.Mode) &&
		(f.Status == "" || f.Status == row.Status) &&
		(f.Owner == "" || f.Owner == row.Owner) &&
		(f.Queue == "" || f.Queue == row.Queue)
}

// List lists the jobs that Temporal knows, by id: all recurring ones, and the
// others as long as their latest run is within the namespace's retention. The
// list is eventually consistent, by about a second. The second result names
// queues whose waiting items could not be read since no worker is alive.
func (c *JobClient) List(ctx context.Context, filter JobFilter) ([]JobRow, []string, error) {
	jobs, err := c.scan(ctx, "", unscheduled+" OR ("+openScheduledRuns+")", true)
	if err != nil {
		return nil, nil, err
	}
	unread, err := c.addWaiting(ctx, jobs)
	if err == nil {
		err = c.serve(ctx, slices.Collect(maps.Values(jobs))...)
	}
	if err == nil {
		err = c.lookAtOpen(ctx, jobs)
	}
	if err != nil {
		return nil, nil, err
	}
	var list []JobRow
	for _, row := range rowsOf(jobs) {
		if filter.matches(row) {
			list = append(list, row)
		}
	}
	if len(filter.Tags) > 0 {
		list, err = c.withTags(ctx, list, filter.Tags)
	}
	return list, unread, err
}

// rowsOf gives the rows of jobs, by id, without those of which nothing but runs is left.
func rowsOf(jobs map[string]*Facts) []JobRow {
	now := time.Now()
	var rows []JobRow
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		if jobs[id].known() {
			rows = append(rows, jobs[id].Row(now))
		}
	}
	return rows
}

// JobDetail is a job with all that is known of it.
type JobDetail struct {
	Row  JobRow  `json:"status"`
	Job  job.Job `json:"definition"`
	Hash string  `json:"definition_hash"`
	// Next are the coming starts of a recurring job.
	Next []time.Time `json:"next,omitempty"`
	// Continuous is the state of a continuous job that a worker answers for.
	Continuous *contract.ContinuousState `json:"continuous,omitempty"`
	// Ahead is how many items run before a waiting queued job.
	Ahead int `json:"ahead,omitempty"`
	// Runs are the latest runs, the latest first.
	Runs []Run `json:"runs,omitempty"`
	// Note says what could not be found out.
	Note string `json:"note,omitempty"`
	// Live is what the detail was read from.
	Live *Live `json:"-"`
}

// describedRuns is how many runs Job lists.
const describedRuns = 10

// Get describes a job.
func (c *JobClient) Get(ctx context.Context, jobID string) (*JobDetail, error) {
	live, err := c.Live(ctx, jobID)
	if err != nil {
		return nil, err
	}
	detail := &JobDetail{Job: live.Job, Hash: live.DefinitionHash, Live: live}
	if detail.Runs, err = c.listRuns(ctx, RunFilter{JobID: jobID, Limit: describedRuns}); err != nil {
		return nil, err
	}
	facts := live.facts(detail.Runs)
	if live.Schedule != nil {
		if facts.Failing, err = c.failingSchedule(ctx, live); err != nil {
			return nil, err
		}
		if !live.Paused {
			detail.Next = notBefore(facts.Failing, live.Next())
		}
	}
	if at, ok := facts.UnderWay(time.Now()); ok && live.described == nil {
		if facts.Look, err = c.lookAt(ctx, at); err != nil {
			return nil, err
		}
	} else if ok {
		facts.Look = lookOf(live.described)
	}
	if facts.Look != nil && !facts.Look.Taken {
		if err := c.serve(ctx, &facts); err != nil {
			return nil, err
		}
	}
	detail.Row = facts.Row(time.Now())
	if live.loops() {
		detail.Continuous, err = c.continuousState(ctx, jobID)
		if errors.Is(err, ErrNoWorker) {
			detail.Note = err.Error()
		} else if err != nil {
			return nil, err
		}
	}
	if live.Unanswered != nil {
		detail.Note = live.Unanswered.Error()
	}
	if live.Waiting != nil {
		if state, err := c.queues().State(ctx, live.Waiting.Job.Queue()); err == nil {
			detail.Ahead, _ = state.Position(live.Waiting.Sequence)
		}
	}
	return detail, nil
}

// notBefore leaves out the starts that are held back.
func notBefore(failing *contract.Failing, starts []time.Time) []time.Time {
	if failing == nil || failing.NextRun.IsZero() {
		return starts
	}
	starts = slices.DeleteFunc(starts, failing.NextRun.After)
	if len(starts) == 0 {
		return []time.Time{failing.NextRun} // Later than the server looks ahead.
	}
	return starts
}

func (c *conn) continuousState(ctx context.Context, jobID string) (*contract.ContinuousState, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	state, err := queryState[contract.ContinuousState](ctx, c, contract.JobWorkflowID(jobID), "", true)
	return state, explain("state of job "+jobID, err)
}
