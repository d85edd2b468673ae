package schedules

import (
	"hash/fnv"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules/control"
)

// scheduleOf is a recurring job as a Temporal Schedule.
func scheduleOf(j job.Job) (*schedulepb.Schedule, error) {
	action, err := control.ScheduleAction(j)
	if err != nil {
		return nil, err
	}
	spec, err := scheduleSpec(j)
	if err != nil {
		return nil, err
	}
	state := &schedulepb.ScheduleState{Paused: j.Options.Paused}
	if j.Options.Paused {
		state.Notes = pausedInDefinition
	}
	return &schedulepb.Schedule{
		Spec:   spec,
		Action: action,
		Policies: &schedulepb.SchedulePolicies{
			OverlapPolicy: overlapPolicies[j.Recurring.OverlapPolicy()],
			CatchupWindow: durationpb.New(j.Recurring.Catchup().Std()),
		},
		State: state,
	}, nil
}

const pausedInDefinition = "paused in its definition"

var overlapPolicies = map[job.Overlap]enumspb.ScheduleOverlapPolicy{
	job.OverlapSkip:           enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
	job.OverlapBufferOne:      enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE,
	job.OverlapBufferAll:      enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL,
	job.OverlapCancelOther:    enumspb.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER,
	job.OverlapTerminateOther: enumspb.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER,
	job.OverlapAllowAll:       enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
}

// scheduleSpec gives the times of a recurring job.
func scheduleSpec(j job.Job) (*schedulepb.ScheduleSpec, error) {
	r := j.Recurring
	spec := &schedulepb.ScheduleSpec{}
	if r.Jitter != 0 {
		spec.Jitter = durationpb.New(r.Jitter.Std())
	}
	if !r.StartAt.IsZero() {
		spec.StartTime = timestamppb.New(r.StartAt)
	}
	if !r.EndAt.IsZero() {
		spec.EndTime = timestamppb.New(r.EndAt)
	}
	if r.Cron == "" {
		every := r.RecurEvery.Std()
		offset := phase(j.ID, every)
		if r.Offset != nil {
			offset = r.Offset.Std()
		}
		spec.Interval = []*schedulepb.IntervalSpec{{Interval: durationpb.New(every), Phase: durationpb.New(offset)}}
		return spec, nil
	}
	calendars, err := cronCalendars(r.Cron)
	if err != nil {
		return nil, err
	}
	spec.StructuredCalendar, spec.TimezoneName = calendars, r.Zone()
	return spec, nil
}

// phase spreads jobs of the same interval over it, in whole seconds, so that
// they do not all start at its beginning. It depends on the job id alone.
func phase(jobID string, every time.Duration) time.Duration {
	seconds := uint64(every / time.Second) //nolint:gosec // Validated as at least one second.
	if seconds <= 1 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(jobID))                         // A hash takes everything.
	return time.Duration(h.Sum64()%seconds) * time.Second //nolint:gosec // Below an interval.
}
