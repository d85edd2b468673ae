package readmodel_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// TestListAndOverviewAgree has jobs in several modes and states, of which the list and the
// overview have to say the same.
func TestListAndOverviewAgree(t *testing.T) {
	t.Parallel()
	w := startWorld(t, readmodel.Config{})
	ctx := t.Context()
	w.touch(t, "fail")
	held := map[string]any{"gate": w.file("gate")}
	start := func(j *jobsv1.Job) {
		w.create(t, recurring(j, 24*time.Hour))
		_, err := w.api.Jobs.RunJob(ctx, &jobsv1.RunJobRequest{Id: j.GetId()})
		require.NoError(t, err)
	}
	start(newJob(t, "take_steps.runs", held))
	start(newJob(t, "take_steps.fails", map[string]any{"fail": w.file("fail")}))
	w.create(t, recurring(newJob(t, "take_steps.idle", nil), 24*time.Hour))
	w.create(t, recurring(newJob(t, "take_steps.paused", nil), 24*time.Hour))
	_, err := w.api.Jobs.PauseJob(ctx, &jobsv1.PauseJobRequest{Id: "take_steps.paused", Reason: "for a test"})
	require.NoError(t, err)
	once := newJob(t, "take_steps.once", held)
	once.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
	w.create(t, once)
	loop := newJob(t, "take_steps.loop", held)
	loop.Mode = &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Hour)}}
	w.create(t, loop)

	const said = "%s %q %q %s %s"
	want := map[string]jobsv1.JobStatus{
		"take_steps.runs": jobsv1.JobStatus_JOB_STATUS_RUNNING, "take_steps.fails": jobsv1.JobStatus_JOB_STATUS_FAILING,
		"take_steps.idle":   jobsv1.JobStatus_JOB_STATUS_SCHEDULED,
		"take_steps.paused": jobsv1.JobStatus_JOB_STATUS_PAUSED, "take_steps.once": jobsv1.JobStatus_JOB_STATUS_RUNNING,
		"take_steps.loop": jobsv1.JobStatus_JOB_STATUS_RUNNING,
	}
	w.await(t, "that the list and the overview agree", func(o *jobsv1.Overview) bool {
		list, err := w.api.Jobs.ListJobs(ctx, &jobsv1.ListJobsRequest{})
		require.NoError(t, err)
		agree := 0
		for _, j := range list.GetJobs() {
			s, other := j.GetState(), find(o, j.GetId())
			listed := fmt.Sprintf(said, s.GetStatus(), s.GetWaitReason(), s.GetPauseReason(), s.GetNextStartTime().AsTime(), s.GetLastStartTime().AsTime())
			shown := fmt.Sprintf(said, other.GetStatus(), other.GetWaitReason(), other.GetPauseReason(), other.GetNextStartTime().AsTime(), other.GetLastStartTime().AsTime())
			if listed == shown && s.GetStatus() == want[j.GetId()] {
				agree++
			}
		}
		return agree == len(want) && len(list.GetJobs()) == len(want)
	})
	w.touch(t, "gate")
	w.await(t, "that what ran is scheduled", func(o *jobsv1.Overview) bool {
		return find(o, "take_steps.runs").GetStatus() == jobsv1.JobStatus_JOB_STATUS_SCHEDULED
	})
}
