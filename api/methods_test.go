package api_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const requestID = "0b9f4a52-6f0f-4f7a-9a55-7a8c1d2e3f40"

// everyMethod calls every method through one transport.
func everyMethod(t *testing.T, w *world, key string, c *calledClients) {
	t.Run("of recurring jobs", func(t *testing.T) { recurringJobs(t, key, c) })
	t.Run("of continuous jobs", func(t *testing.T) { continuousJobs(t, key, c) })
	t.Run("of runs", func(t *testing.T) { runs(t, key, c) })
	t.Run("of queues", func(t *testing.T) { queues(t, key, c) })
	t.Run("of workers", func(t *testing.T) { workersAndTypes(t, c) })
	t.Run("of job sets", func(t *testing.T) { jobSets(t, key, c) })
	t.Run("of the pipeline", func(t *testing.T) { loadsAndQuarantine(t, w, key, c) })
	t.Run("of bookmarks", func(t *testing.T) { bookmarks(t, key, c) })
	t.Run("of archives", func(t *testing.T) { archives(t, w, key, c) })
	t.Run("of the platform", func(t *testing.T) { integrationsAndTeardowns(t, w, key, c) })
	t.Run("of alerts", func(t *testing.T) { alertsAndSilences(t, w, key, c) })
	t.Run("of the overview", func(t *testing.T) { overviews(t, key, c) })
	t.Run("of deployments", func(t *testing.T) { deployments(t, w, key, c) })
	t.Run("of uploads", func(t *testing.T) { uploads(t, w, key, c) })
	t.Run("of changes", func(t *testing.T) { changes(t, key, c) })
	if !t.Failed() {
		c.requireAllCalled(t, w)
	}
}

func spec(t *testing.T, values map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(values)
	require.NoError(t, err)
	return s
}

func steps(t *testing.T, id string, more ...any) *jobsv1.Job {
	t.Helper()
	values := map[string]any{"steps": 2}
	for i := 0; i < len(more); i += 2 {
		values[more[i].(string)] = more[i+1]
	}
	return &jobsv1.Job{Id: id, Spec: spec(t, values)}
}

const (
	created   = jobsv1.JobAction_JOB_ACTION_CREATE
	updated   = jobsv1.JobAction_JOB_ACTION_UPDATE
	deleted   = jobsv1.JobAction_JOB_ACTION_DELETE
	unchanged = jobsv1.JobAction_JOB_ACTION_UNCHANGED
)

func recurringJobs(t *testing.T, key string, c *calledClients) {
	ctx, id := t.Context(), "take_steps.daily-"+key
	wanted := func() *jobsv1.Job {
		j := steps(t, id)
		j.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{Cron: "0 6 * * *", TimeZone: "America/Los_Angeles"}}
		j.Options = &jobsv1.JobOptions{Owner: "user:" + key, Tags: map[string]string{"site": key}}
		return j
	}
	planned, err := c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: wanted(), ValidateOnly: true})
	require.NoError(t, err)
	require.Equal(t, created, planned.GetChange().GetAction())
	require.Len(t, planned.GetChange().GetPlannedStartTimes(), 3)
	_, err = c.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: id})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)

	made, err := c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: wanted(), RequestId: requestID})
	require.NoError(t, err)
	require.Equal(t, created, made.GetChange().GetAction())
	again, err := c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: wanted(), RequestId: requestID})
	require.NoError(t, err)
	require.Equal(t, created, again.GetChange().GetAction())
	require.Equal(t, made.GetJob().GetEtag(), again.GetJob().GetEtag())
	_, err = c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: wanted()})
	requireError(t, err, connect.CodeAlreadyExists, jobsv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS)
	other := wanted()
	other.GetRecurring().Cron = "0 7 * * *"
	_, err = c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: other, RequestId: requestID})
	requireError(t, err, connect.CodeAlreadyExists, jobsv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS)

	read := func() *jobsv1.Job {
		response, err := c.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: id})
		require.NoError(t, err)
		return response.GetJob()
	}
	j := read()
	require.Equal(t, "TakeSteps", j.GetType())
	require.Equal(t, "apitest", j.GetWorker())
	require.Equal(t, "api", j.GetProvider())
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_SCHEDULED, j.GetState().GetStatus())
	require.NotEmpty(t, j.GetState().GetNextStartTimes())
	require.Equal(t, "1h", fmt.Sprint(j.GetOptions().GetRunTimeout().AsDuration())[:2])

	// An update of one field with the etag, and the same again, which comes too late.
	change := &jobsv1.UpdateJobRequest{
		Job:        &jobsv1.Job{Id: id, Etag: j.GetEtag(), Options: &jobsv1.JobOptions{Tags: map[string]string{"site": key, "kind": "x"}}},
		UpdateMask: "options.tags", ValidateOnly: true,
	}
	plan, err := c.Jobs.UpdateJob(ctx, change)
	require.NoError(t, err)
	require.Equal(t, updated, plan.GetChange().GetAction())
	require.Len(t, plan.GetChange().GetFields(), 1)
	require.Equal(t, "tags.kind", plan.GetChange().GetFields()[0].GetPath())
	require.Equal(t, `"x"`, plan.GetChange().GetFields()[0].GetNewValue())
	require.Equal(t, j.GetEtag(), read().GetEtag(), "a plan changes nothing")
	change.ValidateOnly = false
	done, err := c.Jobs.UpdateJob(ctx, change)
	require.NoError(t, err)
	require.Equal(t, "x", done.GetJob().GetOptions().GetTags()["kind"])
	require.Equal(t, "0 6 * * *", done.GetJob().GetRecurring().GetCron())
	_, err = c.Jobs.UpdateJob(ctx, change)
	requireError(t, err, connect.CodeAborted, jobsv1.ErrorReason_ERROR_REASON_ETAG_MISMATCH)
	change.Job.Etag = done.GetJob().GetEtag()
	same, err := c.Jobs.UpdateJob(ctx, change)
	require.NoError(t, err)
	require.Equal(t, unchanged, same.GetChange().GetAction())

	// A pause by people stays, unless it is in the mask.
	_, err = c.Jobs.PauseJob(ctx, &jobsv1.PauseJobRequest{Id: id, Reason: "the sensor is away"})
	require.NoError(t, err)
	paused := read()
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_PAUSED, paused.GetState().GetStatus())
	require.Equal(t, "the sensor is away", paused.GetState().GetPauseReason())
	require.False(t, paused.GetPaused())
	require.NotEqual(t, same.GetJob().GetEtag(), paused.GetEtag())
	_, err = c.Jobs.UpdateJob(ctx, &jobsv1.UpdateJobRequest{
		Job: &jobsv1.Job{Id: id, Spec: spec(t, map[string]any{"steps": 3})}, UpdateMask: "spec.steps",
	})
	require.NoError(t, err)
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_PAUSED, read().GetState().GetStatus())
	_, err = c.Jobs.UpdateJob(ctx, &jobsv1.UpdateJobRequest{Job: &jobsv1.Job{Id: id}, UpdateMask: "paused"})
	require.NoError(t, err)
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_SCHEDULED, read().GetState().GetStatus())
	_, err = c.Jobs.ResumeJob(ctx, &jobsv1.ResumeJobRequest{Id: id})
	require.NoError(t, err)

	starts(t, id, key, c)
	listedJobs(t, id, key, c)

	run, err := c.Jobs.RunJob(ctx, &jobsv1.RunJobRequest{Id: id})
	require.NoError(t, err)
	stream, err := c.Runs.WatchRun(ctx, &jobsv1.WatchRunRequest{Name: run.GetRunName()})
	seen := drain(t, stream, err)
	last := seen[len(seen)-1].GetRun()
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_COMPLETED, last.GetStatus())
	require.Equal(t, "all steps taken", last.GetMessage())
	require.EqualValues(t, 3, last.GetCounts()["steps"])
	require.EqualValues(t, 3, last.GetOutput().GetStructValue().GetFields()["last"].GetNumberValue())
	require.EqualValues(t, 3, last.GetSpec().GetFields()["steps"].GetNumberValue())
	_, err = c.Jobs.RestartJob(ctx, &jobsv1.RestartJobRequest{Id: id})
	requireError(t, err, connect.CodeFailedPrecondition, jobsv1.ErrorReason_ERROR_REASON_UNSUPPORTED)

	_, err = c.Jobs.DeleteJob(ctx, &jobsv1.DeleteJobRequest{Id: id, Etag: j.GetEtag()})
	requireError(t, err, connect.CodeAborted, jobsv1.ErrorReason_ERROR_REASON_ETAG_MISMATCH)
	gone, err := c.Jobs.DeleteJob(ctx, &jobsv1.DeleteJobRequest{Id: id, ValidateOnly: true})
	require.NoError(t, err)
	require.Equal(t, deleted, gone.GetChange().GetAction())
	_, err = c.Jobs.DeleteJob(ctx, &jobsv1.DeleteJobRequest{Id: id, Etag: read().GetEtag()})
	require.NoError(t, err)
	_, err = c.Jobs.DeleteJob(ctx, &jobsv1.DeleteJobRequest{Id: id})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)
	_, err = c.Jobs.DeleteJob(ctx, &jobsv1.DeleteJobRequest{Id: id, AllowMissing: true})
	require.NoError(t, err)
	revived, err := c.Jobs.UpdateJob(ctx, &jobsv1.UpdateJobRequest{Job: wanted(), AllowMissing: true})
	require.NoError(t, err)
	require.Equal(t, created, revived.GetChange().GetAction())
}

