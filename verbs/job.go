package verbs

import jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"

// Modes of a job, as JobOverview has them.
const (
	OneShot    = "one_shot"
	Recurring  = "recurring"
	Continuous = "continuous"
	Queued     = "queued"
)

// Job is what decides on the verbs of a job.
type Job struct {
	Mode   string
	Status jobsv1.JobStatus
}

// OfJob is what decides on the verbs of a job.
func OfJob(j *jobsv1.Job) Job {
	mode := OneShot
	switch {
	case j.GetRecurring() != nil:
		mode = Recurring
	case j.GetContinuous() != nil:
		mode = Continuous
	case j.GetQueued() != nil:
		mode = Queued
	}
	return Job{Mode: mode, Status: j.GetState().GetStatus()}
}

// OfOverview is what decides on the verbs of a job of the overview.
func OfOverview(j *jobsv1.JobOverview) Job { return Job{Mode: j.GetMode(), Status: j.GetStatus()} }

// over says that a job has ended: a continuous one is started by a restart, one that runs once by
// another run.
func (j Job) over() bool {
	switch j.Status {
	case jobsv1.JobStatus_JOB_STATUS_COMPLETED, jobsv1.JobStatus_JOB_STATUS_FAILED, jobsv1.JobStatus_JOB_STATUS_STOPPED,
		jobsv1.JobStatus_JOB_STATUS_TERMINATED, jobsv1.JobStatus_JOB_STATUS_DELETED:
		return true
	}
	return false
}

func (j Job) paused() bool { return j.Status == jobsv1.JobStatus_JOB_STATUS_PAUSED }

// JobVerb is what can be done to a job.
type JobVerb struct {
	// Name is that of the command, and Page that of the page's action.
	Name, Page string
	// WhyNot is one sentence that says why the verb does not apply to a job. Empty if it does.
	WhyNot func(Job) string
}

// Applies says whether there is something for the verb to do.
func (v JobVerb) Applies(j Job) bool { return v.WhyNot(j) == "" }

// The verbs of jobs.
var (
	Trigger = JobVerb{"trigger", "run-job", func(j Job) string {
		switch {
		case j.Mode == Continuous && j.over():
			return "it does not run: restart it"
		case j.Mode == Continuous && j.paused():
			return "it is paused: resume it first"
		}
		return ""
	}}
	Restart = JobVerb{"restart", "restart-job", func(j Job) string {
		if j.Mode != Continuous {
			return "it is not continuous: trigger it instead"
		}
		return ""
	}}
	// A recurring job that is before its time may have a run under way.
	Stop = JobVerb{"stop", "stop-job", func(j Job) string {
		if j.over() {
			return "it does not run"
		}
		return ""
	}}
	SkipNext = JobVerb{"skip-next", "skip-next", func(j Job) string {
		if j.Mode != Recurring {
			return "it is not recurring"
		}
		return ""
	}}
	// Pause adds its reason to those of a paused job, but nobody offers that.
	Pause = JobVerb{"pause", "pause-job", func(j Job) string {
		switch {
		case j.Mode != Recurring && j.Mode != Continuous:
			return "it cannot be paused: stop it, or pause its queue"
		case j.paused():
			return "it is paused already"
		case j.over():
			return "it does not run: restart it first"
		}
		return ""
	}}
	Resume = JobVerb{"resume", "resume-job", func(j Job) string {
		if !j.paused() {
			return "it is not paused; to run it now, trigger it"
		}
		return ""
	}}
)

// JobVerbs are all verbs of jobs, in the order of their buttons.
var JobVerbs = []JobVerb{Trigger, SkipNext, Restart, Pause, Resume, Stop}
