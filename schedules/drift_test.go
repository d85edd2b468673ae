package schedules_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

func (f *fixture) drift() *schedules.Drift {
	f.Helper()
	drift, err := f.syncer.Drift(f.Context(), job.ProviderTOML)
	require.NoError(f, err)
	return drift
}

// editLive edits a schedule as the Temporal CLI and the Web UI do.
func (f *fixture) editLive(key string, edit func(*schedulepb.Schedule)) {
	f.Helper()
	service, id := f.temporal.WorkflowService(), contract.ScheduleID("do_nothing."+key)
	live, err := service.DescribeSchedule(f.Context(), &workflowservice.DescribeScheduleRequest{
		Namespace: f.client.Namespace(), ScheduleId: id,
	})
	require.NoError(f, err)
	edit(live.GetSchedule())
	_, err = service.UpdateSchedule(f.Context(), &workflowservice.UpdateScheduleRequest{
		Namespace: f.client.Namespace(), ScheduleId: id, Schedule: live.GetSchedule(), RequestId: key + time.Now().String(),
	})
	require.NoError(f, err)
}

func TestDriftNamesWhatWasDoneByHand(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	require.True(t, f.drift().Empty(), "nothing was applied")
	jobs := []job.Job{
		declare("edited", recurring(time.Hour)), declare("paused", recurring(time.Hour)), declare("deleted", recurring(time.Hour)),
		declare("fine", recurring(time.Hour)), declare("loop", continuous(time.Hour)), declare("once", oneShot()),
		declare("dated", job.Trigger{Recurring: &job.Recurring{Cron: "30 4 * * mon-fri", TimeZone: "Europe/Prague", Jitter: job.Duration(time.Minute)}}),
	}
	f.apply(f.plan(false, jobs...))
	require.True(t, f.drift().Empty(), "%v", f.drift())

	f.editLive("edited", func(s *schedulepb.Schedule) {
		s.GetSpec().GetInterval()[0].Interval = durationpb.New(time.Minute)
		s.GetSpec().GetInterval()[0].Phase = durationpb.New(0)
	})
	require.NoError(t, f.schedule("paused").Pause(t.Context(), client.SchedulePauseOptions{Note: "by hand"}))
	require.NoError(t, f.schedule("deleted").Delete(t.Context()))
	_, err := f.temporal.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: "job/foreign", Paused: true,
		Spec:   client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour}}},
		Action: &client.ScheduleWorkflowAction{ID: "x", Workflow: "Other", TaskQueue: "other"},
	})
	require.NoError(t, err)

	// A change in the file is none of drift's business.
	jobs[3].Spec = []byte(`{"a":7}`)
	stacktest.WaitFor(t, "the foreign schedule to be listed", func() (bool, error) {
		return len(f.drift().Foreign) == 1, nil
	})
	drift := f.drift()
	require.Equal(t, []string{"schedule job/foreign"}, drift.Foreign)
	require.Len(t, drift.Jobs, 3)
	require.Equal(t, schedules.JobDrift{JobID: "do_nothing.deleted", Mode: job.ModeRecurring, Kind: schedules.DriftDeleted}, drift.Jobs[0])
	require.Equal(t, schedules.DriftEdited, drift.Jobs[1].Kind)
	require.Len(t, drift.Jobs[1].Fields, 1)
	require.Equal(t, "schedule.intervals", drift.Jobs[1].Fields[0].Path)
	require.Equal(t, `["every PT1M at PT0S"]`, drift.Jobs[1].Fields[0].New)
	require.Equal(t, schedules.JobDrift{
		JobID: "do_nothing.paused", Mode: job.ModeRecurring, Kind: schedules.DriftPaused, Note: "by hand",
		Fields: []schedules.Field{{Path: "paused", Old: "false", New: "true"}},
	}, drift.Jobs[2])

	plan := f.plan(false, jobs...)
	require.Equal(t, []string{
		"dated: unchanged", "deleted: create", "edited: update", "fine: update", "loop: unchanged", "once: unchanged", "paused: unchanged",
	}, actions(plan))
	require.Equal(t, []string{"schedule job/foreign"}, plan.Foreign)
	for _, change := range plan.Changes {
		require.Equal(t, change.JobID == "do_nothing.edited", change.Drifted, change.JobID)
	}
	f.apply(plan)
	require.Len(t, f.drift().Jobs, 1, "the pause is kept")

	reset, err := f.syncer.Plan(t.Context(), jobs, schedules.PlanOptions{Provider: job.ProviderTOML, ResetPauses: true})
	require.NoError(t, err)
	require.Equal(t, 1, reset.Count(schedules.ActionUpdate))
	f.apply(reset)
	require.Empty(t, f.drift().Jobs)
	f.inSync(false, jobs...)

	foreign, err := f.temporal.ScheduleClient().GetHandle(t.Context(), "job/foreign").Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Hour, foreign.Schedule.Spec.Intervals[0].Every)
}