// starts calls the methods about times.
func starts(t *testing.T, id, key string, c *calledClients) {
	t.Helper()
	ctx := t.Context()
	next, err := c.Jobs.ListNextStarts(ctx, &jobsv1.ListNextStartsRequest{Id: id, Count: 3})
	require.NoError(t, err)
	require.Len(t, next.GetStartTimes(), 3)
	require.Equal(t, "America/Los_Angeles", next.GetTimeZone())
	skipped, err := c.Jobs.SkipNextStart(ctx, &jobsv1.SkipNextStartRequest{Id: id})
	require.NoError(t, err)
	require.Equal(t, next.GetStartTimes()[0].AsTime(), skipped.GetSkippedTime().AsTime())
	require.Equal(t, next.GetStartTimes()[1].AsTime(), skipped.GetNextStartTime().AsTime())
	next, err = c.Jobs.ListNextStarts(ctx, &jobsv1.ListNextStartsRequest{Id: id})
	require.NoError(t, err)
	require.Len(t, next.GetStartTimes(), 10)
	require.Equal(t, "a client of the Job API", next.GetSkipped()[0].GetSkippedBy())

	days := func(n int) *timestamppb.Timestamp { return timestamppb.New(time.Now().AddDate(0, 0, n)) }
	stacktest.WaitFor(t, "the starts to be listed", func() (bool, error) {
		upcoming, err := c.Jobs.ListUpcomingStarts(ctx, &jobsv1.ListUpcomingStartsRequest{EndTime: days(5), Filter: "type = TakeSteps AND owner = user:" + key})
		return len(upcoming.GetStarts()) > 2, err
	})
	missed, err := c.Jobs.ListMissedStarts(ctx, &jobsv1.ListMissedStartsRequest{StartTime: days(-2), Filter: "id = " + id})
	require.NoError(t, err)
	require.Len(t, missed.GetCounts(), 1)
	backfill, err := c.Jobs.BackfillJob(ctx, &jobsv1.BackfillJobRequest{Id: id, StartTime: days(-3), EndTime: days(-2), ValidateOnly: true})
	require.NoError(t, err)
	require.Len(t, backfill.GetStartTimes(), 1)
	_, err = c.Jobs.BackfillJob(ctx, &jobsv1.BackfillJobRequest{Id: id, StartTime: days(-3), EndTime: days(2)})
	requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST)
}

