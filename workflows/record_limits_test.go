package workflows_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// limits records a queue that gets signals with items that it refuses, and with others.
func (r *recorder) limits() {
	const name = "limits"
	schedule := job.Trigger{Queued: &job.Queued{Queue: name}}
	owned := r.job("limits-owned", schedule, "")
	owned.Options.Owner.User = strings.Repeat("o", 3000)
	r.startQueue(name, contract.QueueState{})
	for i, signaled := range []job.Job{r.job("limits-first", schedule, ""), owned, r.job("limits-second", schedule, ""), r.job("limits-third", schedule, ""), owned} {
		require.NoError(r, r.client.Temporal().SignalWorkflow(r.Context(), contract.QueueWorkflowID(name), "",
			contract.SignalEnqueue, contract.EnqueueRequest{Items: []contract.EnqueueItem{{Job: signaled}}, RequestID: fmt.Sprint("limits-", i)}))
	}
	r.queueReaches(name, "the signaled items to end", func(s *contract.QueueState) bool { return s.Completed == 3 && s.Failed == 2 })
	for n, ref := range r.runsOf(contract.QueueWorkflowID(name)) {
		r.save(fmt.Sprintf("queue_limits_%d", n+1), ref)
	}
}

// canceledLost records a run that is canceled while its worker is silent.
func (r *recorder) canceledLost(handler *scripted) {
	j := r.script("canceled-lost", job.Trigger{OneShot: &job.OneShot{}}, "llll")
	j.Options.HeartbeatTimeout = job.Duration(3 * time.Second)
	ref, err := r.client.Runs.Start(r.Context(), j, contract.StartedByHand)
	require.NoError(r, err)
	stacktest.WaitFor(r, "the first attempt", func() (bool, error) {
		handler.mu.Lock()
		defer handler.mu.Unlock()
		return handler.attempts[j.ID] > 0, nil
	})
	require.NoError(r, r.client.Runs.Cancel(r.Context(), ref, "recorded"))
	r.ended(ref)
	run, err := r.client.Runs.Get(r.Context(), ref)
	require.NoError(r, err)
	require.Equal(r, client.RunCanceled, run.Status)
	r.save("run_canceled_lost", ref)
}
