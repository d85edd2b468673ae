package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// ScheduleChange says what a schedule shall become.
type ScheduleChange struct {
	Job      job.Job
	Schedule *schedulepb.Schedule
	// Create says that no schedule was there; otherwise Expected says whether the
	// one that is there is the one that the change was made for.
	Create   bool
	Expected func(*Live) bool
	// InSync says whether the one that is there is as it shall be.
	InSync func(*Live) bool
	// SetPause takes the pause of Schedule as well. Otherwise a schedule that is
	// there keeps its own, unless the definition of the job changes it.
	SetPause bool
}

// PutSchedule creates the schedule of a recurring job, or makes the one that is
// there like it. It returns once the server shows the change. A schedule that
// someone else has changed meanwhile is left alone, and gives [ErrMoved].
func (c *ApplyClient) PutSchedule(ctx context.Context, change ScheduleChange) error {
	if change.Create {
		created, err := c.createSchedule(ctx, change)
		if created || err != nil {
			return err
		}
	}
	err := c.changeSchedule(ctx, change.Job.ID, change.edit)
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("schedule %s was removed by someone else meanwhile: %w", contract.ScheduleID(change.Job.ID), ErrMoved)
	}
	return err
}

// createSchedule reports false when there is a schedule of the name.
func (c *conn) createSchedule(ctx context.Context, change ScheduleChange) (bool, error) {
	m, err := temporalclient.JobMetadata(change.Job)
	if err != nil {
		return false, err
	}
	memo, err := temporalclient.ScheduleMemo(change.Job)
	if err != nil {
		return false, err
	}
	id := contract.ScheduleID(change.Job.ID)
	_, err = call(ctx, c, c.temporal.WorkflowService().CreateSchedule, &workflowservice.CreateScheduleRequest{
		Namespace: c.namespace, ScheduleId: id, Schedule: change.Schedule, SearchAttributes: m.SearchAttributes, Memo: memo,
		Identity: c.identity, RequestId: newRequestID(),
	})
	var exists *serviceerror.AlreadyExists
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &exists) || errors.As(err, &started) || errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return false, nil
	}
	return err == nil, explain("create schedule "+id, err)
}

// edit is what is to be written in place of what is there, nil if that is as it
// shall be.
func (change ScheduleChange) edit(live *Live) (*scheduleEdit, error) {
	id := contract.ScheduleID(change.Job.ID)
	if change.InSync(live) && (!change.SetPause || live.Paused == change.Schedule.GetState().GetPaused()) {
		return nil, nil //nolint:nilnil // Documented: there is nothing to do.
	}
	if change.Create || !change.Expected(live) {
		return nil, fmt.Errorf("schedule %s was changed by someone else meanwhile: %w", id, ErrMoved)
	}
	m, err := temporalclient.JobMetadata(change.Job)
	if err != nil {
		return nil, err
	}
	memo, err := temporalclient.ScheduleMemo(change.Job)
	if err != nil {
		return nil, err
	}
	schedule, err := change.over(live)
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", id, err)
	}
	edit := &scheduleEdit{schedule: schedule, attributes: m.SearchAttributes, memo: memo}
	if _, end := contract.PauseOf(schedule.GetState().GetNotes(), contract.FormatPauseEnd(live.PauseEnd)); !end.IsZero() {
		err = edit.setPauseEnd(edit.attributes, end) // It goes on.
	}
	return edit, err
}

// over is the schedule to write in place of the one that is there: everything
// but the state, of which the pause is people's, and the rest the server's, and
// the starts that people have skipped.
func (change ScheduleChange) over(live *Live) (*schedulepb.Schedule, error) {
	state := live.Schedule.GetSchedule().GetState()
	if state == nil {
		state = &schedulepb.ScheduleState{}
	}
	spec, err := withSkips(change.Schedule.GetSpec(), comingSkips(live.Schedule.GetSchedule().GetSpec(), time.Time{}))
	if err != nil {
		return nil, err
	}
	schedule := &schedulepb.Schedule{
		Spec: spec, Action: proto.CloneOf(change.Schedule.GetAction()), Policies: change.Schedule.GetPolicies(), State: state,
	}
	if err := keepPauses(schedule, pausesOf(live.Schedule.GetSchedule())); err != nil {
		return nil, err
	}
	if change.SetPause || live.Job.Options.Paused != change.Job.Options.Paused {
		paused, note := change.Schedule.GetState().GetPaused(), change.Schedule.GetState().GetNotes()
		if note == "" {
			note = "as declared"
		}
		if paused != state.GetPaused() {
			err = setPaused(schedule, paused, note, time.Now())
		}
		state.Notes = note
	}
	state.LimitedActions, state.RemainingActions = false, 0
	return schedule, err
}

// DeleteSchedule removes the schedule of a job. Runs under way go on. One that is
// not as expected is left alone, and gives [ErrMoved]; nil expects nothing.
func (c *ApplyClient) DeleteSchedule(ctx context.Context, jobID string, expected func(*Live) bool) error {
	live, err := c.jobs().LiveSchedule(ctx, jobID)
	if err != nil {
		return err
	}
	if live == nil {
		return fmt.Errorf("schedule of job %s: %w", jobID, ErrNotFound)
	}
	id := contract.ScheduleID(jobID)
	if expected != nil && !expected(live) {
		return fmt.Errorf("schedule %s was changed by someone else meanwhile: %w", id, ErrMoved)
	}
	_, err = call(ctx, c.conn, c.temporal.WorkflowService().DeleteSchedule, &workflowservice.DeleteScheduleRequest{
		Namespace: c.namespace, ScheduleId: id, Identity: c.identity,
	})
	return explain("delete schedule "+id, err)
}