// listedJobs lists jobs, in pages.
func listedJobs(t *testing.T, id, key string, c *calledClients) {
	t.Helper()
	ctx := t.Context()
	second := steps(t, id+"-2")
	second.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{RecurEvery: durationpb.New(24 * time.Hour)}}
	_, err := c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: second})
	require.NoError(t, err)
	filter := fmt.Sprintf("id = \"%s*\" AND mode = recurring", id)
	var first *jobsv1.ListJobsResponse
	stacktest.WaitFor(t, "both jobs to be listed", func() (bool, error) {
		all, err := c.Jobs.ListJobs(ctx, &jobsv1.ListJobsRequest{Filter: filter, PageSize: 5000})
		if err != nil || len(all.GetJobs()) != 2 {
			return false, err
		}
		first, err = c.Jobs.ListJobs(ctx, &jobsv1.ListJobsRequest{Filter: filter, PageSize: 1})
		return err == nil, err
	})
	require.Len(t, first.GetJobs(), 1)
	require.Equal(t, id, first.GetJobs()[0].GetId())
	require.NotNil(t, first.GetJobs()[0].GetRecurring())
	next, err := c.Jobs.ListJobs(ctx, &jobsv1.ListJobsRequest{Filter: filter, PageSize: 1, PageToken: first.GetNextPageToken()})
	require.NoError(t, err)
	require.Equal(t, id+"-2", next.GetJobs()[0].GetId())
	require.Empty(t, next.GetNextPageToken())
	_, err = c.Jobs.ListJobs(ctx, &jobsv1.ListJobsRequest{PageToken: first.GetNextPageToken()})
	requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_PAGE_TOKEN)
	tagged, err := c.Jobs.ListJobs(ctx, &jobsv1.ListJobsRequest{Filter: filter + " AND tags.site = " + key})
	require.NoError(t, err)
	require.Len(t, tagged.GetJobs(), 1)
	require.Equal(t, key, tagged.GetJobs()[0].GetOptions().GetTags()["site"])
}

func continuousJobs(t *testing.T, key string, c *calledClients) {
	ctx, id := t.Context(), "take_steps.loop-"+key
	j := steps(t, id)
	j.Mode = &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Hour)}}
	_, err := c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: j})
	require.NoError(t, err)
	stream, err := c.Runs.WatchRun(ctx, &jobsv1.WatchRunRequest{Name: id + "#1"})
	seen := drain(t, stream, err)
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_COMPLETED, seen[len(seen)-1].GetRun().GetStatus())
	triggered, err := c.Jobs.RunJob(ctx, &jobsv1.RunJobRequest{Id: id})
	require.NoError(t, err)
	require.EqualValues(t, 2, triggered.GetIteration())
	stream, err = c.Runs.WatchRun(ctx, &jobsv1.WatchRunRequest{Name: triggered.GetRunName()})
	require.NotEmpty(t, drain(t, stream, err))
	_, err = c.Jobs.RestartJob(ctx, &jobsv1.RestartJobRequest{Id: id})
	require.NoError(t, err)
	run, err := c.Runs.GetRun(ctx, &jobsv1.GetRunRequest{Name: id + "#2"})
	require.NoError(t, err)
	require.EqualValues(t, 2, run.GetRun().GetIteration())
	listed, err := c.Runs.ListRuns(ctx, &jobsv1.ListRunsRequest{Filter: "job_id = " + id, PageSize: 1})
	require.NoError(t, err)
	rest, err := c.Runs.ListRuns(ctx, &jobsv1.ListRunsRequest{Filter: "job_id = " + id, PageToken: listed.GetNextPageToken()})
	require.NoError(t, err)
	require.Equal(t, listed.GetRuns()[0].GetIteration()-1, rest.GetRuns()[0].GetIteration())
	_, err = c.Runs.CancelRun(ctx, &jobsv1.CancelRunRequest{Name: id + "#2"})
	requireError(t, err, connect.CodeFailedPrecondition, jobsv1.ErrorReason_ERROR_REASON_UNSUPPORTED)
	state, err := c.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: id})
	require.NoError(t, err)
	require.GreaterOrEqual(t, state.GetJob().GetState().GetContinuous().GetIterations(), int64(2))
	_, err = c.Jobs.StopJob(ctx, &jobsv1.StopJobRequest{Id: id})
	require.NoError(t, err)
	stacktest.WaitFor(t, "the job to stop", func() (bool, error) {
		stopped, err := c.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: id})
		return stopped.GetJob().GetState().GetStatus() == jobsv1.JobStatus_JOB_STATUS_STOPPED, err
	})
}

func oneShot(t *testing.T, c *calledClients, id string, more ...any) string {
	t.Helper()
	j := steps(t, id, more...)
	j.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
	made, err := c.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: j})
	require.NoError(t, err)
	require.Equal(t, created, made.GetChange().GetAction())
	run, err := c.Runs.GetRun(t.Context(), &jobsv1.GetRunRequest{Name: "job/" + id})
	require.NoError(t, err)
	return run.GetRun().GetName()
}

func watched(t *testing.T, c *calledClients, name string) *jobsv1.Run {
	t.Helper()
	stream, err := c.Runs.WatchRun(t.Context(), &jobsv1.WatchRunRequest{Name: name})
	seen := drain(t, stream, err)
	return seen[len(seen)-1].GetRun()
}

func runs(t *testing.T, key string, c *calledClients) {
	ctx := t.Context()
	failed := oneShot(t, c, "take_steps.fails-"+key, "fail", true)
	run := watched(t, c, failed)
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_FAILED, run.GetStatus())
	require.Equal(t, "Told", run.GetErrorClass())
	retried, err := c.Runs.RetryRun(ctx, &jobsv1.RetryRunRequest{Name: failed})
	require.NoError(t, err)
	once, err := c.Runs.RetryRun(ctx, &jobsv1.RetryRunRequest{Name: failed})
	require.NoError(t, err)
	require.Equal(t, retried.GetRunName(), once.GetRunName())
	require.Equal(t, failed, watched(t, c, retried.GetRunName()).GetRetryOf())

	// What its handler logged is kept, and sent until the run has ended.
	logged, err := c.Runs.WatchRunLogs(ctx, &jobsv1.WatchRunLogsRequest{Name: failed})
	sent := drain(t, logged, err)
	kept, err := c.Runs.ListRunLogs(ctx, &jobsv1.ListRunLogsRequest{Name: failed})
	require.NoError(t, err)
	require.Len(t, kept.GetLines(), len(sent))
	end := sent[len(sent)-1].GetLine()
	require.Equal(t, "attempt ended", end.GetMessage())
	require.EqualValues(t, 1, end.GetAttempt())
	require.Equal(t, "Told", end.GetAttributes().GetFields()["class"].GetStringValue())
	_, err = c.Runs.ListRunLogs(ctx, &jobsv1.ListRunLogsRequest{Name: "take_steps.no-such-job"})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)

	gate := workertest.NewGate(t)
	held := oneShot(t, c, "take_steps.held-"+key, "gate", gate)
	_, err = c.Runs.RetryRun(ctx, &jobsv1.RetryRunRequest{Name: held})
	requireError(t, err, connect.CodeFailedPrecondition, jobsv1.ErrorReason_ERROR_REASON_NOT_RETRIED)
	_, err = c.Runs.CancelRun(ctx, &jobsv1.CancelRunRequest{Name: held})
	require.NoError(t, err)
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_CANCELED, watched(t, c, held).GetStatus())
	ended := oneShot(t, c, "take_steps.ended-"+key, "gate", gate)
	_, err = c.Runs.TerminateRun(ctx, &jobsv1.TerminateRunRequest{Name: ended, Reason: "a test"})
	require.NoError(t, err)
	run = watched(t, c, ended)
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_TERMINATED, run.GetStatus())
	require.Contains(t, run.GetErrorMessage(), "a test")

	stacktest.WaitFor(t, "the runs to be listed", func() (bool, error) {
		listed, err := c.Runs.ListRuns(ctx, &jobsv1.ListRunsRequest{Filter: "job_id = take_steps.fails-" + key + " AND status = FAILED"})
		return len(listed.GetRuns()) == 2, err
	})

	failuresOf(t, key, c)

	// A one-shot for later is taken back.
	later := steps(t, "take_steps.later-"+key)
	later.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{StartTime: timestamppb.New(time.Now().Add(time.Hour))}}
	made, err := c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: later})
	require.NoError(t, err)
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_WAITING, made.GetJob().GetState().GetStatus())
	gone, err := c.Jobs.DeleteJob(ctx, &jobsv1.DeleteJobRequest{Id: later.GetId()})
	require.NoError(t, err)
	require.Equal(t, deleted, gone.GetChange().GetAction())
}

