package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/wording"
)

// MaxStarts is how many starts of a schedule a server lists at once.
const MaxStarts = 1000

// farFuture is after the last start that a schedule can have.
var farFuture = time.Date(2102, 1, 1, 0, 0, 0, 0, time.UTC)

// recurring finds a recurring job. It gives [ErrNotFound] when there is no job
// of the id, and an [UnsupportedError] when the job has another mode.
func (c *conn) recurring(ctx context.Context, jobID, action string) (*Live, error) {
	live, err := c.jobs().Live(ctx, jobID)
	if err != nil {
		return nil, err
	}
	if live.Schedule == nil {
		return nil, &UnsupportedError{Action: action, JobID: jobID, Mode: live.Job.Mode()}
	}
	return live, nil
}

// starts asks the server for the starts of a job after from and up to to, jitter
// included: at most MaxStarts of them.
func (c *conn) starts(ctx context.Context, jobID string, from, to time.Time) ([]time.Time, error) {
	response, err := read(ctx, c, c.temporal.WorkflowService().ListScheduleMatchingTimes, &workflowservice.ListScheduleMatchingTimesRequest{
		Namespace: c.namespace, ScheduleId: contract.ScheduleID(jobID),
		StartTime: timestamppb.New(from), EndTime: timestamppb.New(to),
	})
	if err != nil {
		return nil, explain("starts of job "+jobID, err)
	}
	times := make([]time.Time, len(response.GetStartTime()))
	for n, at := range response.GetStartTime() {
		times[n] = at.AsTime()
	}
	return times, nil
}

// NextStarts are the coming starts of a recurring job.
type NextStarts struct {
	JobID string `json:"job_id"`
	// Starts are when the schedule will start runs, jitter included and without
	// what is skipped. Those of a paused job do not take place while it is.
	Starts []time.Time `json:"starts"`
	// TimeZone is the one that the job's cron text is meant in.
	TimeZone    string `json:"time_zone"`
	Paused      bool   `json:"paused"`
	PauseReason string `json:"pause_reason,omitempty"`
	// PauseEnd is when the pause ends by itself.
	PauseEnd time.Time `json:"pause_end,omitzero"`
	// HeldUntil is the next run of a failing job: starts before it are held back.
	HeldUntil time.Time `json:"held_until,omitzero"`
	// Skipped are coming starts that will not take place since someone said so.
	Skipped []SkippedStart `json:"skipped,omitempty"`
}

// NextStarts asks the server for the next starts of a recurring job, from 1 to
// MaxStarts of them.
func (c *JobClient) NextStarts(ctx context.Context, jobID string, count int) (*NextStarts, error) {
	live, err := c.recurring(ctx, jobID, "listing starts")
	if err != nil {
		return nil, err
	}
	now := time.Now()
	times, err := c.starts(ctx, jobID, now, farFuture)
	if err != nil {
		return nil, err
	}
	next := &NextStarts{
		JobID: jobID, Starts: times[:min(max(count, 0), len(times))], TimeZone: zoneOf(live),
		Paused: live.Paused, Skipped: comingSkips(live.Schedule.GetSchedule().GetSpec(), now),
	}
	if live.Paused {
		next.PauseReason, next.PauseEnd = live.PauseReason, live.PauseEnd
	}
	failing, err := c.failingSchedule(ctx, live)
	if failing != nil && failing.NextRun.After(now) {
		next.HeldUntil = failing.NextRun
	}
	return next, err
}

func zoneOf(live *Live) string {
	if zone := live.Schedule.GetSchedule().GetSpec().GetTimezoneName(); zone != "" {
		return zone
	}
	return "UTC"
}

// UpcomingStart is one start of a job.
type UpcomingStart struct {
	At    time.Time `json:"at"`
	JobID string    `json:"job_id"`
	Type  string    `json:"type"`
	Owner string    `json:"owner,omitempty"`
}

// Upcoming is what is due soon over all jobs.
type Upcoming struct {
	Until time.Time `json:"until"`
	// Count is how many starts there are, of how many Jobs.
	Count int `json:"count"`
	Jobs  int `json:"jobs"`
	// Peak is the second with the most starts, and PeakCount how many they are.
	Peak      time.Time `json:"peak,omitzero"`
	PeakCount int       `json:"peak_count"`
	// Starts are ordered by time, then by job.
	Starts []UpcomingStart `json:"starts"`
}

