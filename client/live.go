package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// Live is what Temporal has under a job's id.
type Live struct {
	// Job is the definition in force.
	Job job.Job
	// DefinitionHash is that of the search attribute.
	DefinitionHash string
	// Paused and PauseReason are set of a paused schedule or continuous job, and PauseEnd if
	// the pause ends by itself.
	Paused      bool
	PauseReason string
	PauseEnd    time.Time
	// PausedItself says of a continuous job that it has paused itself after failures,
	// and that nobody else has.
	PausedItself bool
	// Failing is set of a continuous job whose latest iterations failed.
	Failing *contract.Failing
	// Schedule is set of a recurring job.
	Schedule *workflowservice.DescribeScheduleResponse
	// Input says what is wrong with the input that a schedule starts its runs
	// with, "" if it is that of a run of Job. If there is no reading it, Job is
	// the definition that the schedule's memo keeps, or else id, type and provider
	// alone.
	Input string
	// Workflow is set of every other job: its run, or the workflow of a continuous job.
	Workflow *WorkflowLive
	// Waiting is set of a queued job that has not started.
	Waiting *contract.QueueItem
	// Unanswered says of which queues it is not known whether the job waits there, nil if
	// it is known of all.
	Unanswered error

	// own and described are those of Workflow.
	own       SeenRun
	described *workflowservice.DescribeWorkflowExecutionResponse
}

// WorkflowLive is the latest workflow under a job's id.
type WorkflowLive struct {
	Type   string
	RunID  string
	Status enumspb.WorkflowExecutionStatus
	Start  time.Time
	Begins time.Time // later than Start if it was started for a time ahead
	Close  time.Time // zero while it runs
}

// RunStatus is the status as that of a run.
func (w *WorkflowLive) RunStatus() RunStatus { return runStatus(w.Status) }

// Open reports whether the workflow has not ended.
func (w *WorkflowLive) Open() bool {
	return w.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// PauseText tells people of the pause.
func (l *Live) PauseText() string { return contract.PauseText(l.PauseReason, l.PauseEnd) }

// facts are those of the job, with its latest runs, the latest first.
func (l *Live) facts(runs []Run) Facts {
	var facts Facts
	if l.Workflow != nil {
		facts = l.own.Facts()
	}
	j := l.Job
	facts.ID, facts.Type, facts.Mode, facts.Queue = j.ID, j.Type, j.Mode(), j.Queue()
	facts.Owner, facts.Provider, facts.Tags, facts.DefinitionHash = j.Options.Owner.String(), j.Provider, j.Options.Tags, l.DefinitionHash
	facts.Bind = j.Options.Bind
	if l.Waiting != nil {
		facts.Wait(l.Waiting.Job.Queue(), *l.Waiting)
	}
	if l.Schedule == nil {
		return facts
	}
	info := l.Schedule.GetInfo()
	facts.Schedule = &ScheduleFacts{Paused: l.Paused, PauseReason: l.PauseReason, PauseEnd: l.PauseEnd, Next: l.Next()}
	facts.addStarts(info.GetRecentActions())
	if running := info.GetRunningWorkflows(); len(running) > 0 {
		latest := running[len(running)-1]
		facts.Run = &RunFacts{RunRef: RunRef{latest.GetWorkflowId(), latest.GetRunId()}, Started: facts.Schedule.LastStart}
	}
	for _, run := range runs { // Some are not those of the schedule.
		facts.see(run)
	}
	return facts
}

// loops reports whether it is a continuous job that has not been stopped.
func (l *Live) loops() bool {
	return l.Workflow != nil && l.Workflow.Type == contract.ContinuousJobType && l.Workflow.Open()
}

// LiveSchedule describes the schedule of a job id. It gives nil when there is
// none and [ErrNotOurs] when it is someone else's.
func (c *JobClient) LiveSchedule(ctx context.Context, jobID string) (*Live, error) {
	description, err := c.schedules().describe(ctx, jobID)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil //nolint:nilnil // Documented: there is none.
	case err != nil:
		return nil, err
	}
	return liveSchedule(jobID, description)
}