// failuresOf finds the runs that failed as a group, and by filters.
func failuresOf(t *testing.T, key string, c *calledClients) {
	ctx, id := t.Context(), "take_steps.fails-"+key
	var group *jobsv1.FailureGroup
	stacktest.WaitFor(t, "the group of the failed runs", func() (bool, error) {
		answer, err := c.Runs.ListFailures(ctx, &jobsv1.ListFailuresRequest{})
		for _, g := range answer.GetGroups() {
			if slices.Contains(g.GetJobIds(), id) {
				group = g
			}
		}
		return group.GetFailures() >= 2 && group.GetFailedJobs() > 0, err
	})
	require.Equal(t, "Told", group.GetErrorClass())
	require.Equal(t, "TakeSteps", group.GetJobType())
	require.False(t, group.GetLastTime().AsTime().Before(group.GetFirstTime().AsTime()))
	require.NotEmpty(t, group.GetText())
	listed := func(filter string) int {
		answer, err := c.Runs.ListRuns(ctx, &jobsv1.ListRunsRequest{Filter: "job_id = " + id + " AND " + filter})
		require.NoError(t, err)
		return len(answer.GetRuns())
	}
	require.Equal(t, 2, listed("failure = "+group.GetName()))
	require.Equal(t, 0, listed("failure = 0123456789ab"))
	require.Equal(t, 2, listed("error_class = Told"))
	require.Equal(t, 0, listed("error_class != Told"))
	jobs, err := c.Jobs.ListJobs(ctx, &jobsv1.ListJobsRequest{Filter: "error_class = Told AND id = " + id})
	require.NoError(t, err)
	require.Len(t, jobs.GetJobs(), 1)
	answer, err := c.Runs.ListFailures(ctx, &jobsv1.ListFailuresRequest{StartTime: timestamppb.New(time.Now().Add(time.Hour)), Limit: 1})
	require.NoError(t, err)
	require.Empty(t, answer.GetGroups(), "none has ended since")
}

