package schedules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// shapes are recurring jobs of every kind, by key. They are far from due.
func shapes() map[string]job.Recurring {
	soon := time.Date(2090, 3, 1, 12, 30, 15, 0, time.FixedZone("", 3600))
	day := job.Duration(24 * time.Hour)
	all := map[string]job.Recurring{
		"interval":       {RecurEvery: day},
		"offset":         {RecurEvery: day, Offset: new(job.Duration(7 * time.Hour))},
		"offset-zero":    {RecurEvery: day, Offset: new(job.Duration(0)), StartAt: soon},
		"jitter":         {RecurEvery: day, Jitter: job.Duration(90*time.Minute + time.Millisecond)},
		"offset-jitter":  {RecurEvery: day, Offset: new(job.Duration(time.Second)), Jitter: job.Duration(time.Minute)},
		"limits":         {RecurEvery: day, StartAt: soon, EndAt: soon.Add(36*time.Hour + time.Nanosecond)},
		"start":          {Cron: "0 3 * * *", StartAt: soon},
		"end":            {Cron: "0 3 * * *", EndAt: soon},
		"catchup":        {RecurEvery: day, CatchupWindow: job.Duration(10 * time.Second)},
		"cron":           {Cron: "30 4 1 1 *"},
		"cron-zone":      {Cron: "30 4 1 jan,6-8 *", TimeZone: "Europe/Prague", Jitter: job.Duration(time.Minute)},
		"cron-utc":       {Cron: "30 4 * 2 *", TimeZone: "UTC", StartAt: soon},
		"cron-uneven":    {Cron: "1,2,3,7,50-55/2,59 */5 28-31 2 *", StartAt: soon},
		"cron-weekdays":  {Cron: "0 9-17 * * mon-fri", TimeZone: "America/Los_Angeles", StartAt: soon},
		"cron-sunday":    {Cron: "0 3 * * 7", StartAt: soon},
		"cron-either":    {Cron: "0 0 13 * fri", StartAt: soon},
		"cron-every-min": {Cron: "* * * * *", StartAt: soon},
	}
	for _, overlap := range job.Overlaps() {
		all[string(overlap)] = job.Recurring{RecurEvery: day, Overlap: overlap}
	}
	return all
}

func declareShapes() []job.Job {
	var jobs []job.Job
	for key, r := range shapes() {
		jobs = append(jobs, declare(key, job.Trigger{Recurring: &r}))
	}
	return jobs
}

func TestAPlanIsEmptyAfterApplyForEveryShape(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	jobs := declareShapes()
	f.apply(f.plan(false, jobs...))
	f.inSync(false, jobs...)
	for i := range jobs {
		jobs[i].Options.Description = "updated"
	}
	plan := f.plan(false, jobs...)
	require.Equal(t, len(jobs), plan.Count(schedules.ActionUpdate))
	f.apply(plan)
	f.inSync(false, jobs...)
}

