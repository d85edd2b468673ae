package workflows

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/dendrascience/dendra-jobs/job"
)

// ActivityRegistry is the part of a Temporal worker that registers activities.
type ActivityRegistry interface {
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// RegisterActivities registers the activities that workers of every type serve on
// QueuesTaskQueue. They need the client of their worker.
func RegisterActivities(r ActivityRegistry) {
	r.RegisterActivityWithOptions(newWatcher(maxWatched).WatchRun, activity.RegisterOptions{Name: WatchRunActivity})
	r.RegisterActivityWithOptions(ReadPage, activity.RegisterOptions{Name: ReadPageActivity})
	r.RegisterActivityWithOptions((&chooser{}).ChooseService, activity.RegisterOptions{Name: ChooseServiceActivity})
	r.RegisterActivityWithOptions(PauseFailingSchedule, activity.RegisterOptions{Name: PauseFailingActivity})
	r.RegisterActivityWithOptions(TryPausedSchedule, activity.RegisterOptions{Name: TryPausedActivity})
	r.RegisterActivityWithOptions(ResumePausedSchedule, activity.RegisterOptions{Name: ResumePausedActivity})
}

// PauseFailingInput is the input of PauseFailingSchedule.
type PauseFailingInput struct {
	Job job.Job `json:"job"`
	// SpecHash marks the definition that failed: the schedule of another is left alone.
	SpecHash string `json:"spec_hash"`
	// Failures counts the failed runs in a row, the last one included.
	Failures int `json:"failures"`
	// Known is the note of the pause that earlier failures led to, if they did.
	Known string `json:"known,omitempty"`
	// Error is the error of the last run, and At when it failed.
	Error string    `json:"error"`
	At    time.Time `json:"at"`
}

// PauseFailingOutput is the result of PauseFailingSchedule.
type PauseFailingOutput struct {
	// Failures counts the failed runs in a row since the schedule was last resumed.
	Failures int `json:"failures"`
	// Pause is the note of the pause if the schedule is paused for failures.
	Pause string `json:"pause,omitempty"`
}

// PauseFailingSchedule pauses the schedule of a job that has failed too often in a
// row and starts its probe, or tells the probe of one more failure. It changes
// nothing of a schedule that someone has paused, that has another definition, or
// that is gone.
func PauseFailingSchedule(ctx context.Context, in PauseFailingInput) (PauseFailingOutput, error) {
	untouched := PauseFailingOutput{Failures: in.Failures}
	if in.Job.Recurring == nil {
		return untouched, nil
	}
	s, err := readSchedule(ctx, in.Job.ID)
	if err != nil {
		return untouched, err
	}
	if s == nil || s.specHash != in.SpecHash {
		return untouched, nil
	}
	if s.pausedWith(in.Known) {
		err := s.tellProbe(ctx, ProbeNews{Failed: in.Error})
		return PauseFailingOutput{Failures: in.Failures, Pause: in.Known}, err
	}
	if in.Known != "" && !s.paused() {
		in.Failures = 1 // Someone has resumed it: earlier failures are forgotten.
	}
	note := pauseNote(in.Job, in.Failures, in.Error, in.At)
	if !s.pausedWith(note) { // An earlier attempt may have come this far.
		if s.paused() || in.Failures < in.Job.Recurring.PauseAfterFailures {
			return PauseFailingOutput{Failures: in.Failures}, nil
		}
		if err := s.setPaused(ctx, true, note); err != nil {
			return untouched, err
		}
	}
	return PauseFailingOutput{Failures: in.Failures, Pause: note}, startProbe(ctx, ProbeState{
		Job: in.Job, SpecHash: in.SpecHash, Pause: note, Probe: Probe{LastError: in.Error},
	})
}

// startProbe starts the probe of a job, or gives a new pause to the one that runs.
func startProbe(ctx context.Context, state ProbeState) error {
	attributes, err := Attributes(state.Job)
	if err != nil {
		return err
	}
	id := ProbeWorkflowID(state.Job.ID)
	_, err = activity.GetClient(ctx).SignalWithStartWorkflow(ctx, id, SignalProbe, ProbeNews{Start: &state},
		client.StartWorkflowOptions{
			ID:                    id,
			TaskQueue:             TaskQueue(state.Job.Worker),
			TypedSearchAttributes: attributes,
			StaticSummary:         job.Cut(state.Job.ID+" · tries of a paused job", maxSummaryBytes),
			Memo:                  map[string]any{MemoJob: state.Job, MemoProbe: state.Probe},
		}, ProbeJobType, state)
	if err != nil {
		return fmt.Errorf("start probe %s: %w", id, err)
	}
	return nil
}

// TryPausedInput is the input of TryPausedSchedule.
type TryPausedInput struct {
	JobID string `json:"job_id"`
	// SpecHash and Pause are the mark and the note that the schedule should have.
	SpecHash string `json:"spec_hash"`
	Pause    string `json:"pause"`
	// Start has a run started.
	Start bool `json:"start"`
}

// TryPausedOutput is the result of TryPausedSchedule.
type TryPausedOutput struct {
	// Started says that a run was started; false while another is under way.
	Started bool `json:"started"`
	// Ended says why the schedule is no longer paused for failures.
	Ended string `json:"ended,omitempty"`
}

// TryPausedSchedule has a schedule start a run although it is paused, if it is
// still paused with the given note and no run is under way.
func TryPausedSchedule(ctx context.Context, in TryPausedInput) (TryPausedOutput, error) {
	s, err := readSchedule(ctx, in.JobID)
	if err != nil {
		return TryPausedOutput{}, err
	}
	if ended := s.touched(in.SpecHash, in.Pause); ended != "" {
		return TryPausedOutput{Ended: ended}, nil
	}
	if !in.Start || len(s.GetInfo().GetRunningWorkflows()) > 0 {
		return TryPausedOutput{}, nil
	}
	return s.trigger(ctx)
}

// ResumePausedInput is the input of ResumePausedSchedule.
type ResumePausedInput struct {
	JobID string `json:"job_id"`
	// SpecHash and Pause are the mark and the note that the schedule should have.
	SpecHash string `json:"spec_hash"`
	Pause    string `json:"pause"`
	// Note is what the schedule says from then on.
	Note string `json:"note"`
}

// ResumePausedOutput is the result of ResumePausedSchedule.
type ResumePausedOutput struct {
	// Ended says what became of the schedule.
	Ended string `json:"ended"`
}

// ResumePausedSchedule resumes a schedule that is still paused with the given note.
func ResumePausedSchedule(ctx context.Context, in ResumePausedInput) (ResumePausedOutput, error) {
	s, err := readSchedule(ctx, in.JobID)
	if err != nil {
		return ResumePausedOutput{}, err
	}
	if s != nil && !s.paused() && s.GetSchedule().GetState().GetNotes() == in.Note {
		return ResumePausedOutput{Ended: in.Note}, nil // An earlier attempt came this far.
	}
	if ended := s.touched(in.SpecHash, in.Pause); ended != "" {
		return ResumePausedOutput{Ended: ended}, nil
	}
	if err := s.setPaused(ctx, false, in.Note); err != nil {
		return ResumePausedOutput{}, err
	}
	return ResumePausedOutput{Ended: in.Note}, nil
}

// schedule is a job's schedule as the server has it.
type schedule struct {
	*workflowservice.DescribeScheduleResponse
	service   workflowservice.WorkflowServiceClient
	namespace string
	jobID     string
	specHash  string
}

// readSchedule gives nil if the job has no schedule, or not one of ours.
func readSchedule(ctx context.Context, jobID string) (*schedule, error) {
	s := &schedule{
		service:   activity.GetClient(ctx).WorkflowService(),
		namespace: activity.GetInfo(ctx).Namespace,
		jobID:     jobID,
	}
	var err error
	s.DescribeScheduleResponse, err = s.service.DescribeSchedule(ctx, &workflowservice.DescribeScheduleRequest{
		Namespace: s.namespace, ScheduleId: ScheduleID(jobID),
	})
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil, nil //nolint:nilnil // Documented: there is none.
	}
	if err != nil {
		return nil, fmt.Errorf("describe schedule %s: %w", ScheduleID(jobID), err)
	}
	attributes := s.GetSearchAttributes().GetIndexedFields()
	if keyword(attributes, AttributeJobID.GetName()) != jobID {
		return nil, nil //nolint:nilnil // Documented: it is someone else's.
	}
	s.specHash = keyword(attributes, AttributeSpecHash.GetName())
	return s, nil
}