func queues(t *testing.T, key string, c *calledClients) {
	ctx, queue := t.Context(), "q-"+key
	id := func(name string) string { return "take_steps." + name + "-" + key }
	item := func(name string, more ...any) *jobsv1.Job {
		j := steps(t, id(name), more...)
		j.Mode = &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: queue}}
		return j
	}
	get := func() *jobsv1.Queue {
		response, err := c.Queues.GetQueue(ctx, &jobsv1.GetQueueRequest{Name: queue})
		require.NoError(t, err)
		return response.GetQueue()
	}
	becomes := func(status jobsv1.QueueStatus) {
		stacktest.WaitFor(t, "the queue to be "+status.String(), func() (bool, error) {
			response, err := c.Queues.GetQueue(ctx, &jobsv1.GetQueueRequest{Name: queue})
			return response.GetQueue().GetStatus() == status, err
		})
	}
	_, err := c.Queues.GetQueue(ctx, &jobsv1.GetQueueRequest{Name: queue})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)
	_, err = c.Queues.SetQueueFailurePolicy(ctx, &jobsv1.SetQueueFailurePolicyRequest{Queue: queue, OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_HALT})
	require.NoError(t, err)
	_, err = c.Queues.PauseQueue(ctx, &jobsv1.PauseQueueRequest{Queue: queue, Reason: "a test"})
	require.NoError(t, err)
	put := &jobsv1.EnqueueJobsRequest{Jobs: []*jobsv1.Job{item("a", "fail", true), item("b"), item("c")}, RequestId: requestID}
	placed, err := c.Queues.EnqueueJobs(ctx, put)
	require.NoError(t, err)
	require.Len(t, placed.GetPlaces(), 3)
	require.EqualValues(t, 2, placed.GetPlaces()[2].GetAhead())
	again, err := c.Queues.EnqueueJobs(ctx, put)
	require.NoError(t, err)
	require.Equal(t, placed.GetPlaces()[0].GetSequence(), again.GetPlaces()[0].GetSequence())
	require.EqualValues(t, 3, get().GetWaiting())
	require.Equal(t, "a test", get().GetReason())
	_, err = c.Queues.EnqueueJobs(ctx, &jobsv1.EnqueueJobsRequest{Jobs: []*jobsv1.Job{steps(t, id("x"))}})
	requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST)

	page, err := c.Queues.ListQueueItems(ctx, &jobsv1.ListQueueItemsRequest{Queue: queue, PageSize: 2})
	require.NoError(t, err)
	require.Len(t, page.GetItems(), 2)
	page, err = c.Queues.ListQueueItems(ctx, &jobsv1.ListQueueItemsRequest{Queue: queue, PageToken: page.GetNextPageToken()})
	require.NoError(t, err)
	require.Equal(t, []string{id("c")}, []string{page.GetItems()[0].GetJobId()})
	require.EqualValues(t, 2, page.GetItems()[0].GetAhead())
	require.Empty(t, page.GetNextPageToken())

	_, err = c.Queues.MoveQueueItem(ctx, &jobsv1.MoveQueueItemRequest{Queue: queue, JobId: id("c")})
	require.NoError(t, err)
	_, err = c.Queues.CancelQueueItem(ctx, &jobsv1.CancelQueueItemRequest{Queue: queue, JobId: id("b")})
	require.NoError(t, err)
	_, err = c.Queues.CancelQueueItem(ctx, &jobsv1.CancelQueueItemRequest{Queue: queue, JobId: id("nothing")})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)
	count, err := c.Queues.PurgeQueue(ctx, &jobsv1.PurgeQueueRequest{Queue: queue})
	require.NoError(t, err)
	require.EqualValues(t, 2, count.GetPurgeCount())
	require.Equal(t, []string{id("c"), id("a")}, count.GetPurgeSample())
	require.EqualValues(t, 2, get().GetWaiting())

	_, err = c.Queues.ResumeQueue(ctx, &jobsv1.ResumeQueueRequest{Queue: queue})
	require.NoError(t, err)
	becomes(jobsv1.QueueStatus_QUEUE_STATUS_HALTED)
	require.EqualValues(t, 1, get().GetCompleted())
	require.Equal(t, jobsv1.FailurePolicy_FAILURE_POLICY_HALT, get().GetOnFailure())
	watched, err := c.Queues.WatchQueueItem(ctx, &jobsv1.WatchQueueItemRequest{
		Queue: queue, JobId: id("a"), Sequence: placed.GetPlaces()[0].GetSequence(), Job: item("a", "fail", true),
	})
	turns := drain(t, watched, err)
	require.Contains(t, turns[len(turns)-1].GetRunName(), "job/"+id("a")+"@")
	watched, err = c.Queues.WatchQueueItem(ctx, &jobsv1.WatchQueueItemRequest{Queue: "another", JobId: id("a"), Sequence: 1, Job: item("a")})
	require.NoError(t, err)
	_, err = watched.Receive()
	requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST)
	_, err = c.Queues.SkipFailedItem(ctx, &jobsv1.SkipFailedItemRequest{Queue: queue})
	require.NoError(t, err)
	letters, err := c.Queues.ListDeadLetters(ctx, &jobsv1.ListDeadLettersRequest{Queue: queue})
	require.NoError(t, err)
	require.Len(t, letters.GetDeadLetters(), 1)
	require.Equal(t, id("a"), letters.GetDeadLetters()[0].GetJobId())
	_, err = c.Queues.RetryDeadLetters(ctx, &jobsv1.RetryDeadLettersRequest{Queue: queue, Sequences: []int64{999}})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)
	retried, err := c.Queues.RetryDeadLetters(ctx, &jobsv1.RetryDeadLettersRequest{Queue: queue})
	require.NoError(t, err)
	require.Len(t, retried.GetPlaces(), 1)
	becomes(jobsv1.QueueStatus_QUEUE_STATUS_HALTED)
	_, err = c.Queues.SkipFailedItem(ctx, &jobsv1.SkipFailedItemRequest{Queue: queue})
	require.NoError(t, err)
	dropped, err := c.Queues.DropDeadLetters(ctx, &jobsv1.DropDeadLettersRequest{Queue: queue})
	require.NoError(t, err)
	require.EqualValues(t, 1, dropped.GetDropped())

	// A queued job by itself, and out of its queue again.
	_, err = c.Queues.PauseQueue(ctx, &jobsv1.PauseQueueRequest{Queue: queue})
	require.NoError(t, err)
	made, err := c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: item("d")})
	require.NoError(t, err)
	require.Equal(t, jobsv1.JobStatus_JOB_STATUS_WAITING, made.GetJob().GetState().GetStatus())
	_, err = c.Jobs.DeleteJob(ctx, &jobsv1.DeleteJobRequest{Id: id("d"), Etag: made.GetJob().GetEtag()})
	require.NoError(t, err)
	require.Zero(t, get().GetWaiting())
	purged, err := c.Queues.PurgeQueue(ctx, &jobsv1.PurgeQueueRequest{Queue: queue, Force: true})
	require.NoError(t, err)
	require.Zero(t, purged.GetPurgeCount())
	_, err = c.Queues.RecoverQueue(ctx, &jobsv1.RecoverQueueRequest{Queue: queue})
	require.NoError(t, err)
	_, err = c.Queues.ResumeQueue(ctx, &jobsv1.ResumeQueueRequest{Queue: queue})
	require.NoError(t, err)
	for _, again := range []bool{false, true} {
		drained, err := c.Queues.DrainQueue(ctx, &jobsv1.DrainQueueRequest{Queue: queue})
		require.NoError(t, err)
		require.Equal(t, again, drained.GetUnchanged())
		set, err := c.Queues.SetQueueFailurePolicy(ctx, &jobsv1.SetQueueFailurePolicyRequest{Queue: queue, OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_CONTINUE})
		require.NoError(t, err)
		require.Equal(t, again, set.GetUnchanged())
	}
	becomes(jobsv1.QueueStatus_QUEUE_STATUS_DRAINED)
	_, err = c.Queues.EnqueueJobs(ctx, &jobsv1.EnqueueJobsRequest{Jobs: []*jobsv1.Job{item("e")}})
	requireError(t, err, connect.CodeFailedPrecondition, jobsv1.ErrorReason_ERROR_REASON_UNSUPPORTED)

	stacktest.WaitFor(t, "the queue to be listed", func() (bool, error) {
		response, err := c.Queues.ListQueues(ctx, &jobsv1.ListQueuesRequest{})
		for _, q := range response.GetQueues() {
			if q.GetName() == queue {
				return true, err
			}
		}
		return false, err
	})
}