// temporal schedule update replaces an action as a whole: the schedule's own search
// attributes still say whose it is.
func TestAReplacedActionIsMended(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	actionsOf := map[string]*workflowpb.NewWorkflowExecutionInfo{
		"bare":  {},
		"input": {Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(`{"a":1}`)}}}},
		"two":   {Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: []byte("x")}, {Data: []byte("y")}}}},
	}
	var jobs []job.Job
	for _, key := range slices.Sorted(maps.Keys(actionsOf)) {
		jobs = append(jobs, declare(key, recurring(time.Hour)))
	}
	f.apply(f.plan(false, jobs...))
	for key, action := range actionsOf {
		action.WorkflowId, action.WorkflowType = "other", &commonpb.WorkflowType{Name: "Other"}
		action.TaskQueue = &taskqueuepb.TaskQueue{Name: "other"}
		f.editLive(key, func(s *schedulepb.Schedule) {
			s.Action = &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{StartWorkflow: action}}
		})
	}
	drift := f.drift()
	require.Len(t, drift.Jobs, len(jobs))
	for _, one := range drift.Jobs {
		require.Equal(t, schedules.DriftEdited, one.Kind)
	}
	plan := f.plan(false, jobs...)
	require.Equal(t, []string{"bare: update", "input: update", "two: update"}, actions(plan))
	for _, change := range plan.Changes {
		require.True(t, change.Drifted)
		require.NotEmpty(t, change.Fields)
	}
	f.apply(plan)
	f.inSync(false, jobs...)
	require.True(t, f.drift().Empty())

	// A schedule that is another provider's stays as it is.
	f.editLive("bare", func(s *schedulepb.Schedule) {
		s.Action = &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{StartWorkflow: actionsOf["bare"]}}
	})
	other, err := f.syncer.Plan(t.Context(), []job.Job{declare("bare", recurring(time.Hour), func(j *job.Job) { j.Provider = job.ProviderAPI })},
		schedules.PlanOptions{Provider: job.ProviderAPI})
	require.NoError(t, err)
	require.Equal(t, "a job of provider toml has this id: stop or delete that one first", other.Changes[0].Note)
}

