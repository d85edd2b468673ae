package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// setSchedulePaused pauses or resumes a schedule. One that is paused keeps the
// reasons that it was paused for.
func (c *conn) setSchedulePaused(ctx context.Context, jobID string, change pauseChange) (contract.Before, error) {
	if !change.End.IsZero() {
		// It comes first: an end that is noted is kept, even if the caller dies now.
		if err := c.timePause(ctx, jobID, change.End); err != nil {
			return contract.Before{}, err
		}
	}
	before := contract.Before{Unchanged: true}
	// What the edit has read is what it replaces: the server refuses any other.
	err := c.changeSchedule(ctx, jobID, func(live *Live) (*scheduleEdit, error) {
		note, same := change.note(live)
		if same {
			if before.Unchanged && change.paused {
				before.Paused, before.Reason, before.End = true, live.PauseReason, live.PauseEnd
			}
			return nil, nil //nolint:nilnil // It is as it shall be.
		}
		schedule := live.Schedule.GetSchedule()
		if err := setPaused(schedule, change.paused, note, time.Now()); err != nil {
			return nil, err
		}
		before = contract.Before{Paused: live.Paused}
		if live.Paused { // One that is not paused has the note of what was done last.
			before.Reason, before.End = live.PauseReason, live.PauseEnd
		}
		edit := &scheduleEdit{schedule: schedule, refused: func() { before = contract.Before{Unchanged: true} }}
		if change.End.Equal(live.PauseEnd) {
			return edit, nil
		}
		return edit, edit.setPauseEnd(live.Schedule.GetSearchAttributes(), change.End)
	})
	return before, err
}

// note is the note that the change leaves on a schedule. It reports whether the schedule is as
// it shall be.
func (p pauseChange) note(live *Live) (note string, same bool) {
	reason := p.Reason
	switch {
	case !p.paused:
		return cmp.Or(reason, "resumed"), !live.Paused || !p.only.IsZero() && !p.only.Equal(live.PauseEnd)
	case live.Paused && p.UnlessPaused:
		return "", true
	case live.Paused:
		if reason = contract.AddReason(live.PauseReason, reason); reason == live.PauseReason && p.End.Equal(live.PauseEnd) {
			return "", true
		}
	}
	return contract.PauseText(cmp.Or(reason, "paused"), p.End), false
}

// schedules is the way to change schedules.
func (c *conn) schedules() schedules {
	return schedules{service: scheduleCalls{c}, namespace: c.namespace, identity: c.identity}
}

// changeSchedule edits the schedule of a job until edit gives nil.
func (c *conn) changeSchedule(ctx context.Context, jobID string, edit func(*Live) (*scheduleEdit, error)) error {
	return c.schedules().change(ctx, jobID, func(now *workflowservice.DescribeScheduleResponse) (*scheduleEdit, error) {
		live, err := liveSchedule(jobID, now)
		if err != nil {
			return nil, err
		}
		return edit(live)
	})
}

// scheduleCalls makes calls again while the server is busy, and explains their errors.
type scheduleCalls struct{ *conn }

func (s scheduleCalls) DescribeSchedule(ctx context.Context, in *workflowservice.DescribeScheduleRequest, _ ...grpc.CallOption) (*workflowservice.DescribeScheduleResponse, error) {
	out, err := read(ctx, s.conn, s.temporal.WorkflowService().DescribeSchedule, in)
	return out, explainSchedule(in.GetScheduleId(), err)
}

func (s scheduleCalls) UpdateSchedule(ctx context.Context, in *workflowservice.UpdateScheduleRequest, _ ...grpc.CallOption) (*workflowservice.UpdateScheduleResponse, error) {
	out, err := call(ctx, s.conn, s.temporal.WorkflowService().UpdateSchedule, in)
	return out, explainSchedule(in.GetScheduleId(), err)
}

func (s scheduleCalls) PatchSchedule(ctx context.Context, in *workflowservice.PatchScheduleRequest, _ ...grpc.CallOption) (*workflowservice.PatchScheduleResponse, error) {
	out, err := call(ctx, s.conn, s.temporal.WorkflowService().PatchSchedule, in)
	return out, explainSchedule(in.GetScheduleId(), err)
}

func explainSchedule(id string, err error) error {
	return explain("schedule of job "+strings.TrimPrefix(id, contract.ScheduleID("")), err)
}

// triggerSchedule asks the schedule itself, so that its overlap policy holds,
// and waits until the run is there.
func (c *conn) triggerSchedule(ctx context.Context, j job.Job) (RunRef, error) {
	triggered, err := c.schedules().trigger(ctx, j.ID, j.Recurring, enumspb.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED)
	switch {
	case errors.Is(err, ErrNotFound):
		return RunRef{}, err
	case err != nil:
		return RunRef{}, fmt.Errorf("trigger job %s: %w", j.ID, err)
	case triggered.waits:
		return RunRef{}, stateErrorf("job %s was triggered, and its run waits for one that is under way", j.ID)
	case triggered.started == nil:
		return RunRef{}, stateErrorf("job %s was not started: a run of it is under way and its overlap policy is to skip", j.ID)
	}
	return RunRef{WorkflowID: triggered.started.GetWorkflowId(), RunID: triggered.started.GetRunId()}, nil
}