func workersAndTypes(t *testing.T, c *calledClients) {
	listed, err := c.Workers.ListWorkers(t.Context(), &jobsv1.ListWorkersRequest{})
	require.NoError(t, err)
	require.Len(t, listed.GetWorkers(), 1)
	require.Equal(t, jobsv1.WorkerStatus_WORKER_STATUS_SERVING, listed.GetWorkers()[0].GetStatus())
	require.Contains(t, listed.GetWorkers()[0].GetJobTypes(), "AnnouncedSteps")
	types, err := c.Workers.ListJobTypes(t.Context(), &jobsv1.ListJobTypesRequest{})
	require.NoError(t, err)
	found := map[string]*jobsv1.JobType{}
	for _, jobType := range types.GetJobTypes() {
		found[jobType.GetName()] = jobType
	}
	require.Contains(t, found["AnnouncedSteps"].GetSpecSchema().GetFields(), "properties")
	require.Equal(t, []string{"recurring"}, found["OnlyRecurring"].GetModes())
}

func deployments(t *testing.T, w *world, key string, c *calledClients) {
	ctx := t.Context()
	_, err := c.Deployments.GetDeployment(ctx, &jobsv1.GetDeploymentRequest{Deployment: key})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	for _, build := range []string{"one", "two"} {
		workertest.StartBuild(t, w.temporal, key, build)
	}
	stacktest.WaitFor(t, "both builds", func() (bool, error) {
		shown, err := c.Deployments.GetDeployment(ctx, &jobsv1.GetDeploymentRequest{Deployment: key})
		return len(shown.GetDeployment().GetBuilds()) == 2, err
	})
	status := func(d *jobsv1.Deployment, build string) jobsv1.BuildStatus {
		for _, b := range d.GetBuilds() {
			if b.GetId() == build {
				return b.GetStatus()
			}
		}
		return jobsv1.BuildStatus_BUILD_STATUS_UNSPECIFIED
	}
	const current, ramping, inactive = jobsv1.BuildStatus_BUILD_STATUS_CURRENT, jobsv1.BuildStatus_BUILD_STATUS_RAMPING, jobsv1.BuildStatus_BUILD_STATUS_INACTIVE
	promoted, err := c.Deployments.PromoteBuild(ctx, &jobsv1.PromoteBuildRequest{Deployment: key, BuildId: "one"})
	require.NoError(t, err)
	require.Equal(t, []jobsv1.BuildStatus{current, inactive}, []jobsv1.BuildStatus{status(promoted.GetDeployment(), "one"), status(promoted.GetDeployment(), "two")})
	ramped, err := c.Deployments.RampBuild(ctx, &jobsv1.RampBuildRequest{Deployment: key, BuildId: "two", Percentage: 5})
	require.NoError(t, err)
	require.Equal(t, ramping, status(ramped.GetDeployment(), "two"))
	back, err := c.Deployments.RollbackDeployment(ctx, &jobsv1.RollbackDeploymentRequest{Deployment: key})
	require.NoError(t, err)
	require.Equal(t, current, status(back.GetDeployment(), "one"))
	require.NotEqual(t, ramping, status(back.GetDeployment(), "two"))
	moved, err := c.Deployments.MoveRuns(ctx, &jobsv1.MoveRunsRequest{Deployment: key, FromBuildId: "one", ToBuildId: "two"})
	require.NoError(t, err)
	require.Zero(t, moved.GetMoveCount())
	pruned, err := c.Deployments.PruneBuilds(ctx, &jobsv1.PruneBuildsRequest{Deployment: key})
	require.NoError(t, err)
	require.Empty(t, pruned.GetBuildIds(), "their workers ask for work")
	_, err = c.Deployments.RollbackDeployment(ctx, &jobsv1.RollbackDeploymentRequest{Deployment: key})
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
}

func jobSets(t *testing.T, key string, c *calledClients) {
	ctx := t.Context()
	set := &jobsv1.JobSet{Provider: "set-" + key, Prune: true}
	for n := range 3 {
		j := steps(t, fmt.Sprintf("announced_steps.set%d-%s", n, key))
		j.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{Cron: "0 6 * * *"}}
		set.Jobs = append(set.Jobs, j)
	}
	planned, err := c.JobSets.PlanJobSet(ctx, &jobsv1.PlanJobSetRequest{JobSet: set})
	require.NoError(t, err)
	require.Len(t, planned.GetPlan().GetChanges(), 3)
	stream, err := c.JobSets.ApplyJobSet(ctx, &jobsv1.ApplyJobSetRequest{JobSet: set, Etag: planned.GetPlan().GetEtag()})
	answers := drain(t, stream, err)
	require.Len(t, answers, 3)
	require.EqualValues(t, 3, answers[2].GetDone())
	require.EqualValues(t, 3, answers[2].GetTotal())
	require.Empty(t, answers[2].GetChange().GetErrorMessage())
	stream, err = c.JobSets.ApplyJobSet(ctx, &jobsv1.ApplyJobSetRequest{JobSet: set})
	require.Empty(t, drain(t, stream, err), "a second apply has nothing to do")
	stream, err = c.JobSets.ApplyJobSet(ctx, &jobsv1.ApplyJobSetRequest{JobSet: set, Etag: planned.GetPlan().GetEtag()})
	requireError(t, failure(t, stream, err), connect.CodeAborted, jobsv1.ErrorReason_ERROR_REASON_ETAG_MISMATCH)

	_, err = c.Jobs.PauseJob(ctx, &jobsv1.PauseJobRequest{Id: set.GetJobs()[0].GetId(), Reason: "a test"})
	require.NoError(t, err)
	drift, err := c.JobSets.GetDrift(ctx, &jobsv1.GetDriftRequest{Provider: set.GetProvider()})
	require.NoError(t, err)
	require.EqualValues(t, 3, drift.GetApplied())
	require.Len(t, drift.GetDrifts(), 1)
	require.Equal(t, jobsv1.DriftKind_DRIFT_KIND_PAUSED, drift.GetDrifts()[0].GetKind())
	require.Equal(t, "a test", drift.GetDrifts()[0].GetNote())

	_, err = c.Jobs.DeleteJob(ctx, &jobsv1.DeleteJobRequest{Id: set.GetJobs()[0].GetId()})
	requireError(t, err, connect.CodeFailedPrecondition, jobsv1.ErrorReason_ERROR_REASON_NOT_OWNED)
	set.Jobs = set.GetJobs()[:1]
	stream, err = c.JobSets.ApplyJobSet(ctx, &jobsv1.ApplyJobSetRequest{JobSet: set})
	requireError(t, failure(t, stream, err), connect.CodeFailedPrecondition, jobsv1.ErrorReason_ERROR_REASON_MASS_DELETE)
	set.AllowMassDelete = true
	stream, err = c.JobSets.ApplyJobSet(ctx, &jobsv1.ApplyJobSetRequest{JobSet: set})
	require.Len(t, drain(t, stream, err), 2)
	_, err = c.JobSets.PlanJobSet(ctx, &jobsv1.PlanJobSetRequest{JobSet: &jobsv1.JobSet{Provider: "integration.x"}})
	requireError(t, err, connect.CodeFailedPrecondition, jobsv1.ErrorReason_ERROR_REASON_NOT_OWNED)
}

