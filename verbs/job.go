package verbs

import jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"

// Modes of a job, as JobOverview has them.
const (
	OneShot    = "one_shot"
	Recurring  = "recurring"
	Continuous = "continuous"
	Queued     = "queued"
)

// JobState is what decides on the verbs of a job.
type JobState struct {
	Mode   string
	Status jobsv1.JobStatus
	// UnderWay says that a run has not ended.
	UnderWay bool
}

// OfJob is what decides on the verbs of a job, and of its latest run.
func OfJob(j *jobsv1.Job) Subject {
	mode := OneShot
	switch {
	case j.GetRecurring() != nil:
		mode = Recurring
	case j.GetContinuous() != nil:
		mode = Continuous
	case j.GetQueued() != nil:
		mode = Queued
	}
	return ofState(mode, j.GetState())
}

// OfOverview is the same of a job of the overview.
func OfOverview(j *jobsv1.JobOverview) Subject { return ofState(j.GetMode(), j) }

// jobFacts are what messages say of a job.
type jobFacts interface {
	GetStatus() jobsv1.JobStatus
	GetUnderWay() bool
	GetLatestRunStatus() jobsv1.RunStatus
}

func ofState(mode string, j jobFacts) Subject {
	return Subject{
		Job: JobState{Mode: mode, Status: j.GetStatus(), UnderWay: j.GetUnderWay()},
		Run: j.GetLatestRunStatus(), Iteration: mode == Continuous,
	}
}

// over reports whether a job has ended: a continuous one is started by a restart, one that runs once by
// another run.
func (j JobState) over() bool {
	switch j.Status {
	case jobsv1.JobStatus_JOB_STATUS_COMPLETED, jobsv1.JobStatus_JOB_STATUS_FAILED, jobsv1.JobStatus_JOB_STATUS_STOPPED,
		jobsv1.JobStatus_JOB_STATUS_TERMINATED, jobsv1.JobStatus_JOB_STATUS_DELETED:
		return true
	}
	return false
}

func (j JobState) paused() bool { return j.Status == jobsv1.JobStatus_JOB_STATUS_PAUSED }

// JobVerbs are the verbs of jobs.
func JobVerbs() []*Verb {
	return []*Verb{RunJob, SkipNextStart, RestartJob, PauseJob, ResumeJob, StopJob, BackfillJob}
}

// ofJob is what was done to a job.
func ofJob(a Args, result string) Done {
	return Done{Text: "Job " + a.object() + ": " + result, Result: result}
}

// noted is a result with a note on what was before.
func noted(result, note string) string {
	if note == "" {
		return result
	}
	return result + "; " + note
}

// already is the note on a pause beside others.
func already(before string) string {
	if before == "" {
		return ""
	}
	return "it was paused already: " + before
}