func keyword(attributes map[string]*commonpb.Payload, name string) string {
	var value string
	if payload, ok := attributes[name]; ok && converter.GetDefaultDataConverter().FromPayload(payload, &value) == nil {
		return value
	}
	return ""
}

func (s *schedule) paused() bool { return s.GetSchedule().GetState().GetPaused() }

func (s *schedule) pausedWith(note string) bool {
	return s.paused() && note != "" && s.GetSchedule().GetState().GetNotes() == note
}

// touched says in what way someone has had a hand in a schedule that was paused
// for failures, or "" if nobody had.
func (s *schedule) touched(specHash, pause string) string {
	switch {
	case s == nil:
		return "the schedule is gone"
	case s.specHash != specHash:
		return "the job has another definition now"
	case !s.paused():
		return "the schedule was resumed"
	case !s.pausedWith(pause):
		return "the schedule was paused for another reason: " + s.GetSchedule().GetState().GetNotes()
	}
	return ""
}

// setPaused pauses or resumes the schedule if nobody has changed it since it was
// read. It waits until the server shows that: the older schedule engine answers
// before it acts, and drops a change of what has changed meanwhile without a word.
func (s *schedule) setPaused(ctx context.Context, paused bool, note string) error {
	wanted := s.GetSchedule()
	wanted.State.Paused, wanted.State.Notes = paused, note
	_, err := s.service.UpdateSchedule(ctx, &workflowservice.UpdateScheduleRequest{
		Namespace: s.namespace, ScheduleId: ScheduleID(s.jobID), Schedule: wanted,
		ConflictToken: s.GetConflictToken(), Identity: identity(ctx), RequestId: requestID(ctx, note),
	})
	if err != nil {
		return fmt.Errorf("change schedule %s: %w", ScheduleID(s.jobID), err)
	}
	return s.settles(ctx, func(now *schedule) bool {
		state := now.GetSchedule().GetState()
		return state.GetPaused() == paused && state.GetNotes() == note
	})
}