// failure is the error that ends a stream.
func failure[M any](t *testing.T, stream receiver[M], err error) error {
	t.Helper()
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	for {
		if _, err := stream.Receive(); err != nil {
			require.False(t, isEOF(err), "the stream ended without an error")
			return err
		}
	}
}

func loadsAndQuarantine(t *testing.T, w *world, key string, c *calledClients) {
	ctx := t.Context()
	_, err := c.Loads.ListLoads(ctx, &jobsv1.ListLoadsRequest{})
	require.NoError(t, err)
	_, err = c.Loads.SkipHeldMessage(ctx, &jobsv1.SkipHeldMessageRequest{Location: "nowhere"})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)

	held := int64(pipelinetest.Hold(t, w.pipeline, "loc-"+key))
	loads, err := c.Loads.ListLoads(ctx, &jobsv1.ListLoadsRequest{})
	require.NoError(t, err)
	var load *jobsv1.Load
	for _, l := range loads.GetLoads() {
		if l.GetLocation() == "loc-"+key {
			load = l
		}
	}
	require.Equal(t, jobsv1.LoadStatus_LOAD_STATUS_DOWN, load.GetStatus())
	require.EqualValues(t, 1, load.GetWaiting())
	require.Equal(t, held, load.GetHeldSequence())
	skipped, err := c.Loads.SkipHeldMessage(ctx, &jobsv1.SkipHeldMessageRequest{Location: "loc-" + key})
	require.NoError(t, err)
	require.Equal(t, held, skipped.GetSequence())
	asked, err := w.pipeline.SkipAsked(ctx, pipeline.LoadConsumer(pipeline.OperationLive, "loc-"+key, ""))
	require.NoError(t, err)
	require.EqualValues(t, held, asked.Sequence)

	organization := "org-" + key
	var refused []pipeline.Quarantined
	for n := range 3 {
		refused = append(refused, pipeline.Quarantined{
			Stage: pipeline.StageExtract, Operation: pipeline.OperationLive, Name: organization + ".source", Class: "NotJSON",
			Reason: "it is no JSON", Job: "x.y", Body: fmt.Appendf(nil, "body %d", n),
		})
	}
	_, err = w.pipeline.Quarantine(ctx, refused)
	require.NoError(t, err)
	filter := &jobsv1.QuarantineFilter{Organization: organization}
	page, err := c.Quarantine.ListQuarantineItems(ctx, &jobsv1.ListQuarantineItemsRequest{Filter: filter, PageSize: 2})
	require.NoError(t, err)
	require.Len(t, page.GetItems(), 2)
	newest := page.GetItems()[0]
	page, err = c.Quarantine.ListQuarantineItems(ctx, &jobsv1.ListQuarantineItemsRequest{Filter: filter, PageToken: page.GetNextPageToken()})
	require.NoError(t, err)
	require.Len(t, page.GetItems(), 1)
	require.Less(t, page.GetItems()[0].GetId(), newest.GetId())
	require.Empty(t, page.GetNextPageToken())
	groups, err := c.Quarantine.SummarizeQuarantine(ctx, &jobsv1.SummarizeQuarantineRequest{Filter: filter})
	require.NoError(t, err)
	require.Len(t, groups.GetGroups(), 1)
	require.EqualValues(t, 3, groups.GetGroups()[0].GetItemCount())
	require.Equal(t, newest.GetId(), groups.GetGroups()[0].GetLatestId())
	item, err := c.Quarantine.GetQuarantineItem(ctx, &jobsv1.GetQuarantineItemRequest{Id: newest.GetId()})
	require.NoError(t, err)
	require.Equal(t, "body 2", string(item.GetItem().GetBody()))
	require.NotEmpty(t, item.GetItem().GetNotReplayable())

	replay, err := c.Quarantine.ReplayQuarantineItems(ctx, &jobsv1.ReplayQuarantineItemsRequest{Filter: filter, Force: true})
	require.NoError(t, err)
	require.Zero(t, replay.GetReplayCount())
	require.Len(t, replay.GetLeft(), 3)
	drop, err := c.Quarantine.DropQuarantineItems(ctx, &jobsv1.DropQuarantineItemsRequest{Filter: filter})
	require.NoError(t, err)
	require.EqualValues(t, 3, drop.GetDropCount())
	drop, err = c.Quarantine.DropQuarantineItems(ctx, &jobsv1.DropQuarantineItemsRequest{Ids: []int64{newest.GetId()}, Force: true})
	require.NoError(t, err)
	require.EqualValues(t, 1, drop.GetDropCount())
	_, err = c.Quarantine.GetQuarantineItem(ctx, &jobsv1.GetQuarantineItemRequest{Id: newest.GetId()})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)
	_, err = c.Quarantine.DropQuarantineItems(ctx, &jobsv1.DropQuarantineItemsRequest{})
	requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST)
}