// Upcoming lists the starts of recurring jobs that are not paused, up to a time.
// The filter's type and owner count. The list of jobs lags behind by about a
// second.
func (c *JobClient) Upcoming(ctx context.Context, until time.Time, filter JobFilter) (*Upcoming, error) {
	now := time.Now()
	var rows []JobRow
	var times [][]time.Time
	err := c.listSchedules(ctx, "", func(entry *schedulepb.ScheduleListEntry) {
		facts, ours := scheduled(entry)
		if row := facts.Row(now); ours && !facts.Schedule.Paused && filter.matches(row) {
			rows, times = append(rows, row), append(times, facts.Schedule.Next)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := temporalclient.Each(len(rows), 0, func(n int) error {
		var err error
		times[n], err = c.startsUntil(ctx, rows[n].ID, times[n], now, until)
		return err
	}); err != nil {
		return nil, err
	}
	upcoming := &Upcoming{Until: until, Starts: []UpcomingStart{}}
	seconds := map[int64]int{}
	for n, row := range rows {
		if len(times[n]) > 0 {
			upcoming.Jobs++
		}
		for _, at := range times[n] {
			upcoming.Starts = append(upcoming.Starts, UpcomingStart{at, row.ID, row.Type, row.Owner})
			seconds[at.Unix()]++
		}
	}
	upcoming.Count = len(upcoming.Starts)
	for second, count := range seconds {
		at := time.Unix(second, 0).UTC()
		if count > upcoming.PeakCount || count == upcoming.PeakCount && at.Before(upcoming.Peak) {
			upcoming.Peak, upcoming.PeakCount = at, count
		}
	}
	slices.SortFunc(upcoming.Starts, func(a, b UpcomingStart) int {
		if order := a.At.Compare(b.At); order != 0 {
			return order
		}
		return strings.Compare(a.JobID, b.JobID)
	})
	return upcoming, nil
}

// startsUntil goes on from the starts that a list shows, the next few, and asks
// the server only where they do not reach up to the end.
func (c *conn) startsUntil(ctx context.Context, jobID string, listed []time.Time, now, until time.Time) ([]time.Time, error) {
	if len(listed) == 0 {
		return nil, nil // It has ended.
	}
	last := listed[len(listed)-1]
	listed = slices.DeleteFunc(listed, func(at time.Time) bool { return !at.After(now) || at.After(until) })
	if last.After(until) {
		return listed, nil
	}
	for after := maxTime(last, now); ; {
		more, err := c.starts(ctx, jobID, after, until)
		if err != nil {
			return nil, err
		}
		listed = append(listed, more...)
		if len(more) < MaxStarts {
			return listed, nil
		}
		after = more[len(more)-1]
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// confirmBackfill is how long starts that were just due may still be made up for
// by the schedule itself.
const confirmBackfill = 2 * time.Minute

// BackfillStarts lists the starts of a recurring job from a time up to another,
// both inclusive: those that Backfill would run. It refuses what cannot be made
// up for: times that are not past, more than [MaxStarts] starts, those of a failing job
// that would be held back, and those that give way to later ones.
func (c *JobClient) BackfillStarts(ctx context.Context, jobID string, from, to time.Time) ([]time.Time, error) {
	live, err := c.recurring(ctx, jobID, "backfill")
	if err != nil {
		return nil, err
	}
	r := live.Job.Recurring
	switch now := time.Now(); {
	case from.After(to):
		return nil, stateErrorf("the time to backfill from, %s, is after the time up to which, %s", wording.Stamp(from), wording.Stamp(to))
	case to.After(now):
		return nil, stateErrorf("the time to backfill up to, %s, is not past", wording.Stamp(to))
	case r != nil && r.GivesWay() && r.Misfire == job.MisfireSkip && now.Sub(to) < confirmBackfill:
		return nil, stateErrorf("job %s takes no backfill up to %s: with misfire skip, a start of the last %s gives way to later ones",
			jobID, wording.Stamp(to), wording.Span(confirmBackfill))
	}
	times, err := c.starts(ctx, jobID, from.Add(-time.Millisecond), to)
	if err != nil {
		return nil, err
	}
	if len(times) == MaxStarts {
		more, err := c.starts(ctx, jobID, times[len(times)-1], to)
		if err != nil {
			return nil, err
		}
		if len(more) > 0 {
			return nil, stateErrorf("job %s has more than %d starts from %s to %s: backfill a part at a time",
				jobID, MaxStarts, wording.Stamp(from), wording.Stamp(to))
		}
	}
	if len(times) == 0 {
		return nil, nil
	}
	if err := c.checkHeldBack(ctx, live, times[0]); err != nil {
		return nil, err
	}
	return times, checkBackfill(live.Job, times)
}

// checkHeldBack refuses a start of a failing job whose run would be held back.
func (c *conn) checkHeldBack(ctx context.Context, live *Live, start time.Time) error {
	failing, err := c.failingSchedule(ctx, live)
	if err != nil || failing == nil || !start.Before(failing.NextRun) {
		return err
	}
	return stateErrorf("job %s is failing: starts before %s are held back, so that a backfill would do nothing; trigger it, and backfill once a run has completed",
		live.Job.ID, wording.Stamp(failing.NextRun))
}

// checkBackfill refuses starts that would do nothing, since they give way to
// later ones.
func checkBackfill(j job.Job, times []time.Time) error {
	now := time.Now()
	for _, at := range times {
		if j.Recurring == nil || j.Recurring.GivesWayTo(j.ID, at, now).IsZero() {
			continue
		}
		hint := ""
		if j.Recurring.Misfire != job.MisfireOnce {
			hint = ", and those before " + wording.Stamp(now.Add(-j.Recurring.TakenAsMissed().Std())) + " do not"
		}
		return stateErrorf("job %s takes no backfill of its start at %s: with misfire %s and overlap %s it gives way to later ones%s",
			j.ID, wording.Stamp(at), j.Recurring.Misfire, j.Recurring.OverlapPolicy(), hint)
	}
	return nil
}

// Backfill runs a recurring job for the starts that BackfillStarts lists, one
// after the other; a run under way ends first. It works while the job is paused.
// It returns once the schedule has taken the request.
func (c *JobClient) Backfill(ctx context.Context, jobID string, from, to time.Time) ([]time.Time, error) {
	times, err := c.BackfillStarts(ctx, jobID, from, to)
	if err != nil || len(times) == 0 {
		return times, err
	}
	if err := c.schedules().backfill(ctx, jobID, from, to); err != nil {
		return nil, fmt.Errorf("backfill job %s: %w", jobID, err)
	}
	return times, nil
}