func TestHandEditsAreSeenAndUndone(t *testing.T) {
	type edit struct {
		key    string
		change func(*sdk.Schedule)
		want   schedules.Field
	}
	may := time.Date(2091, 5, 1, 0, 0, 0, 0, time.UTC)
	edits := []edit{
		{"offset", func(s *sdk.Schedule) { s.Spec.Intervals[0].Every = time.Hour * 12 }, schedules.Field{
			Path: "schedule.intervals", Old: `["every PT12H at PT7H"]`, New: `["every P1D at PT7H"]`,
		}},
		{"offset-zero", func(s *sdk.Schedule) { s.Spec.Intervals[0].Offset = time.Minute }, schedules.Field{
			Path: "schedule.intervals", Old: `["every P1D at PT1M"]`, New: `["every P1D at PT0S"]`,
		}},
		{"interval", func(s *sdk.Schedule) { s.Spec.CronExpressions = []string{"5 4 * * 1-5"} }, schedules.Field{
			Path: "schedule.calendars", Old: `["5 4 * * 1-5"]`,
		}},
		{"jitter", func(s *sdk.Schedule) { s.Spec.Jitter = 0 }, schedules.Field{
			Path: "schedule.jitter", New: `"PT1H30M0.001S"`,
		}},
		{"start", func(s *sdk.Schedule) { s.Spec.StartAt = may }, schedules.Field{
			Path: "schedule.start_at", Old: `"2091-05-01T00:00:00Z"`, New: `"2090-03-01T11:30:15Z"`,
		}},
		{"end", func(s *sdk.Schedule) { s.Spec.EndAt = time.Time{} }, schedules.Field{
			Path: "schedule.end_at", New: `"2090-03-01T11:30:15Z"`,
		}},
		{"cron", func(s *sdk.Schedule) {
			s.Spec.Calendars = nil
			s.Spec.CronExpressions = []string{"31 4 1 1 *"}
		}, schedules.Field{Path: "schedule.calendars", Old: `["31 4 1 1 *"]`, New: `["30 4 1 1 *"]`}},
		{"cron-utc", func(s *sdk.Schedule) { s.Spec.Calendars[0].Second = []sdk.ScheduleRange{{Start: 7}} }, schedules.Field{
			Path: "schedule.calendars", Old: `["second 7: 30 4 * 2 *"]`, New: `["30 4 * 2 *"]`,
		}},
		{"cron-sunday", func(s *sdk.Schedule) { s.Spec.Calendars[0].Year = []sdk.ScheduleRange{{Start: 2095}} }, schedules.Field{
			Path: "schedule.calendars", Old: `["0 3 * * 0 in 2095"]`, New: `["0 3 * * 0"]`,
		}},
		{"cron-either", func(s *sdk.Schedule) { s.Spec.Calendars = s.Spec.Calendars[:1] }, schedules.Field{
			Path: "schedule.calendars", Old: `["0 0 13 * *"]`, New: `["0 0 * * 5","0 0 13 * *"]`,
		}},
		{"cron-zone", func(s *sdk.Schedule) { s.Spec.TimeZoneName = "Europe/Berlin" }, schedules.Field{
			Path: "schedule.time_zone", Old: `"Europe/Berlin"`, New: `"Europe/Prague"`,
		}},
		{"cron-weekdays", func(s *sdk.Schedule) {
			s.Spec.Skip = []sdk.ScheduleCalendarSpec{{Hour: []sdk.ScheduleRange{{Start: 12}}}}
		}, schedules.Field{Path: "schedule.skip", Old: `["0 12 * * *"]`}},
		{"catchup", func(s *sdk.Schedule) { s.Policy.CatchupWindow = time.Hour }, schedules.Field{
			Path: "schedule.catchup_window", Old: `"PT1H"`, New: `"PT10S"`,
		}},
		{"buffer_one", func(s *sdk.Schedule) { s.Policy.Overlap = enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL }, schedules.Field{
			Path: "schedule.overlap", Old: `"allow_all"`, New: `"buffer_one"`,
		}},
		{"skip", func(s *sdk.Schedule) { s.Policy.PauseOnFailure = true }, schedules.Field{
			Path: "schedule.pause_on_failure", Old: `true`,
		}},
		{"allow_all", func(s *sdk.Schedule) {
			s.Action.(*sdk.ScheduleWorkflowAction).TaskQueue = "elsewhere" //nolint:forcetypeassert // Its only kind.
		}, schedules.Field{Path: "schedule.task_queue", Old: `"elsewhere"`, New: `"testing"`}},
	}
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	jobs := declareShapes()
	f.apply(f.plan(false, jobs...))
	for _, e := range edits {
		err := f.schedule(e.key).Update(t.Context(), sdk.ScheduleUpdateOptions{
			DoUpdate: func(in sdk.ScheduleUpdateInput) (*sdk.ScheduleUpdate, error) {
				schedule := in.Description.Schedule
				e.change(&schedule)
				return &sdk.ScheduleUpdate{Schedule: &schedule}, nil
			},
		})
		require.NoError(t, err, e.key)
	}
	var plan *schedules.Plan
	stacktest.WaitFor(t, "the edits to show", func() (bool, error) {
		plan = f.plan(false, jobs...)
		return plan.Count(schedules.ActionUpdate) == len(edits), nil
	})
	seen := map[string][]schedules.Field{}
	for _, c := range plan.Changes {
		if len(c.Fields) > 0 {
			seen[c.JobID[len("do_nothing."):]] = c.Fields
		}
	}
	for _, e := range edits {
		require.Equal(t, []schedules.Field{e.want}, seen[e.key], e.key)
	}
	f.apply(plan)
	f.inSync(false, jobs...)
}

func (f *fixture) schedule(key string) sdk.ScheduleHandle {
	return f.temporal.ScheduleClient().GetHandle(f.Context(), contract.ScheduleID("do_nothing."+key))
}

