package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// JobStatus is the status of a job.
type JobStatus string

// The statuses of a job.
const (
	JobScheduled JobStatus = "scheduled" // recurring, waits for its time
	JobRunning   JobStatus = "running"   // a run or a loop is under way
	JobFailing   JobStatus = "failing"   // recurring or continuous: its latest runs or iterations failed
	JobPaused    JobStatus = "paused"
	JobWaiting   JobStatus = "waiting" // queued, not its turn yet; one-shot, not its time yet
	JobCompleted JobStatus = "completed"
	JobFailed    JobStatus = "failed"
	JobStopped   JobStatus = "stopped" // stopped or canceled
	// JobTerminated says that someone ended its run or loop over the handler's head.
	JobTerminated JobStatus = "terminated"
	// JobDeleted says of a continuous job that it was stopped since it is no longer declared.
	JobDeleted JobStatus = "deleted"
	// JobCanceling says that the run of a job that runs once was asked to stop, and has not
	// ended.
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
	// Failing is set of a recurring or continuous job whose latest runs or iterations
	// failed, also while it is paused.
	Failing *contract.Failing `json:"failing,omitempty"`
	// Tags are those of the definition; of recurring jobs a list only has them if
	// they were asked for.
	Tags map[string]string `json:"tags,omitempty"`
	// LastStart is the start of the latest run, or of a continuous job's loop.
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

	// open is the latest run of a recurring job, if it was under way when it was listed.
	open RunRef
}

// HasEnded says that nothing more comes of the job unless someone starts it again: it runs
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
	rows := map[string]JobRow{}
	latest := latestRuns{}
	if err := c.scheduledRows(ctx, rows, latest); err != nil {
		return nil, nil, err
	}
	if err := c.addFailing(ctx, rows, latest); err != nil {
		return nil, nil, err
	}
	if err := c.workflowRows(ctx, rows); err != nil {
		return nil, nil, err
	}
	unread, err := c.waitingRows(ctx, rows)
	if err != nil {
		return nil, nil, err
	}
	if err := c.lookAtOpen(ctx, rows); err != nil {
		return nil, nil, err
	}
	var list []JobRow
	for _, row := range rows {
		if filter.matches(row) {
			list = append(list, row)
		}
	}
	slices.SortFunc(list, func(a, b JobRow) int { return strings.Compare(a.ID, b.ID) })
	if len(filter.Tags) > 0 {
		list, err = c.withTags(ctx, list, filter.Tags)
	}
	return list, unread, err
}

// lookAtOpen looks at the jobs whose run, or loop, is under way, the first hundred by id:
// whether it waits for a worker, or was asked to stop.
func (c *conn) lookAtOpen(ctx context.Context, rows map[string]JobRow) error {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		row := rows[id]
		own := row.Mode != job.ModeRecurring && (row.Status == JobRunning || row.Status == JobFailing)
		if (own || row.open.RunID != "") && len(ids) < maxLooks {
			ids = append(ids, id)
		}
	}
	looked := make([]JobRow, len(ids))
	for n, id := range ids {
		looked[n] = rows[id]
	}
	err := temporalclient.Each(len(ids), 0, func(n int) error { return c.lookAt(ctx, &looked[n]) })
	for n, id := range ids {
		rows[id] = looked[n]
	}
	return err
}

// lookAt looks at the workflow of a job that is under way.
func (c *conn) lookAt(ctx context.Context, row *JobRow) error {
	at := RunRef{WorkflowID: contract.JobWorkflowID(row.ID)}
	if row.open.RunID != "" {
		at = row.open
	}
	response, err := c.temporal.DescribeWorkflowExecution(ctx, at.WorkflowID, at.RunID)
	if isNotFound(err) {
		return nil // Its history was deleted since.
	}
	if err != nil {
		return fmt.Errorf("describe job %s: %w", row.ID, ofServer(ctx, err))
	}
	row.addWait(response)
	return nil
}

