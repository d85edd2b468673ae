package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	schedulepb "go.temporal.io/api/schedule/v1"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/job/wording"
)

// skipComment begins the comment of a calendar that keeps one start from taking
// place: "skip-next 2027-03-01T12:30:00Z by NAME".
const skipComment = "skip-next "

// maxSkips bounds the skipped starts of a schedule, each of which is a calendar
// that the server looks at for every start. Those that are past stay, so that they explain
// why there is no run, until there is no room for them.
const maxSkips = 100

// maxComment is the longest comment of a calendar, in bytes.
const maxComment = 200

// SkippedStart is a start that does not take place since someone said so.
type SkippedStart struct {
	At time.Time `json:"at"`
	By string    `json:"by,omitempty"`
}

// skipCalendar excludes one second of the clocks in a zone.
func skipCalendar(skip SkippedStart, zone *time.Location) *schedulepb.StructuredCalendarSpec {
	only := func(value int) []*schedulepb.Range {
		v := int32(value) //nolint:gosec // Of a clock or a calendar.
		return []*schedulepb.Range{{Start: v, End: v, Step: 1}}
	}
	at := skip.At.In(zone)
	comment := skipComment + skip.At.UTC().Format(time.RFC3339) + " by " + skip.By
	return &schedulepb.StructuredCalendarSpec{
		Second: only(at.Second()), Minute: only(at.Minute()), Hour: only(at.Hour()),
		DayOfMonth: only(at.Day()), Month: only(int(at.Month())), Year: only(at.Year()),
		DayOfWeek: []*schedulepb.Range{{Start: 0, End: 6, Step: 1}},
		Comment:   strings.ToValidUTF8(comment[:min(len(comment), maxComment)], ""),
	}
}

// readSkip reads the comment of a calendar that skipCalendar made.
func readSkip(calendar *schedulepb.StructuredCalendarSpec) (SkippedStart, bool) {
	text, ours := strings.CutPrefix(calendar.GetComment(), skipComment)
	if !ours {
		return SkippedStart{}, false
	}
	moment, by, _ := strings.Cut(text, " by ")
	at, err := time.Parse(time.RFC3339, moment)
	return SkippedStart{At: at, By: by}, err == nil
}

// isSkip reports whether a calendar among those that a spec excludes is one of ours,
// made by SkipNext and not edited since.
func isSkip(spec *schedulepb.ScheduleSpec, calendar *schedulepb.StructuredCalendarSpec) bool {
	skip, ok := readSkip(calendar)
	if !ok {
		return false
	}
	zone, err := time.LoadLocation(spec.GetTimezoneName())
	return err == nil && proto.Equal(calendar, skipCalendar(skip, zone))
}

// comingSkips are the starts after a time that SkipNext keeps from taking place.
func comingSkips(spec *schedulepb.ScheduleSpec, now time.Time) []SkippedStart {
	var skips []SkippedStart
	for _, calendar := range spec.GetExcludeStructuredCalendar() {
		if skip, ok := readSkip(calendar); ok && skip.At.After(now) {
			skips = append(skips, skip)
		}
	}
	slices.SortFunc(skips, func(a, b SkippedStart) int { return a.At.Compare(b.At) })
	return skips
}

// withSkips is a spec with the calendars of skips, in its own zone.
func withSkips(spec *schedulepb.ScheduleSpec, skips []SkippedStart) (*schedulepb.ScheduleSpec, error) {
	if len(skips) == 0 {
		return spec, nil
	}
	zone, err := time.LoadLocation(spec.GetTimezoneName())
	if err != nil {
		return nil, fmt.Errorf("time zone: %w", err)
	}
	changed := proto.CloneOf(spec)
	for _, skip := range skips {
		changed.ExcludeStructuredCalendar = append(changed.ExcludeStructuredCalendar, skipCalendar(skip, zone))
	}
	return changed, nil
}