// trigger has the schedule start a run and waits until the server shows that: the
// older schedule engine may lose a request to one that comes right after.
func (s *schedule) trigger(ctx context.Context) (TryPausedOutput, error) {
	_, err := s.service.PatchSchedule(ctx, &workflowservice.PatchScheduleRequest{
		Namespace: s.namespace, ScheduleId: ScheduleID(s.jobID),
		Patch: &schedulepb.SchedulePatch{TriggerImmediately: &schedulepb.TriggerImmediatelyRequest{
			OverlapPolicy: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		}},
		Identity: identity(ctx), RequestId: requestID(ctx, "try"),
	})
	if err != nil {
		return TryPausedOutput{}, fmt.Errorf("trigger schedule %s: %w", ScheduleID(s.jobID), err)
	}
	var out TryPausedOutput
	err = s.settles(ctx, func(now *schedule) bool {
		out.Started = now.GetInfo().GetActionCount() > s.GetInfo().GetActionCount()
		return out.Started || now.GetInfo().GetOverlapSkipped() > s.GetInfo().GetOverlapSkipped()
	})
	return out, err
}

// settles polls for some seconds until the condition holds. It asks on when the
// server is too busy to tell: the request itself was taken, and repeating all of
// it could start a second run.
func (s *schedule) settles(ctx context.Context, condition func(now *schedule) bool) error {
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	late := time.After(10 * time.Second)
	for {
		now, err := readSchedule(ctx, s.jobID)
		if err == nil && (now == nil || condition(now)) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("schedule %s did not take the request", ScheduleID(s.jobID))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return err
		case <-poll.C:
		}
	}
}

// tellProbe tells the job's probe, if there is one.
func (s *schedule) tellProbe(ctx context.Context, news ProbeNews) error {
	err := activity.GetClient(ctx).SignalWorkflow(ctx, ProbeWorkflowID(s.jobID), "", SignalProbe, news)
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil
	}
	return err
}

func identity(ctx context.Context) string {
	return "job system, for " + activity.GetInfo(ctx).WorkflowExecution.ID
}

// requestID is the same for no two requests: a try that is repeated must not pass
// for the one before, which may have been lost.
func requestID(ctx context.Context, what string) string {
	info := activity.GetInfo(ctx)
	return fmt.Sprintf("%s/%s/%d/%.20s", info.WorkflowExecution.RunID, info.ActivityID, info.Attempt, what)
}
