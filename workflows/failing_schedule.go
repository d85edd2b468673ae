package workflows

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/job"
)

// ActivityRegistry is the part of a Temporal worker that registers activities.
type ActivityRegistry interface {
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// RegisterActivities registers the activities that workers of every type serve on
// QueuesTaskQueue. They need the client of their worker.
func RegisterActivities(r ActivityRegistry) {
	r.RegisterActivityWithOptions(newWatcher(maxWatched).WatchRun, activity.RegisterOptions{Name: contract.WatchRunActivity})
	r.RegisterActivityWithOptions(ReadPage, activity.RegisterOptions{Name: contract.ReadPageActivity})
	r.RegisterActivityWithOptions((&chooser{}).ChooseService, activity.RegisterOptions{Name: contract.ChooseServiceActivity})
	r.RegisterActivityWithOptions(PauseFailingSchedule, activity.RegisterOptions{Name: contract.PauseFailingActivity})
	r.RegisterActivityWithOptions(TryPausedSchedule, activity.RegisterOptions{Name: contract.TryPausedActivity})
	r.RegisterActivityWithOptions(ResumePausedSchedule, activity.RegisterOptions{Name: contract.ResumePausedActivity})
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
	if in.Job.Recurring == nil {
		return PauseFailingOutput{Failures: in.Failures}, nil
	}
	// A schedule that goes on after a pause was resumed by someone: earlier failures are
	// forgotten. The note is decided once, for an edit or a try that finds its own pause.
	fresh := PauseFailingOutput{Failures: in.Failures}
	if in.Known != "" {
		fresh.Failures = 1
	}
	note := pauseNote(in.Job, fresh.Failures, in.Error, in.At)
	var out PauseFailingOutput
	err := changeSchedule(ctx, in.Job.ID, func(s *schedule) *ScheduleEdit {
		out = PauseFailingOutput{Failures: in.Failures}
		switch {
		case s == nil || s.specHash != in.SpecHash:
			return nil
		case s.pausedWith(in.Known):
			out.Pause = in.Known
			return nil
		case s.pausedWith(note):
			out = PauseFailingOutput{Failures: fresh.Failures, Pause: note}
			return nil
		case s.paused():
			return nil
		}
		if out = fresh; out.Failures < in.Job.Recurring.PauseAfterFailures {
			return nil
		}
		return s.withPause(true, note)
	})
	switch {
	case err != nil || out.Pause == "":
		return out, err
	case out.Pause == in.Known:
		return out, tellProbe(ctx, in.Job.ID, ProbeNews{Failed: in.Error})
	}
	return out, startProbe(ctx, ProbeState{
		Job: in.Job, SpecHash: in.SpecHash, Pause: out.Pause, Probe: contract.Probe{LastError: in.Error},
	})
}

// startProbe starts the probe of a job, or gives a new pause to the one that runs.
func startProbe(ctx context.Context, state ProbeState) error {
	attributes, err := contract.Attributes(state.Job)
	if err != nil {
		return err
	}
	id := contract.ProbeWorkflowID(state.Job.ID)
	_, err = activity.GetClient(ctx).SignalWithStartWorkflow(ctx, id, SignalProbe, ProbeNews{Start: &state},
		client.StartWorkflowOptions{
			ID:                    id,
			TaskQueue:             contract.TaskQueue(state.Job.Worker),
			TypedSearchAttributes: attributes,
			StaticSummary:         job.Cut(state.Job.ID+" · tries of a paused job", contract.MaxSummaryBytes),
			Memo:                  map[string]any{contract.MemoJob: state.Job, contract.MemoProbe: state.Probe},
		}, contract.ProbeJobType, state)
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
	// Started says that a run was started, or may have been; false while another is
	// under way.
	Started bool `json:"started"`
	// Ended says why the schedule is no longer paused for failures.
	Ended string `json:"ended,omitempty"`
}

// TryPausedSchedule has a schedule start a run although it is paused, if it is
// still paused with the given note and no run is under way.
func TryPausedSchedule(ctx context.Context, in TryPausedInput) (TryPausedOutput, error) {
	of := schedulesOf(ctx)
	now, err := of.Describe(ctx, in.JobID)
	if err != nil && !isGone(err) {
		return TryPausedOutput{}, fmt.Errorf("describe schedule %s: %w", contract.ScheduleID(in.JobID), err)
	}
	s := ownSchedule(in.JobID, now)
	if ended := s.touched(in.SpecHash, in.Pause); ended != "" {
		return TryPausedOutput{Ended: ended}, nil
	}
	if !in.Start || len(s.GetInfo().GetRunningWorkflows()) > 0 {
		return TryPausedOutput{}, nil
	}
	// Paused, it has no starts of its own that the run could take the name of.
	triggered, err := of.Trigger(ctx, in.JobID, nil, enumspb.SCHEDULE_OVERLAP_POLICY_SKIP)
	if errors.Is(err, errUntold) {
		// Another try of this activity could start a second run. The probe tries again
		// after its next wait.
		activity.GetLogger(ctx).Warn("a run of the paused job may have been started", "JobID", in.JobID, "Error", err)
		return TryPausedOutput{Started: true}, nil
	}
	if err != nil {
		return TryPausedOutput{}, fmt.Errorf("trigger schedule %s: %w", contract.ScheduleID(in.JobID), err)
	}
	return TryPausedOutput{Started: triggered.Started != nil}, nil
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
	var out ResumePausedOutput
	err := changeSchedule(ctx, in.JobID, func(s *schedule) *ScheduleEdit {
		if s != nil && !s.paused() && s.GetSchedule().GetState().GetNotes() == in.Note {
			out.Ended = in.Note
			return nil
		}
		if out.Ended = s.touched(in.SpecHash, in.Pause); out.Ended != "" {
			return nil
		}
		return s.withPause(false, in.Note)
	})
	return out, err
}

// schedulesOf are the schedules of the namespace of an activity.
func schedulesOf(ctx context.Context) Schedules {
	info := activity.GetInfo(ctx)
	return Schedules{
		Service:   activity.GetClient(ctx).WorkflowService(),
		Namespace: info.Namespace,
		Identity:  "job system, for " + info.WorkflowExecution.ID,
	}
}

// changeSchedule edits a job's schedule until edit gives nil. Edit is given nil if
// the job has no schedule, or not one of ours.
func changeSchedule(ctx context.Context, jobID string, edit func(*schedule) *ScheduleEdit) error {
	err := schedulesOf(ctx).Change(ctx, jobID, func(now *workflowservice.DescribeScheduleResponse) (*ScheduleEdit, error) {
		return edit(ownSchedule(jobID, now)), nil
	})
	if isGone(err) {
		edit(nil)
		return nil
	}
	if err != nil {
		return fmt.Errorf("change schedule %s: %w", contract.ScheduleID(jobID), err)
	}
	return nil
}

func isGone(err error) bool {
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound)
}

// schedule is a job's schedule as the server has it.
type schedule struct {
	*workflowservice.DescribeScheduleResponse
	specHash string
}

// ownSchedule gives nil if there is no schedule, or not one of ours.
func ownSchedule(jobID string, now *workflowservice.DescribeScheduleResponse) *schedule {
	if now == nil || keyword(now.GetSearchAttributes(), contract.AttributeJobID.GetName()) != jobID {
		return nil
	}
	return &schedule{now, specHashOf(now.GetSearchAttributes())}
}

// withPause is the schedule paused, or resumed, with a note.
func (s *schedule) withPause(paused bool, note string) *ScheduleEdit {
	s.GetSchedule().State.Paused, s.GetSchedule().State.Notes = paused, note
	return &ScheduleEdit{Schedule: s.GetSchedule()}
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

// tellProbe tells a job's probe, if there is one.
func tellProbe(ctx context.Context, jobID string, news ProbeNews) error {
	err := activity.GetClient(ctx).SignalWorkflow(ctx, contract.ProbeWorkflowID(jobID), "", SignalProbe, news)
	if isGone(err) {
		return nil
	}
	return err
}
