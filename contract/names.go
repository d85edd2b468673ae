package contract

import (
	"fmt"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// Workflow types, as they are registered and shown in the Web UI.
const (
	RunJobType        = "RunJob"
	ContinuousJobType = "ContinuousJob"
	JobQueueType      = "JobQueue"
	JobQueuePageType  = "JobQueuePage"
	AppliedJobsType   = "AppliedJobs"
	EndPauseType      = "EndPause"
)

// WatchRunActivity waits for the end of a run that its queue can no longer
// await itself. Every worker serves it on QueuesTaskQueue.
const WatchRunActivity = "WatchRun"

// ReadPageActivity reads the items of an overflow page of a queue, also served by every
// worker on QueuesTaskQueue.
const ReadPageActivity = "ReadPage"

// ChooseServiceActivity finds a live service for a run of a bound job. Every
// worker serves it on QueuesTaskQueue. It is tried again until there is one.
const ChooseServiceActivity = "ChooseService"

// EndPauseActivity resumes a recurring job whose pause is over. Every worker serves it on
// QueuesTaskQueue.
const EndPauseActivity = "EndPause"

// SignalNewBuild wakes a workflow that waits, so that it goes on with the build of the workers
// that is the current one now. It carries nothing.
const SignalNewBuild = "new-build"

// QueuesTaskQueue is the task queue of JobQueue, JobQueuePage, AppliedJobs and EndPause
// workflows. Workers of every type poll it, since a queue may hold jobs of any type.
// The other workflows
// run on the task queue of their job's worker type.
const QueuesTaskQueue = "queues"

const (
	jobPrefix     = "job/"
	queuePrefix   = "queue/"
	appliedPrefix = "applied/"
	pausePrefix   = "pause/"
)

// JobWorkflowID is the workflow id of a job's run or loop, and the id of its
// schedule. A schedule appends the time to it for each run it starts.
func JobWorkflowID(jobID string) string { return jobPrefix + jobID }

// ScheduledRunID is the workflow id of the run that a job's schedule starts at a
// nominal time.
func ScheduledRunID(jobID string, start time.Time) string {
	return JobWorkflowID(jobID) + "-" + start.UTC().Format(time.RFC3339)
}

// JobIDOfRun is the job of a run with a workflow id.
func JobIDOfRun(workflowID string) string {
	const stamp = len("-2006-01-02T15:04:05Z") // of a run that a Schedule has started
	id := strings.TrimPrefix(workflowID, jobPrefix)
	if at := len(id) - stamp; at > 0 && id[at] == '-' {
		if _, err := time.Parse(time.RFC3339, id[at+1:]); err == nil {
			return id[:at]
		}
	}
	return id
}

// ScheduleID is the id of a recurring job's schedule.
func ScheduleID(jobID string) string { return jobPrefix + jobID }

// QueueWorkflowID is the workflow id of a queue.
func QueueWorkflowID(name string) string { return queuePrefix + name }

// QueuePageWorkflowID is the workflow id of an overflow page of a queue: the page
// whose first item has the given number.
func QueuePageWorkflowID(name, instance string, first int64) string {
	return fmt.Sprintf("%s%s/page/%s-%d", queuePrefix, name, instance, first)
}

// AppliedWorkflowID is the workflow id of the record of what was applied from a
// provider.
func AppliedWorkflowID(provider job.Provider) string { return appliedPrefix + string(provider) }

// EndPauseWorkflowID is the workflow id of what resumes a recurring job at the end of a pause.
func EndPauseWorkflowID(jobID string, end time.Time) string {
	return pausePrefix + jobID + "-" + end.UTC().Format(time.RFC3339)
}

// JobIDOfSchedule is the inverse of ScheduleID. It reports false for the id of
// a schedule that is not named by this system.
func JobIDOfSchedule(scheduleID string) (string, bool) {
	return strings.CutPrefix(scheduleID, jobPrefix)
}

// TaskQueue is the task queue of a worker type.
func TaskQueue(worker job.WorkerType) string { return string(worker) }