func bookmarks(t *testing.T, key string, c *calledClients) {
	ctx, at := t.Context(), timestamppb.New(time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC))
	request := &jobsv1.SetBookmarkRequest{JobId: "extract_x." + key, Source: "Blue Oak=Ten.Min", Position: at, Revision: new(int64)}
	made, err := c.Bookmarks.SetBookmark(ctx, request)
	require.NoError(t, err)
	require.Equal(t, "Blue_Oak=Ten_Min", made.GetBookmark().GetSource())
	_, err = c.Bookmarks.SetBookmark(ctx, request)
	requireError(t, err, connect.CodeAborted, jobsv1.ErrorReason_ERROR_REASON_ETAG_MISMATCH)
	_, err = c.Bookmarks.SetBookmark(ctx, &jobsv1.SetBookmarkRequest{JobId: request.GetJobId(), Source: "b", Position: at})
	require.NoError(t, err)
	_, err = c.Bookmarks.SetBookmark(ctx, &jobsv1.SetBookmarkRequest{JobId: request.GetJobId(), Source: "b", Position: &timestamppb.Timestamp{}})
	requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST)
	page, err := c.Bookmarks.ListBookmarks(ctx, &jobsv1.ListBookmarksRequest{JobId: request.GetJobId(), PageSize: 1})
	require.NoError(t, err)
	require.Len(t, page.GetBookmarks(), 1)
	require.True(t, at.AsTime().Equal(page.GetBookmarks()[0].GetPosition().AsTime()))
	rest, err := c.Bookmarks.ListBookmarks(ctx, &jobsv1.ListBookmarksRequest{JobId: request.GetJobId(), PageToken: page.GetNextPageToken()})
	require.NoError(t, err)
	require.Len(t, rest.GetBookmarks(), 1)
	one, err := c.Bookmarks.ListBookmarks(ctx, &jobsv1.ListBookmarksRequest{JobId: request.GetJobId(), Source: request.GetSource()})
	require.NoError(t, err)
	require.Equal(t, made.GetBookmark().GetRevision(), one.GetBookmarks()[0].GetRevision())
}

// archives reads an archive of one batch with two messages.
func archives(t *testing.T, w *world, key string, c *calledClients) {
	ctx, hour := t.Context(), time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	place := &jobsv1.ArchivePlace{Prefix: key + "/"}
	store, err := w.store()
	require.NoError(t, err)
	in := archive.Archive{Store: store, Bucket: archive.DefaultBucket, Prefix: place.GetPrefix()}
	var messages []pipeline.Stored
	for n := range uint64(2) {
		messages = append(messages, pipeline.Stored{
			Sequence: n + 1, Time: hour.Add(time.Duration(n) * time.Minute), Subject: "dendra.raw.v1.live.a.csi", Body: []byte(`{"n":1}`),
		})
	}
	batch, err := archive.Build(archive.NewIncarnation(pipeline.StreamRaw, hour, 0), archive.Range{First: 1, Last: 2}, messages)
	require.NoError(t, err)
	_, _, err = in.WriteRecord(ctx, batch)
	require.NoError(t, err)
	_, err = in.Put(ctx, batch.Objects[0])
	require.NoError(t, err)

	audit := func(request *jobsv1.AuditArchiveRequest) *jobsv1.ArchiveReport {
		stream, err := c.Archive.AuditArchive(ctx, request)
		answers := drain(t, stream, err)
		return answers[len(answers)-1].GetReport()
	}
	report := audit(&jobsv1.AuditArchiveRequest{Place: place, Deep: true, Offline: true})
	require.Empty(t, report.GetFindings())
	require.EqualValues(t, 2, report.GetStreams()[0].GetMessages())
	report = audit(&jobsv1.AuditArchiveRequest{Place: place})
	require.EqualValues(t, 1, report.GetFindingCount(), "it is of another stream")
	require.Equal(t, "other_stream", report.GetFindings()[0].GetKind())

	filter := &jobsv1.ArchiveFilter{Organization: "a", Source: "csi"}
	listed, err := c.Archive.ListArchiveObjects(ctx, &jobsv1.ListArchiveObjectsRequest{Place: place, Filter: filter})
	require.NoError(t, err)
	require.Len(t, listed.GetObjects(), 1)
	require.EqualValues(t, 2, listed.GetObjects()[0].GetSequences().GetLast())
	read := func(request *jobsv1.ReadArchiveRequest) (lines int) {
		stream, err := c.Archive.ReadArchive(ctx, request)
		for _, part := range drain(t, stream, err) {
			lines += bytes.Count(part.GetLines(), []byte("\n"))
		}
		return lines
	}
	require.Equal(t, 2, read(&jobsv1.ReadArchiveRequest{Place: place, Filter: filter}))
	require.Equal(t, 1, read(&jobsv1.ReadArchiveRequest{
		Place: place, Key: listed.GetObjects()[0].GetKey(), Filter: &jobsv1.ArchiveFilter{StartTime: timestamppb.New(hour.Add(time.Minute))},
	}))
	stream, err := c.Archive.ReadArchive(ctx, &jobsv1.ReadArchiveRequest{Place: place, Key: "x"})
	requireError(t, failure(t, stream, err), connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST)
}

func overviews(t *testing.T, key string, c *calledClients) {
	ctx := t.Context()
	id := "take_steps.overview-" + key
	j := steps(t, id)
	j.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
	_, err := c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: j})
	require.NoError(t, err)

	watching, stop := context.WithCancel(ctx)
	defer stop()
	stream, err := c.Overview.WatchOverview(watching, &jobsv1.WatchOverviewRequest{})
	require.NoError(t, err)
	first, err := stream.Receive()
	require.NoError(t, err)
	require.False(t, first.GetDelta(), "the first message is all")
	require.NotEmpty(t, first.GetOverview().GetWorkers())

	find := func(o *jobsv1.Overview) *jobsv1.JobOverview {
		for _, j := range o.GetJobs() {
			if j.GetId() == id {
				return j
			}
		}
		return nil
	}
	stacktest.WaitFor(t, "the job to be in the overview as completed", func() (bool, error) {
		got, err := c.Overview.GetOverview(ctx, &jobsv1.GetOverviewRequest{})
		j := find(got.GetOverview())
		return j.GetOutcomes() == "C" && j.GetDurations() == "5" && j.GetEnded() && got.GetOverview().GetEndedJobs() > 0, err
	})
	stop()

	now := time.Now()
	since, until := timestamppb.New(now.Add(-time.Hour)), timestamppb.New(now.Add(time.Hour))
	timeline, err := c.Overview.GetTimeline(ctx, &jobsv1.GetTimelineRequest{StartTime: since, EndTime: until})
	require.NoError(t, err)
	at := slices.IndexFunc(timeline.GetJobs(), func(j *jobsv1.JobTimeline) bool { return j.GetId() == id })
	require.NotEqual(t, -1, at, "the run is on the timeline")
	require.Len(t, timeline.GetJobs()[at].GetRuns(), 1)
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_COMPLETED, timeline.GetJobs()[at].GetRuns()[0].GetStatus())
	_, err = c.Overview.GetTimeline(ctx, &jobsv1.GetTimelineRequest{StartTime: until, EndTime: since})
	requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST)
}
