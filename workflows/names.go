package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// Workflow types, as they are registered and shown in the Web UI.
const (
	RunJobType        = "RunJob"
	ContinuousJobType = "ContinuousJob"
	JobQueueType      = "JobQueue"
	JobQueuePageType  = "JobQueuePage"
	AppliedJobsType   = "AppliedJobs"
)

// WatchRunActivity waits for the end of a run that its queue can no longer
// await itself. Every worker serves it on QueuesTaskQueue.
const WatchRunActivity = "WatchRun"

// ReadPageActivity reads the items of a queue's parked page, also served by every
// worker on QueuesTaskQueue.
const ReadPageActivity = "ReadPage"

// ChooseServiceActivity finds a live service for a run of a bound job. Every
// worker serves it on QueuesTaskQueue. It is tried again until there is one.
const ChooseServiceActivity = "ChooseService"

// QueuesTaskQueue is the task queue of JobQueue, JobQueuePage and AppliedJobs
// workflows. Workers of every type poll it, since a queue may hold jobs of any type.
// The other workflows
// run on the task queue of their job's worker type.
const QueuesTaskQueue = "queues"

const (
	jobPrefix     = "job/"
	queuePrefix   = "queue/"
	appliedPrefix = "applied/"
)

// JobWorkflowID is the workflow id of a job's run or loop, and the id of its
// schedule. A schedule appends the time to it for each run it starts.
func JobWorkflowID(jobID string) string { return jobPrefix + jobID }

// ScheduledRunID is the workflow id of the run that a job's schedule starts at a
// nominal time.
func ScheduledRunID(jobID string, start time.Time) string {
	return JobWorkflowID(jobID) + "-" + start.UTC().Format(time.RFC3339)
}

// ScheduleID is the id of a recurring job's schedule.
func ScheduleID(jobID string) string { return jobPrefix + jobID }

// QueueWorkflowID is the workflow id of a queue.
func QueueWorkflowID(name string) string { return queuePrefix + name }

// QueuePageWorkflowID is the workflow id of a parked page of a queue: the page
// whose first item has the given number.
func QueuePageWorkflowID(name, epoch string, first int64) string {
	return fmt.Sprintf("%s%s/page/%s-%d", queuePrefix, name, epoch, first)
}

// AppliedWorkflowID is the workflow id of the record of what was applied from a
// provider.
func AppliedWorkflowID(provider job.Provider) string { return appliedPrefix + string(provider) }

// JobIDOfSchedule is the inverse of ScheduleID. It reports false for the id of
// a schedule that is not named by this system.
func JobIDOfSchedule(scheduleID string) (string, bool) {
	return strings.CutPrefix(scheduleID, jobPrefix)
}

// TaskQueue is the task queue of a worker type.
func TaskQueue(worker job.WorkerType) string { return string(worker) }

// Memo keys.
const (
	MemoJob     = "job"     // the job's definition, a job.Job
	MemoPauses  = "pauses"  // of the runs of a Schedule: when it was paused
	MemoPaused  = "paused"  // of a continuous job: a Pause
	MemoFailing = "failing" // of a continuous job: a Failing
)

// Pause tells, in the memo of a continuous job, whether it is paused: it can be
// read without a worker.
type Pause struct {
	Paused bool   `json:"paused"`
	Reason string `json:"reason,omitempty"`
	// Itself says that the job has paused itself after failures, and nobody else has.
	Itself bool `json:"itself,omitempty"`
}

// Failing tells whether the latest runs, or iterations, of a job failed. It can be
// read without a worker: in the memo of a continuous job, and in how a run of a
// recurring job ended. A job that is paused may be failing as well.
//
// The memo of a continuous job is written when the first iteration in a row fails,
// and when one succeeds or the failures are forgotten: it says nothing of those in
// between.
type Failing struct {
	Failing bool `json:"failing"`
	// Failures counts the failed runs in a row of a recurring job.
	Failures int `json:"failures_in_a_row,omitempty"`
	// Since is the end of the first run, or iteration, in a row that failed.
	Since time.Time `json:"since,omitzero"`
	// Class and Error are those of the last run, or of the first iteration, that
	// failed; cut short.
	Class string `json:"class,omitempty"`
	Error string `json:"error,omitempty"`
	// NextTry is the next start that is not held back. It is zero if none is held
	// back, as without pause_after_failures.
	NextTry time.Time `json:"next_try,omitzero"`
}

// Search attributes, all of type Keyword.
var (
	AttributeJobID    = temporal.NewSearchAttributeKeyKeyword("JobId")
	AttributeJobType  = temporal.NewSearchAttributeKeyKeyword("JobType")
	AttributeJobMode  = temporal.NewSearchAttributeKeyKeyword("JobMode")
	AttributeQueue    = temporal.NewSearchAttributeKeyKeyword("JobQueue")
	AttributeProvider = temporal.NewSearchAttributeKeyKeyword("JobProvider")
	AttributeOwner    = temporal.NewSearchAttributeKeyKeyword("JobOwner")
	AttributeSpecHash = temporal.NewSearchAttributeKeyKeyword("JobSpecHash")
)

// Attributes are the search attributes of everything that belongs to a job. The
// error is that of a spec that is not JSON.
func Attributes(j job.Job) (temporal.SearchAttributes, error) {
	hash, err := j.SpecHash()
	if err != nil {
		return temporal.SearchAttributes{}, err
	}
	updates := []temporal.SearchAttributeUpdate{
		AttributeJobID.ValueSet(j.ID),
		AttributeJobType.ValueSet(j.Type),
		AttributeJobMode.ValueSet(string(j.Mode())),
		AttributeProvider.ValueSet(string(j.Provider)),
		AttributeSpecHash.ValueSet(hash),
	}
	if queue := j.Queue(); queue != "" {
		updates = append(updates, AttributeQueue.ValueSet(queue))
	}
	if owner := j.Options.Owner.String(); owner != "" {
		updates = append(updates, AttributeOwner.ValueSet(owner))
	}
	return temporal.NewSearchAttributes(updates...), nil
}

// QueueAttributes are the search attributes of a queue and its pages.
func QueueAttributes(name string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(AttributeQueue.ValueSet(name))
}

// maxSummaryBytes is the server's limit on a static summary.
const maxSummaryBytes = 200

// Summary is the line that the Web UI shows for a run or loop of a job.
func Summary(j job.Job) string {
	summary := fmt.Sprintf("%s · %s", j.ID, j.Mode())
	if j.Options.Description != "" {
		summary += " · " + j.Options.Description
	}
	return job.Cut(summary, maxSummaryBytes)
}

// Registry is the part of a Temporal worker that registers workflows.
type Registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
}

// RegisterJobs registers the workflows that run on a worker type's task queue.
func RegisterJobs(r Registry) {
	r.RegisterWorkflowWithOptions(RunJob, workflow.RegisterOptions{Name: RunJobType})
	r.RegisterWorkflowWithOptions(ContinuousJob, workflow.RegisterOptions{Name: ContinuousJobType})
}

// RegisterQueues registers the workflows that run on QueuesTaskQueue: those that
// belong to no worker type.
func RegisterQueues(r Registry) {
	r.RegisterWorkflowWithOptions(JobQueue, workflow.RegisterOptions{Name: JobQueueType})
	r.RegisterWorkflowWithOptions(JobQueuePage, workflow.RegisterOptions{Name: JobQueuePageType})
	r.RegisterWorkflowWithOptions(AppliedJobs, workflow.RegisterOptions{Name: AppliedJobsType})
}