// liveSchedule reads the description of a schedule.
func liveSchedule(jobID string, description *workflowservice.DescribeScheduleResponse) (*Live, error) {
	if temporalclient.Attribute(description.GetSearchAttributes(), contract.AttributeJobID.GetName()) != jobID {
		return nil, fmt.Errorf("schedule %s does not have the search attributes of job %s: %w", contract.ScheduleID(jobID), jobID, ErrNotOurs)
	}
	live := &Live{
		DefinitionHash: temporalclient.Attribute(description.GetSearchAttributes(), contract.AttributeDefinitionHash.GetName()),
		Paused:         description.GetSchedule().GetState().GetPaused(),
		Schedule:       description,
	}
	live.PauseReason, live.PauseEnd = contract.PauseOf(description.GetSchedule().GetState().GetNotes(),
		temporalclient.Attribute(description.GetSearchAttributes(), contract.AttributePauseEnd.GetName()))
	in, err := scheduledInput(description)
	if err == nil && in.Job.ID != jobID {
		err = errors.New("not that of a run of this job")
	}
	switch {
	case err != nil:
		live.Input = err.Error()
		if j, ok := live.Recorded(); ok && j.ID == jobID {
			live.Job = j
		} else { // Its attributes say whose it is.
			live.Job = job.Job{
				ID: jobID, Spec: []byte("{}"),
				Type:     temporalclient.Attribute(description.GetSearchAttributes(), contract.AttributeJobType.GetName()),
				Provider: job.Provider(temporalclient.Attribute(description.GetSearchAttributes(), contract.AttributeProvider.GetName())),
			}
		}
	case in.StartedBy != contract.StartedBySchedule || len(in.Cursor) > 0:
		live.Input = "not that of a scheduled run"
		fallthrough
	default:
		live.Job = in.Job
	}
	return live, nil
}

// ScheduleWithoutSkips is the schedule of a recurring job without the starts that people
// have skipped, see [JobClient.SkipNext].
func (l *Live) ScheduleWithoutSkips() *schedulepb.Schedule {
	schedule := proto.CloneOf(l.Schedule.GetSchedule())
	if spec := schedule.GetSpec(); spec != nil {
		spec.ExcludeStructuredCalendar = slices.DeleteFunc(spec.GetExcludeStructuredCalendar(), func(calendar *schedulepb.StructuredCalendarSpec) bool {
			return isSkip(spec, calendar)
		})
	}
	return schedule
}

// SkippedStarts are the coming starts of a recurring job that people have skipped.
func (l *Live) SkippedStarts(now time.Time) []time.Time {
	var times []time.Time
	for _, skip := range comingSkips(l.Schedule.GetSchedule().GetSpec(), now) {
		times = append(times, skip.At)
	}
	return times
}

// Recorded is the definition that the memo of a schedule's runs keeps: the one
// that was applied, even if someone has edited the input of the runs since.
func (l *Live) Recorded() (job.Job, bool) {
	return temporalclient.MemoDefinition(l.Schedule.GetSchedule().GetAction().GetStartWorkflow().GetMemo())
}

// Next are the coming starts of a recurring job as the server sees them, even if
// its schedule is paused.
func (l *Live) Next() []time.Time {
	var times []time.Time
	for _, at := range l.Schedule.GetInfo().GetFutureActionTimes() {
		times = append(times, at.AsTime())
	}
	return times
}

// scheduledInput reads the input that a schedule starts its runs with.
func scheduledInput(description *workflowservice.DescribeScheduleResponse) (contract.RunInput, error) {
	payloads := description.GetSchedule().GetAction().GetStartWorkflow().GetInput().GetPayloads()
	if len(payloads) != 1 {
		return contract.RunInput{}, errors.New("not that of a run")
	}
	var in contract.RunInput
	if err := temporalclient.DecodePayload(payloads[0], &in); err != nil {
		return contract.RunInput{}, fmt.Errorf("unreadable (%w)", err)
	}
	return in, nil
}

// CheckSpec gives [ErrOtherSpec] for other work than that of the workflow under the
// job's id, which has to be set.
func (l *Live) CheckSpec(j job.Job) error {
	hash, err := j.DefinitionHash()
	switch {
	case err != nil:
		return err
	case l.DefinitionHash == hash:
		return nil
	case l.Workflow.Open():
		return fmt.Errorf("job %s runs now: %w", l.Job.ID, ErrOtherSpec)
	}
	return fmt.Errorf("job %s has run before (%s): %w", l.Job.ID, runStatus(l.Workflow.Status), ErrOtherSpec)
}