// addWait notes what the workflow of a job that is under way waits for.
func (row *JobRow) addWait(response *workflowservice.DescribeWorkflowExecutionResponse) {
	info := response.GetWorkflowExecutionInfo()
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return // It has ended since it was listed.
	}
	detail := RunDetail{Run: Run{Status: RunRunning}}
	if j, ok := temporalclient.MemoDefinition(info.GetMemo()); ok {
		detail.Job = &j
	}
	detail.addPending(response)
	row.WaitReason = detail.WaitReason
	if row.Mode == job.ModeContinuous && row.Status == JobFailing && detail.progresses() {
		row.Status, row.Failing = JobRunning, nil
	}
	switch {
	case row.Status != JobRunning:
	case detail.Status == RunCanceling:
		row.Status = JobCanceling
	case detail.Status == RunWaiting:
		row.Status = JobWaiting
	}
}

// scheduledRows adds the recurring jobs, and their latest runs unless latest is nil.
func (c *conn) scheduledRows(ctx context.Context, rows map[string]JobRow, latest latestRuns) error {
	return c.listSchedules(ctx, func(entry *schedulepb.ScheduleListEntry) {
		if row, ours := scheduledRow(entry); ours {
			rows[row.ID] = row
			latest.add(row.ID, temporalclient.Attribute(entry.GetSearchAttributes(), contract.AttributeDefinitionHash.GetName()), entry.GetInfo().GetRecentActions())
		}
	})
}

// scheduledRow reports false for a schedule that is not ours.
func scheduledRow(entry *schedulepb.ScheduleListEntry) (JobRow, bool) {
	get := func(name string) string { return temporalclient.Attribute(entry.GetSearchAttributes(), name) }
	id, named := contract.JobIDOfSchedule(entry.GetScheduleId())
	if !named || get(contract.AttributeJobID.GetName()) != id {
		return JobRow{}, false
	}
	info := entry.GetInfo()
	row := JobRow{
		ID:       id,
		Type:     get(contract.AttributeJobType.GetName()),
		Mode:     job.ModeRecurring,
		Status:   JobScheduled,
		Owner:    get(contract.AttributeOwner.GetName()),
		Provider: job.Provider(get(contract.AttributeProvider.GetName())),
	}
	row.LastStart, row.Next = lastStart(info.GetRecentActions()), nextStart(info.GetFutureActionTimes())
	if actions := info.GetRecentActions(); len(actions) > 0 {
		latest := actions[len(actions)-1]
		if run := latest.GetStartWorkflowResult(); latest.GetStartWorkflowStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			row.open = RunRef{WorkflowID: run.GetWorkflowId(), RunID: run.GetRunId()}
		}
	}
	if info.GetPaused() {
		row.Status, row.Next = JobPaused, time.Time{}
		row.PauseReason = info.GetNotes()
	}
	return row, true
}

// listSchedules goes through all schedules of the namespace, ours or not.
func (c *conn) listSchedules(ctx context.Context, visit func(*schedulepb.ScheduleListEntry)) error {
	request := &workflowservice.ListSchedulesRequest{Namespace: c.namespace, MaximumPageSize: 1000}
	for {
		response, err := read(ctx, c, c.temporal.WorkflowService().ListSchedules, request)
		if err != nil {
			return fmt.Errorf("list schedules: %w", err)
		}
		for _, entry := range response.GetSchedules() {
			visit(entry)
		}
		if request.NextPageToken = response.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

func lastStart(actions []*schedulepb.ScheduleActionResult) time.Time {
	if len(actions) == 0 {
		return time.Time{}
	}
	return actions[len(actions)-1].GetActualTime().AsTime()
}

func nextStart(times []*timestamppb.Timestamp) time.Time {
	if len(times) == 0 {
		return time.Time{}
	}
	return times[0].AsTime()
}

// workflowRows adds the jobs whose workflow bears their id: every mode but recurring.
func (c *conn) workflowRows(ctx context.Context, rows map[string]JobRow) error {
	return c.listWorkflows(ctx, unscheduled, 0, func(info *workflowpb.WorkflowExecutionInfo) {
		run := newRun(info)
		if run.WorkflowID != contract.JobWorkflowID(run.JobID) {
			return // Not ours.
		}
		if later, ok := rows[run.JobID]; ok && (later.Mode == job.ModeRecurring || later.Status == JobWaiting || !later.LastStart.Before(run.Started)) {
			return // Of a job with a schedule that is the job's status, whatever ran before.
		}
		rows[run.JobID] = ownRow(run, info)
	})
}

// unscheduled is the query for the workflows of the jobs that have no schedule.
var unscheduled = fmt.Sprintf("WorkflowType = '%s' OR (WorkflowType = '%s' AND JobMode IN ('%s', '%s'))",
	contract.ContinuousJobType, contract.RunJobType, job.ModeOneShot, job.ModeQueued)

// ownRow is the job whose id a workflow bears.
func ownRow(run Run, info *workflowpb.WorkflowExecutionInfo) JobRow {
	row := JobRow{
		ID: run.JobID, Type: run.Type, Mode: run.Mode, Queue: run.Queue,
		Owner:     temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeOwner.GetName()),
		Provider:  job.Provider(temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeProvider.GetName())),
		Status:    jobStatus(run),
		LastStart: run.Started,
	}
	row.addEnd(run, info.GetMemo())
	if run.Status == RunWaiting {
		row.LastStart, row.Next = time.Time{}, run.Started
	}
	if j, ok := temporalclient.MemoDefinition(info.GetMemo()); ok {
		row.Tags = j.Options.Tags
	}
	if run.Status == RunRunning {
		row.showAs(failingLoop(info.GetMemo()))
		if pause := pauseOf(info.GetMemo()); pause.Paused {
			row.Status, row.PauseReason = JobPaused, pause.Reason
		}
	}
	return row
}