// starts asks the server for the times of a job's starts in 2090, in its zone.
func (f *fixture) starts(j job.Job, from, to time.Time) []string {
	f.Helper()
	response, err := f.temporal.WorkflowService().ListScheduleMatchingTimes(f.Context(), &workflowservice.ListScheduleMatchingTimesRequest{
		Namespace: f.client.Namespace(), ScheduleId: contract.ScheduleID(j.ID),
		StartTime: timestamppb.New(from), EndTime: timestamppb.New(to),
	})
	require.NoError(f, err)
	zone, err := time.LoadLocation(j.Recurring.Zone())
	require.NoError(f, err)
	var times []string
	for _, at := range response.GetStartTime() {
		times = append(times, at.AsTime().In(zone).Format("Mon 01-02 15:04:05"))
	}
	return times
}

func TestStartsAreThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	june := time.Date(2090, 6, 1, 0, 0, 0, 0, time.UTC)
	july := june.AddDate(0, 1, 0)
	for key, c := range map[string]struct {
		recurring job.Recurring
		want      []string
	}{
		"either": {job.Recurring{Cron: "0 0 13 * fri"}, []string{
			"Fri 06-02 00:00:00", "Fri 06-09 00:00:00", "Tue 06-13 00:00:00", "Fri 06-16 00:00:00",
			"Fri 06-23 00:00:00", "Fri 06-30 00:00:00",
		}},
		"both": {job.Recurring{Cron: "0 0 */7 * fri"}, nil},
		"zone": {job.Recurring{Cron: "30 4 1,2 * *", TimeZone: "Europe/Prague"}, []string{
			"Thu 06-01 04:30:00", "Fri 06-02 04:30:00", "Sat 07-01 04:30:00",
		}},
		"limited": {job.Recurring{
			RecurEvery: job.Duration(24 * time.Hour), Offset: new(job.Duration(time.Hour)),
			StartAt: june.Add(25 * time.Hour), EndAt: june.Add(73 * time.Hour),
		}, []string{"Fri 06-02 01:00:00", "Sat 06-03 01:00:00", "Sun 06-04 01:00:00"}},
		"weekdays": {job.Recurring{Cron: "59 23 20-31 6 *", StartAt: june.AddDate(0, 0, 27)}, []string{
			"Wed 06-28 23:59:00", "Thu 06-29 23:59:00", "Fri 06-30 23:59:00",
		}},
	} {
		j := declare(key, job.Trigger{Recurring: &c.recurring})
		f.apply(f.plan(false, j))
		require.Equal(t, c.want, f.starts(j, june, july.Add(5*time.Hour)), key)
	}
}

func TestAJobThatHasEndedIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	j := declare("over", job.Trigger{Recurring: &job.Recurring{Cron: "0 3 * * *", EndAt: time.Unix(1, 0)}})
	plan := f.plan(false, j)
	require.True(t, plan.Empty())
	require.Equal(t, "has ended: it has no start left before its end_at", plan.Changes[0].Note)

	j.Recurring = &job.Recurring{Cron: "0 3 * * *"}
	f.apply(f.plan(false, j))
	j.Recurring = &job.Recurring{Cron: "0 3 * * *", EndAt: time.Unix(1, 0)}
	f.apply(f.plan(false, j))
	f.inSync(false, j)
	live, err := f.client.Jobs.LiveSchedule(t.Context(), j.ID)
	require.NoError(t, err)
	require.Empty(t, live.Next())
}

func TestCronJobsRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	j := declare("cron", job.Trigger{Recurring: &job.Recurring{Cron: "0 3 1 1 *", TimeZone: "Europe/Prague"}})
	f.apply(f.plan(false, j))
	// A start that was due is caught up at once.
	require.NoError(t, f.schedule("cron").Backfill(t.Context(), sdk.ScheduleBackfillOptions{Backfill: []sdk.ScheduleBackfill{{
		Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
	}}}))
	stacktest.WaitFor(t, "the run", func() (bool, error) {
		runs, err := f.client.Runs.List(t.Context(), client.RunFilter{JobID: j.ID, Status: client.RunCompleted})
		if err == nil && len(runs) == 1 {
			require.Equal(t, "2026-01-01T02:00:00Z", runs[0].Scheduled.UTC().Format(time.RFC3339))
		}
		return len(runs) == 1, err
	})
}