// LiveWorkflow describes the latest workflow under a job id. It gives nil when
// there is none and [ErrNotOurs] when it is someone else's.
func (c *JobClient) LiveWorkflow(ctx context.Context, jobID string) (*Live, error) {
	id := contract.JobWorkflowID(jobID)
	response, err := read(ctx, c.conn, c.temporal.WorkflowService().DescribeWorkflowExecution, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: c.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: id},
	})
	switch {
	case isNotFound(err):
		return nil, nil //nolint:nilnil // Documented: there is none.
	case err != nil:
		return nil, fmt.Errorf("describe workflow %s: %w", id, err)
	}
	info := response.GetWorkflowExecutionInfo()
	if temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeJobID.GetName()) != jobID {
		return nil, fmt.Errorf("workflow %s does not have the search attributes of job %s: %w", id, jobID, ErrNotOurs)
	}
	j, ok := temporalclient.MemoDefinition(info.GetMemo())
	if !ok {
		return nil, fmt.Errorf("workflow %s does not carry the definition of job %s: %w", id, jobID, ErrNotOurs)
	}
	live := &Live{
		Job:            j,
		DefinitionHash: temporalclient.Attribute(info.GetSearchAttributes(), contract.AttributeDefinitionHash.GetName()),
		Workflow: &WorkflowLive{
			Type:   info.GetType().GetName(),
			RunID:  info.GetExecution().GetRunId(),
			Status: info.GetStatus(),
			Start:  info.GetStartTime().AsTime(),
			Begins: info.GetExecutionTime().AsTime(),
		},
		own: newSeenRun(info), described: response,
	}
	if t := info.GetCloseTime(); t != nil {
		live.Workflow.Close = t.AsTime()
	}
	pause := pauseOf(info.GetMemo())
	live.Paused, live.PauseReason, live.PauseEnd, live.PausedItself = pause.Paused, pause.Reason, pause.End, pause.Itself
	live.Failing = failingLoop(info.GetMemo())
	return live, nil
}

// Live finds a job by its id alone: its schedule, its workflow, or its place in
// a queue. It gives [ErrNotFound] when there is nothing, and another error when
// there is nothing else and it is not known whether the job waits in a queue:
// [ErrNoWorker] if no worker answers.
func (c *JobClient) Live(ctx context.Context, jobID string) (*Live, error) {
	live, err := c.LiveSchedule(ctx, jobID)
	if live != nil || err != nil {
		return live, err
	}
	live, err = c.LiveWorkflow(ctx, jobID)
	if err != nil || live != nil && live.waitsNowhere() {
		return live, err
	}
	waiting, unanswered, err := c.waitingItem(ctx, jobID)
	if err != nil {
		return nil, err
	}
	if waiting == nil && (live == nil || !live.Workflow.Open()) {
		// Its turn may have come since.
		if live, err = c.LiveWorkflow(ctx, jobID); err != nil {
			return nil, err
		}
	}
	switch {
	case live == nil && waiting == nil && unanswered != nil:
		return nil, fmt.Errorf("job %s has no schedule and no run, and %w", jobID, unanswered)
	case live == nil && waiting == nil:
		return nil, fmt.Errorf("job %s: %w", jobID, ErrNotFound)
	case live == nil:
		live = &Live{Job: waiting.Job}
	}
	live.Waiting, live.Unanswered = waiting, unanswered
	return live, nil
}

// waitsNowhere reports whether no queue has to be asked for the job: it runs, and not in
// the turn of a queue.
func (l *Live) waitsNowhere() bool {
	return l.Workflow.Open() && (l.Workflow.Type == contract.ContinuousJobType || l.Job.Mode() == job.ModeOneShot)
}

// waitingItem looks for a job in all queues. Unanswered says of which queues it is not
// known whether the job waits there, if it was not found in another one.
func (c *conn) waitingItem(ctx context.Context, jobID string) (item *contract.QueueItem, unanswered, err error) {
	names, err := c.queues().Names(ctx)
	if err != nil {
		return nil, nil, err
	}
	unread, err := c.eachWaitingIn(ctx, names, func(_ string, waits contract.QueueItem) bool {
		if waits.Job.ID == jobID {
			item = &waits
		}
		return item == nil
	})
	if err != nil || item != nil {
		return item, nil, err
	}
	var noWorker []string
	var reasons []error
	for _, queue := range unread {
		if errors.Is(queue.Err, ErrNoWorker) {
			noWorker = append(noWorker, queue.Name)
		} else {
			reasons = append(reasons, fmt.Errorf("it may wait in queue %s, which cannot be read: %w", queue.Name, queue.Err))
		}
	}
	if len(noWorker) > 0 {
		reasons = append(reasons, fmt.Errorf("%w for %s, where it may wait", ErrNoWorker, queuesText(noWorker)))
	}
	return nil, errors.Join(reasons...), nil
}

// queuesText names queues, but not all of many.
func queuesText(names []string) string {
	const most = 3
	text := "queue " + strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(", or %d more", more)
	}
	return text
}

// pauseOf reads whether a continuous job is paused, and why.
func pauseOf(memo *commonpb.Memo) contract.Pause {
	var pause contract.Pause
	if !temporalclient.MemoField(memo, contract.MemoPaused, &pause) {
		return contract.Pause{}
	}
	return pause
}

// failingLoop reads whether the latest iterations of a continuous job failed, nil if
// they did not.
func failingLoop(memo *commonpb.Memo) *contract.Failing {
	var f contract.Failing
	if !temporalclient.MemoField(memo, contract.MemoFailing, &f) || !f.Failing {
		return nil
	}
	return &f
}