// showAs notes that a job is failing, if it is.
func (row *JobRow) showAs(f *contract.Failing) {
	if f == nil {
		return
	}
	row.Failing = f
	if row.Status == JobPaused {
		f.NextRun = time.Time{} // Nothing is tried until it is resumed.
		return
	}
	row.Status = JobFailing
	f.NextRun = later(f.NextRun, row.Next)
	row.Next = f.NextRun
}

// addEnd notes how the workflow that bears the id of a job has ended, if it has.
func (row *JobRow) addEnd(run Run, memo *commonpb.Memo) {
	row.Ended = run.Ended
	if row.Status == JobFailed {
		if row.Class, row.Error = run.Class, run.Error; row.Error == "" {
			row.Error = "the run " + strings.ReplaceAll(string(run.Status), "_", " ") // It was cut off.
		}
	}
	var stopped contract.Stopped
	if row.Status == JobStopped && run.Mode == job.ModeContinuous && temporalclient.MemoField(memo, contract.MemoStopped, &stopped) {
		if row.StopReason = stopped.Reason; stopped.Deleted {
			row.Status = JobDeleted
		}
	}
}

func jobStatus(run Run) JobStatus {
	switch run.Status {
	case RunRunning:
		return JobRunning
	case RunWaiting:
		return JobWaiting
	case RunCompleted:
		if run.Mode == job.ModeContinuous {
			return JobStopped
		}
		return JobCompleted
	case RunFailed, RunTimedOut:
		return JobFailed
	case RunTerminated:
		return JobTerminated
	default:
		return JobStopped
	}
}

func (c *conn) waitingRows(ctx context.Context, rows map[string]JobRow) (unread []string, _ error) {
	names, err := c.queues().Names(ctx)
	if err != nil {
		return nil, err
	}
	for n, name := range names {
		state, err := c.queues().State(ctx, name)
		switch {
		case errors.Is(err, ErrNoWorker):
			return append(unread, names[n:]...), nil // All queues have the same workers.
		case err != nil && (ctx.Err() != nil || temporalclient.ServerGone(err)):
			return nil, err
		case err != nil:
			unread = append(unread, name) // One queue's trouble is not that of the others.
			continue
		}
		err = c.eachWaiting(ctx, state, 0, func(item contract.QueueItem) bool {
			if rows[item.Job.ID].Status == JobRunning {
				return true // A repeat waits, which is skipped at its turn.
			}
			rows[item.Job.ID] = JobRow{
				ID: item.Job.ID, Type: item.Job.Type, Mode: job.ModeQueued, Status: JobWaiting,
				Queue: name, Owner: item.Job.Options.Owner.String(), Provider: item.Job.Provider,
				Tags: item.Job.Options.Tags,
			}
			return true
		})
		switch {
		case err != nil && (ctx.Err() != nil || temporalclient.ServerGone(err)):
			return nil, err
		case err != nil:
			unread = append(unread, name) // A page of it cannot be read.
		}
	}
	return unread, nil
}

