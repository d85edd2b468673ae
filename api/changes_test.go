package api_test

import (
	"strconv"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// changes makes changes of a job and of a queue, and reads them.
func changes(t *testing.T, key string, c *calledClients) {
	ctx, id := t.Context(), "take_steps.changed-"+key
	j := steps(t, id, "token", "secret://one")
	j.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{RecurEvery: durationpb.New(24 * time.Hour)}}
	ok := func(err error) { t.Helper(); require.NoError(t, err) }
	_, err := c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: j, ValidateOnly: true, Reason: "not done"})
	ok(err)
	_, err = c.Jobs.CreateJob(ctx, &jobsv1.CreateJobRequest{Job: j, Reason: "first"})
	ok(err)
	j.Spec = spec(t, map[string]any{"steps": 3, "token": "secret://one"})
	_, err = c.Jobs.UpdateJob(ctx, &jobsv1.UpdateJobRequest{Job: j, UpdateMask: "spec", Reason: "one more step"})
	ok(err)
	paused, err := c.Jobs.PauseJob(ctx, &jobsv1.PauseJobRequest{Id: id, Reason: "lunch", Duration: durationpb.New(time.Hour)})
	ok(err)
	require.InDelta(t, time.Hour.Seconds(), time.Until(paused.GetEndTime().AsTime()).Seconds(), 60)
	got, err := c.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: id})
	ok(err)
	require.Equal(t, paused.GetEndTime().AsTime(), got.GetJob().GetState().GetPauseEndTime().AsTime())
	require.Equal(t, "until "+paused.GetEndTime().AsTime().Format(time.RFC3339)+": lunch", got.GetJob().GetState().GetReason())
	starts, err := c.Jobs.ListNextStarts(ctx, &jobsv1.ListNextStartsRequest{Id: id})
	ok(err)
	require.Equal(t, paused.GetEndTime().AsTime(), starts.GetPauseEndTime().AsTime())
	_, err = c.Jobs.ResumeJob(ctx, &jobsv1.ResumeJobRequest{Id: id, Reason: "back"})
	ok(err)
	_, err = c.Jobs.ResumeJob(ctx, &jobsv1.ResumeJobRequest{Id: id, Reason: "nothing to do"})
	ok(err)
	run, err := c.Jobs.RunJob(ctx, &jobsv1.RunJobRequest{Id: id, Reason: "try it"})
	ok(err)
	requireEnded(t, c, run.GetRunName())
	_, err = c.Runs.CancelRun(ctx, &jobsv1.CancelRunRequest{Name: run.GetRunName()})
	requireError(t, err, connect.CodeFailedPrecondition, jobsv1.ErrorReason_ERROR_REASON_UNSUPPORTED)
	_, err = c.Jobs.DeleteJob(ctx, &jobsv1.DeleteJobRequest{Id: id, Reason: "not needed"})
	ok(err)

	list := func(filter string, size int32) *jobsv1.ListChangesResponse {
		answer, err := c.Changes.ListChanges(ctx, &jobsv1.ListChangesRequest{Filter: filter, PageSize: size})
		require.NoError(t, err)
		return answer
	}
	of := "job_id = " + strconv.Quote(id)
	var all []*jobsv1.Change
	stacktest.WaitFor(t, "six changes", func() (bool, error) {
		all = list(of, 0).GetChanges()
		return len(all) == 6, nil
	})
	want := [][3]string{
		{"delete-job", "deleted", "not needed"}, {"run-job", "started", "try it"}, {"resume-job", "resumed", "back"},
		{"pause-job", "paused until 20.* UTC", "lunch"}, {"update-job", "updated", "one more step"}, {"create-job", "created", "first"},
	}
	for n, change := range all {
		require.Equal(t, []string{want[n][0], want[n][2]}, []string{change.GetVerb(), change.GetReason()})
		require.Regexp(t, "^"+want[n][1]+"$", change.GetResult())
		require.Equal(t, []string{"job", id}, []string{change.GetKind(), change.GetObject()})
		require.NotEmpty(t, change.GetCaller())
		require.InDelta(t, 0, time.Since(change.GetChangeTime().AsTime()).Seconds(), 600)
	}
	require.Contains(t, all[4].GetDifference(), "-steps = 2\n+steps = 3\n")
	require.InDelta(t, 2, all[4].GetBefore().GetSpec().GetFields()["steps"].GetNumberValue(), 0)
	require.Contains(t, all[5].GetDifference(), `secret://one`)
	require.Nil(t, all[5].GetBefore())
	require.Nil(t, all[0].GetAfter())
	require.Contains(t, all[0].GetDifference(), "-recurring = ")

	first := list(of, 4)
	require.Len(t, first.GetChanges(), 4)
	rest, err := c.Changes.ListChanges(ctx, &jobsv1.ListChangesRequest{Filter: of, PageSize: 4, PageToken: first.GetNextPageToken()})
	ok(err)
	require.Len(t, rest.GetChanges(), 2)
	require.Empty(t, rest.GetNextPageToken())
	require.Len(t, list(of+` AND verb = "pause-*"`, 0).GetChanges(), 1)
	require.Len(t, list(`object = "`+id+`" AND verb = "run-job"`, 0).GetChanges(), 1)
	_, err = c.Changes.ListChanges(ctx, &jobsv1.ListChangesRequest{Filter: "who = me"})
	requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_FILTER)

	queue := "changed-" + key
	_, err = c.Queues.SetQueueFailurePolicy(ctx, &jobsv1.SetQueueFailurePolicyRequest{Queue: queue, OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_HALT})
	ok(err)
	held, err := c.Queues.PauseQueue(ctx, &jobsv1.PauseQueueRequest{Queue: queue, Reason: "lunch", Duration: durationpb.New(time.Hour)})
	ok(err)
	q, err := c.Queues.GetQueue(ctx, &jobsv1.GetQueueRequest{Name: queue})
	ok(err)
	require.Equal(t, held.GetEndTime().AsTime(), q.GetQueue().GetPauseEndTime().AsTime())
	stacktest.WaitFor(t, "two changes of the queue", func() (bool, error) {
		all = list("queue = "+strconv.Quote(queue), 0).GetChanges()
		return len(all) == 2, nil
	})
	require.Equal(t, "lunch", all[0].GetReason())
	require.Regexp(t, "^paused until 20.* UTC, 0 waiting$", all[0].GetResult())
}

// requireEnded waits for the end of a run.
func requireEnded(t *testing.T, c *calledClients, name string) {
	t.Helper()
	stacktest.WaitFor(t, name+" to end", func() (bool, error) {
		answer, err := c.Runs.GetRun(t.Context(), &jobsv1.GetRunRequest{Name: name})
		return answer.GetRun().GetEndTime() != nil, err
	})
}
