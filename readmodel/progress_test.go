package readmodel_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// TestAFailingLoopThatProgressesIsNotFailing: an iteration fails. The next one goes on for
// long, and the job is failing until it has something done.
func TestAFailingLoopThatProgressesIsNotFailing(t *testing.T) {
	t.Parallel()
	w := startWorld(t, readmodel.Config{})
	ctx := t.Context()
	w.touch(t, "fail")
	const id = "take_steps.long"
	long := newJob(t, id, map[string]any{"fail": w.file("fail"), "gate": w.file("gate"), "step": w.file("step")})
	long.Mode = &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{Interval: durationpb.New(200 * time.Millisecond)}}
	w.create(t, long)
	failing := func(o *jobsv1.Overview) bool {
		return alert(o, "job-failing/"+id) != nil && find(o, id).GetStatus() == jobsv1.JobStatus_JOB_STATUS_FAILING
	}
	// lists gives the status and the failures by each way to ask for them.
	lists := func() (status []client.JobStatus, failures int) {
		rows, _, err := w.client.Jobs.List(ctx, client.JobFilter{})
		require.NoError(t, err)
		require.Len(t, rows, 1)
		detail, err := w.client.Jobs.Get(ctx, id)
		require.NoError(t, err)
		found, err := w.client.Jobs.Find(ctx, job.Filter{State: true})
		require.NoError(t, err)
		require.Len(t, found, 1)
		for _, is := range []bool{rows[0].Failing != nil, detail.Row.Failing != nil, found[0].Failing != nil} {
			if is {
				failures++
			}
		}
		return []client.JobStatus{rows[0].Status, detail.Row.Status}, failures
	}
	w.await(t, "that it fails", failing)
	require.NoError(t, os.Remove(w.file("fail")))
	w.await(t, "an iteration that has nothing done", func(o *jobsv1.Overview) bool {
		return failing(o) && strings.HasSuffix(find(o, id).GetOutcomes(), "R")
	})
	status, failures := lists()
	require.Equal(t, []client.JobStatus{client.JobFailing, client.JobFailing}, status)
	require.Equal(t, 3, failures)

	w.touch(t, "step")
	w.await(t, "that it does not fail any more", func(o *jobsv1.Overview) bool {
		return alert(o, "job-failing/"+id) == nil && find(o, id).GetStatus() == jobsv1.JobStatus_JOB_STATUS_RUNNING && strings.HasSuffix(find(o, id).GetOutcomes(), "R")
	})
	stacktest.WaitFor(t, "the lists to say so", func() (bool, error) {
		status, failures = lists()
		return failures == 0, nil
	})
	require.Equal(t, []client.JobStatus{client.JobRunning, client.JobRunning}, status)
}
