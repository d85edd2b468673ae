package readmodel_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// TestDriftGoesByTheLatestRecord prunes a job between the reading of the record and the look
// at the job, and has calls fail.
func TestDriftGoesByTheLatestRecord(t *testing.T) {
	t.Parallel()
	const provider = "drift-round"
	w := startWorld(t, readmodel.Config{Drift: []job.Provider{provider}, DriftEvery: time.Second, CallsPerSecond: 50})
	daily := func(names ...string) *jobsv1.JobSet {
		set := &jobsv1.JobSet{Provider: provider}
		for _, name := range names {
			set.Jobs = append(set.Jobs, recurring(newJob(t, "take_steps."+name, nil), 24*time.Hour))
		}
		return set
	}
	// The round begins with the call that reads the record. Looks at jobs come after it.
	const readsRecord, looks = "GetWorkflowExecutionHistory", "DescribeSchedule"
	w.apply(t, &jobsv1.ApplyJobSetRequest{JobSet: daily("a", "b", "c")})
	var rounds atomic.Int32
	pruned, seen := make(chan struct{}), make(chan struct{})
	prune := func(method string) error {
		switch {
		case method == readsRecord:
			rounds.Add(1)
		case method == looks && rounds.CompareAndSwap(1, 2):
			close(seen)
			<-pruned
		}
		return nil
	}
	w.refuse.Store(&prune)
	subscription := w.reader.Subscribe()
	t.Cleanup(subscription.Close)
	<-seen
	fewer := daily("a", "b")
	fewer.Prune, fewer.AllowMassDelete = true, true
	w.apply(t, &jobsv1.ApplyJobSetRequest{JobSet: fewer})
	end := time.Now()
	close(pruned)
	for {
		next, err := subscription.Next(t.Context())
		require.NoError(t, err)
		require.Zero(t, next.Overview.GetDrift().GetJobs(), "%v", next.Overview.GetDrift().GetJobIds())
		if next.Overview.GetDrift().GetReadTime().AsTime().After(end) {
			break
		}
	}

	// The first look of each round fails.
	var failed atomic.Bool
	refuse := func(method string) error {
		if method == readsRecord {
			failed.Store(false)
		} else if method == looks && failed.CompareAndSwap(false, true) {
			return status.Error(codes.FailedPrecondition, "not this one")
		}
		return nil
	}
	w.refuse.Store(&refuse)
	_, err := w.api.Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: "take_steps.a"})
	require.NoError(t, err)
	_, err = w.api.Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: "take_steps.b"})
	require.NoError(t, err)
	// One job alone has drifted, or both if a pause took the call that fails.
	w.await(t, "the drift of the other job", func(o *jobsv1.Overview) bool {
		return o.GetDrift().GetJobs() > 0 && len(o.GetNotes()) == 1 && strings.HasPrefix(o.GetNotes()[0], "drift: 1 of 2 looks failed: drift of job take_steps.")
	})
	require.True(t, w.reader.DriftKnown())
	w.refuse.Store(nil)
	w.await(t, "the drift of both", func(o *jobsv1.Overview) bool { return o.GetDrift().GetJobs() == 2 && len(o.GetNotes()) == 0 })
}