func TestDriftOfInputsLimitsAndLoops(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	jobs := []job.Job{
		declare("input", recurring(time.Hour)), declare("garbage", recurring(time.Hour)), declare("limited", recurring(time.Hour)),
		declare("resumed", recurring(time.Hour), func(j *job.Job) { j.Options.Paused = true }),
		declare("held", continuous(time.Hour)), declare("killed", continuous(time.Hour)),
	}
	f.apply(f.plan(false, jobs...))
	input := func(s *schedulepb.Schedule) *commonpb.Payload {
		return s.GetAction().GetStartWorkflow().GetInput().GetPayloads()[0]
	}
	f.editLive("input", func(s *schedulepb.Schedule) {
		other := jobs[0]
		other.Spec = []byte(`{"a":5}`)
		input(s).Data = job.EncodeJSON(contract.RunInput{Job: other, StartedBy: contract.StartedBySchedule})
	})
	f.editLive("garbage", func(s *schedulepb.Schedule) { input(s).Data = []byte(`"x"`) })
	f.editLive("limited", func(s *schedulepb.Schedule) { s.State.LimitedActions, s.State.RemainingActions = true, 3 })
	require.NoError(t, f.schedule("resumed").Unpause(t.Context(), client.ScheduleUnpauseOptions{Note: "go"}))
	require.NoError(t, f.client.Jobs.Pause(t.Context(), "do_nothing.held", "no power"))
	require.NoError(t, f.temporal.TerminateWorkflow(t.Context(), "job/do_nothing.killed", "", "by test"))
	found := map[string]schedules.JobDrift{}
	stacktest.WaitFor(t, "all drift to show", func() (bool, error) {
		for _, one := range f.drift().Jobs {
			found[one.JobID[len("do_nothing."):]] = one
		}
		return len(found) == len(jobs), nil
	})
	require.Equal(t, []schedules.Field{{Path: "spec.a", Old: "1", New: "5"}}, found["input"].Fields)
	require.Equal(t, "schedule.input", found["garbage"].Fields[0].Path)
	require.Equal(t, []schedules.Field{{Path: "schedule.remaining_actions", New: "3"}}, found["limited"].Fields)
	require.Equal(t, schedules.DriftResumed, found["resumed"].Kind)
	require.Equal(t, schedules.DriftPaused, found["held"].Kind)
	require.Equal(t, "no power", found["held"].Note)
	require.Equal(t, schedules.DriftStopped, found["killed"].Kind)
	require.Contains(t, found["killed"].Note, "terminated at ")

	plan, err := f.syncer.Plan(t.Context(), jobs, schedules.PlanOptions{Provider: job.ProviderTOML, ResetPauses: true})
	require.NoError(t, err)
	require.Equal(t, 5, plan.Count(schedules.ActionUpdate), "%v", actions(plan))
	require.Equal(t, 1, plan.Count(schedules.ActionCreate))
	f.apply(plan)
	require.Empty(t, f.drift().Jobs)
	f.inSync(false, jobs...)
}

// What was applied is known without a worker, survives the end of its record, and
// keeps a job that ran once from running again when its run is forgotten.
func TestWhatWasAppliedIsRemembered(t *testing.T) {
	t.Parallel()
	f := newFixture(t, stacktest.StartNamespace(t))
	once := declare("once", oneShot())
	f.apply(f.plan(false, once))
	stacktest.WaitFor(t, "the run to end", func() (bool, error) {
		live, err := f.client.Jobs.LiveWorkflow(t.Context(), once.ID)
		return err == nil && !live.Workflow.Open(), err
	})
	_, err := f.temporal.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: f.client.Namespace(), WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: contract.JobWorkflowID(once.ID)},
	})
	require.NoError(t, err)
	stacktest.WaitFor(t, "the run to be forgotten", func() (bool, error) {
		live, err := f.client.Jobs.LiveWorkflow(t.Context(), once.ID)
		return live == nil, err
	})
	f.inSync(false, once)
	changed := once
	changed.Spec = []byte(`{"a":2}`)
	require.Equal(t, 1, f.plan(false, changed).Count(schedules.ActionCreate))

	require.NoError(t, f.temporal.TerminateWorkflow(t.Context(), "applied/toml", "", "by test"))
	f.inSync(false, once)
	hourly := declare("hourly", recurring(time.Hour))
	f.apply(f.plan(false, once, hourly))
	applied, err := schedules.New(f.client).Applied(t.Context(), job.ProviderTOML)
	require.NoError(t, err)
	require.Len(t, applied.Jobs, 2)
	f.apply(f.plan(true, once))
	applied, err = schedules.New(f.client).Applied(t.Context(), job.ProviderTOML)
	require.NoError(t, err)
	require.Len(t, applied.Jobs, 1)
}