// SkipResult is what SkipNext did.
type SkipResult struct {
	JobID string `json:"job_id"`
	// Skipped is the nominal time of the start that does not take place.
	Skipped time.Time `json:"skipped"`
	// Next is when the schedule starts a run next; zero if never.
	Next time.Time `json:"next,omitzero"`
}

// SkipNext keeps the next start of a recurring job from taking place, and no
// other one: where clocks go back, both starts at the time that comes twice. by
// names who wants it. Called again it skips the start after that. If someone
// else skips the same start at the same time, it is skipped once.
//
// It holds while plans are applied. ErrTooLate says that
// the start was due before the server had taken the change.
func (c *JobClient) SkipNext(ctx context.Context, jobID, by string) (*SkipResult, error) {
	live, err := c.recurring(ctx, jobID, "skipping a start")
	if err != nil {
		return nil, err
	}
	at, due, err := c.nextNominal(ctx, live)
	if err != nil {
		return nil, err
	}
	skip := SkippedStart{At: at, By: by}
	if err := c.changeSchedule(ctx, jobID, skip.edit); err != nil {
		return nil, err
	}
	if !time.Now().Before(due) {
		return nil, fmt.Errorf("%w the start of %s: it may have a run", ErrTooLate, wording.Stamp(at))
	}
	result := &SkipResult{JobID: jobID, Skipped: at}
	next, err := c.NextStarts(ctx, jobID, 1)
	if err == nil && len(next.Starts) > 0 {
		result.Next = next.Starts[0]
	}
	return result, err
}

// nextNominal is the time, before jitter, of the next start that takes place, and
// the time at which it is due.
func (c *conn) nextNominal(ctx context.Context, live *Live) (nominal, due time.Time, err error) {
	jobID := live.Job.ID
	times, err := c.starts(ctx, jobID, time.Now(), farFuture)
	if err != nil {
		return nominal, due, err
	}
	if len(times) == 0 {
		return nominal, due, stateErrorf("job %s has no start to skip: its schedule has ended", jobID)
	}
	due = times[0]
	spec := live.Schedule.GetSchedule().GetSpec()
	jitter := spec.GetJitter().AsDuration()
	if jitter == 0 || live.Job.Recurring == nil {
		return due, due, nil
	}
	all, err := live.Job.Recurring.Times(jobID)
	if err != nil {
		return nominal, due, err
	}
	skipped := comingSkips(spec, time.Time{})
	for at := range all.After(due.Add(-jitter - time.Second)) {
		if at.After(due) {
			break
		}
		if !slices.ContainsFunc(skipped, func(s SkippedStart) bool { return s.At.Equal(at) }) {
			nominal = at
		}
	}
	if nominal.IsZero() {
		return nominal, due, stateErrorf("the schedule of job %s is not the one of its definition: apply it first", jobID)
	}
	return nominal, due, nil
}

// edit is the schedule without the start, nil if it has none such.
func (skip SkippedStart) edit(live *Live) (*scheduleEdit, error) {
	schedule := live.Schedule.GetSchedule()
	spec := schedule.GetSpec()
	// From the epoch: the start may have come since.
	if slices.ContainsFunc(comingSkips(spec, time.Time{}), func(s SkippedStart) bool { return s.At.Equal(skip.At) }) {
		return nil, nil //nolint:nilnil // Documented: there is nothing to do.
	}
	if coming := len(comingSkips(spec, time.Now())); coming >= maxSkips {
		return nil, stateErrorf("job %s has %d skipped starts ahead, which is the most: pause it instead", live.Job.ID, coming)
	}
	skips := comingSkips(spec, time.Time{})
	skips = skips[max(0, len(skips)-maxSkips+1):] // Without the oldest.
	spec.ExcludeStructuredCalendar = slices.DeleteFunc(spec.GetExcludeStructuredCalendar(), func(calendar *schedulepb.StructuredCalendarSpec) bool {
		return isSkip(spec, calendar)
	})
	var err error
	if schedule.Spec, err = withSkips(spec, append(skips, skip)); err != nil {
		return nil, err
	}
	return &scheduleEdit{schedule: schedule}, nil
}