// JobDetail is a job with all that is known of it.
type JobDetail struct {
	Row  JobRow  `json:"status"`
	Job  job.Job `json:"definition"`
	Hash string  `json:"definition_hash"`
	// Next are the coming starts of a recurring job.
	Next []time.Time `json:"next,omitempty"`
	// Missed and Skipped count a recurring job's starts that have no run: outside
	// the catch-up window, or because the run before had not ended.
	Missed  int64 `json:"missed,omitempty"`
	Skipped int64 `json:"skipped,omitempty"`
	// Dropped counts starts that found the schedule's buffer full.
	Dropped int64 `json:"dropped,omitempty"`
	// Loop is the state of a continuous job that a worker answers for.
	Loop *contract.ContinuousState `json:"loop,omitempty"`
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
	detail := &JobDetail{Job: live.Job, Hash: live.DefinitionHash, Row: rowOf(live), Live: live}
	if s := live.Schedule; s != nil {
		detail.Missed, detail.Skipped = s.GetInfo().GetMissedCatchupWindow(), s.GetInfo().GetOverlapSkipped()
		detail.Dropped = s.GetInfo().GetBufferDropped()
		failing, err := c.failingSchedule(ctx, live)
		if err != nil {
			return nil, err
		}
		if !live.Paused {
			detail.Next = notBefore(failing, live.Next())
		}
		detail.Row.showAs(failing)
		for _, running := range s.GetInfo().GetRunningWorkflows() {
			detail.Row.open = RunRef{WorkflowID: running.GetWorkflowId(), RunID: running.GetRunId()}
			if err := c.lookAt(ctx, &detail.Row); err != nil {
				return nil, err
			}
		}
	}
	if live.loops() {
		detail.Loop, err = c.loopState(ctx, jobID)
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
	detail.Runs, err = c.listRuns(ctx, RunFilter{JobID: jobID, Limit: describedRuns})
	return detail, err
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

func (c *conn) loopState(ctx context.Context, jobID string) (*contract.ContinuousState, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	answer, err := c.temporal.QueryWorkflow(ctx, contract.JobWorkflowID(jobID), "", contract.QueryState)
	if err != nil {
		return nil, explain("state of job "+jobID, err)
	}
	var state contract.ContinuousState
	if err := answer.Get(&state); err != nil {
		return nil, fmt.Errorf("state of job %s: %w", jobID, err)
	}
	return &state, nil
}

func rowOf(live *Live) JobRow {
	j := live.Job
	row := JobRow{
		ID: j.ID, Type: j.Type, Mode: j.Mode(), Queue: j.Queue(), Owner: j.Options.Owner.String(), Provider: j.Provider,
		Tags: j.Options.Tags,
	}
	switch {
	case live.Schedule != nil:
		row.Status = JobScheduled
		info := live.Schedule.GetInfo()
		row.LastStart = lastStart(info.GetRecentActions())
		if !live.Paused {
			row.Next = nextStart(info.GetFutureActionTimes())
		}
	case live.Waiting != nil && (live.Workflow == nil || !live.Workflow.Open()):
		row.Status = JobWaiting
	default:
		row.LastStart = live.Workflow.Start
		row.Status = jobStatus(Run{Mode: row.Mode, Status: runStatus(live.Workflow.Status)})
		row.addEnd(live.own, live.memo)
		if begins := live.Workflow.Begins; live.Workflow.Open() && begins.After(time.Now()) {
			row.Status, row.LastStart, row.Next = JobWaiting, time.Time{}, begins
		}
		if live.Workflow.Open() {
			row.showAs(live.Failing)
		}
		if live.described != nil && (row.Status == JobRunning || row.Status == JobFailing) {
			row.addWait(live.described)
		}
	}
	if live.Paused && (live.Workflow == nil || live.Workflow.Open()) {
		row.Status, row.PauseReason = JobPaused, live.PauseReason
	}
	return row
}
