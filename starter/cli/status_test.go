package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const failingLoop = `
[jobs.take_steps.failing]
spec = { steps = 1, fail = true }
continuous = { interval = "PT0.1S" }
retry_backoff = { initial = "PT1H", max = "PT1H" }

[jobs.take_steps.twice-paused]
spec = { steps = 1 }
recurring = { recur_every = "P1D" }
`

// standing looks at how lists show jobs that fail, or were paused twice.
func standing(t *testing.T, c console, st *stacktest.Stack) {
	c.ok(t, "apply", "-f", writeFile(t, "jobs.toml", failingLoop), "--yes")
	var rows []*jobsv1.Job
	stacktest.WaitFor(t, "the job to be listed as failing", func() (bool, error) {
		rows = answered[jobsv1.ListJobsResponse](t, c, "jobs", "list", "--status", "failing").GetJobs()
		return len(rows) == 1, nil
	})
	require.Equal(t, "take_steps.failing", rows[0].GetId())
	require.Equal(t, "Told", rows[0].GetState().GetFailing().GetErrorClass())
	require.Contains(t, rows[0].GetState().GetFailing().GetErrorMessage(), "told to fail")
	require.Regexp(t, `take_steps\.failing  continuous  failing .*  Told: told to fail\n$`, c.ok(t, "jobs", "list", "--status", "failing"))
	require.Regexp(t, `\nStatus +failing: Told: told to fail\nFailing +since .*\n`, c.ok(t, "jobs", "describe", "take_steps.failing"))

	// Verbs find it by its status, and it is paused then, whatever it was.
	require.Equal(t, "take_steps.failing: paused\n", c.ok(t, "jobs", "pause", "--status", "failing", "--yes", "--reason", "no database"))
	stacktest.WaitFor(t, "the pause in the list", func() (bool, error) {
		return len(answered[jobsv1.ListJobsResponse](t, c, "jobs", "list", "--status", "paused", "--mode", "continuous").GetJobs()) == 1, nil
	})
	require.Empty(t, answered[jobsv1.ListJobsResponse](t, c, "jobs", "list", "--status", "failing").GetJobs())

	// What is paused a second time keeps the first reason.
	require.Equal(t, "Job take_steps.failing: paused; it was paused already: no database.\n",
		c.ok(t, "jobs", "pause", "take_steps.failing", "--reason", "maintenance"))
	stacktest.WaitFor(t, "both reasons", func() (bool, error) {
		rows = answered[jobsv1.ListJobsResponse](t, c, "jobs", "list", "--status", "paused", "--mode", "continuous").GetJobs()
		return rows[0].GetState().GetPauseReason() == "no database; also: maintenance", nil
	})
	for _, reason := range []string{"vendor", "server", "vendor"} {
		c.ok(t, "jobs", "pause", "take_steps.twice-paused", "--reason", reason)
	}
	require.Contains(t, c.ok(t, "jobs", "describe", "take_steps.twice-paused"), " paused: vendor; also: server\n")
	c.ok(t, "jobs", "resume", "take_steps.twice-paused")
	require.Contains(t, c.ok(t, "jobs", "describe", "take_steps.twice-paused"), " scheduled\n")
	require.Equal(t, "Job take_steps.failing: resumed.\n", c.ok(t, "jobs", "resume", "take_steps.failing"))
	stacktest.WaitFor(t, "the job to be listed as failing again", func() (bool, error) {
		return len(answered[jobsv1.ListJobsResponse](t, c, "jobs", "list", "--status", "failing").GetJobs()) == 1, nil
	})
	require.Equal(t, "Job take_steps.failing: resumed; it was not paused; its count of failures is reset.\n",
		c.ok(t, "jobs", "resume", "take_steps.failing"))
	pausesOfOneIteration(t, c)
	resumeAfterLostWorkers(t, c, st)
	retryOfLetters(t, c, st)
	c.ok(t, "jobs", "stop", "take_steps.failing", "--yes")

	// A run id that is none names no run, and no worker is blamed for it.
	r := c.run(t.Context(), "runs", "describe", "job/take_steps.once", "nonsense")
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: job/take_steps.once has no run nonsense\n", r.stderr)
}

// pausesOfOneIteration pauses a loop three times before its iteration has ended: until
// then only its worker knows of the pauses.
func pausesOfOneIteration(t *testing.T, c console) {
	t.Helper()
	gate := workertest.NewGate(t)
	c.ok(t, "apply", "-f", writeFile(t, "jobs.toml", fmt.Sprintf(`
[jobs.take_steps.deaf]
spec = { steps = 2, gate = %q, deaf = true }
continuous = { interval = "PT1H" }
stop_grace_period = "PT5M"
`, gate)), "--yes")
	stacktest.WaitFor(t, "the iteration", func() (bool, error) {
		_, err := os.Stat(gate + ".reached")
		return err == nil, err
	})
	for _, pause := range []struct{ reason, told string }{
		{"vendor", "paused"},
		{"server", "paused; it was paused already: vendor"},
		{"disk", "paused; it was paused already: vendor; also: server"},
	} {
		require.Equal(t, "Job take_steps.deaf: "+pause.told+".\n", c.ok(t, "jobs", "pause", "take_steps.deaf", "--reason", pause.reason))
	}
	loop := answered[jobsv1.Job](t, c, "jobs", "describe", "take_steps.deaf").GetState().GetContinuous()
	require.Equal(t, string(contract.PhaseRunning), loop.GetPhase(), "the iteration goes on")
	require.Equal(t, "vendor; also: server; also: disk", loop.GetPauseReason())
	workertest.Open(t, gate)
	stacktest.WaitFor(t, "the end of the iteration", func() (bool, error) {
		detail := answered[jobsv1.Job](t, c, "jobs", "describe", "take_steps.deaf")
		return detail.GetState().GetPauseReason() == "vendor; also: server; also: disk", nil
	})
	require.Equal(t, "Job take_steps.deaf: resumed.\n", c.ok(t, "jobs", "resume", "take_steps.deaf"))
	c.ok(t, "jobs", "stop", "take_steps.deaf", "--yes")
}

// resumeAfterLostWorkers resumes a loop that waits for an hour since the workers of its
// latest iterations died, which counts as no failure.
func resumeAfterLostWorkers(t *testing.T, c console, st *stacktest.Stack) {
	t.Helper()
	j, problems := api.Definition(answered[jobsv1.Job](t, c, "jobs", "describe", "take_steps.failing"))
	require.Empty(t, problems)
	j.ID, j.Spec = "take_steps.unlucky", json.RawMessage(`{"steps": 1}`)
	state := contract.NewContinuousState(j)
	state.ConsecutiveLost, state.LostWorkers, state.EndedAt = 3, 3, time.Now()
	attributes, err := contract.Attributes(j)
	require.NoError(t, err)
	_, err = st.Dial(t).ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{
		ID: contract.JobWorkflowID(j.ID), TaskQueue: contract.TaskQueue(j.Worker),
		TypedSearchAttributes: attributes, Memo: map[string]any{contract.MemoJob: j},
	}, contract.ContinuousJobType, state)
	require.NoError(t, err)
	require.Equal(t, "Job take_steps.unlucky: resumed; it was not paused; its count of failures is reset.\n",
		c.ok(t, "jobs", "resume", "take_steps.unlucky"))
	stacktest.WaitFor(t, "the next iteration", func() (bool, error) {
		return answered[jobsv1.Job](t, c, "jobs", "describe", j.ID).GetState().GetContinuous().GetIterations() > 0, nil
	})
	c.ok(t, "jobs", "stop", j.ID, "--yes")
}

// retryOfLetters retries two letters of which one has its definition nowhere.
func retryOfLetters(t *testing.T, c console, st *stacktest.Stack) {
	t.Helper()
	_, err := st.Dial(t).ExecuteWorkflow(t.Context(), sdk.StartWorkflowOptions{
		ID: contract.QueueWorkflowID("letters"), TaskQueue: contract.QueuesTaskQueue, TypedSearchAttributes: contract.QueueAttributes("letters"),
	}, contract.JobQueueType, contract.QueueState{
		Name: "letters", Accepted: 1, DeadLetters: []contract.DeadLetter{{Sequence: 1, JobID: "take_steps.large"}},
	})
	require.NoError(t, err)
	c.ok(t, "queues", "enqueue", "letters", "--type", "TakeSteps", "--key", "kept", "--spec", `{"steps": 1, "fail": true}`, "--max-retry-count", "0")
	stacktest.WaitFor(t, "the second dead letter", func() (bool, error) {
		return answered[jobsv1.GetQueueResponse](t, c, "queues", "describe", "letters").GetQueue().GetDeadLetters() == 2, nil
	})
	r := c.run(t.Context(), "queues", "dead", "retry", "letters", "--all")
	require.Equal(t, 1, r.code)
	require.Regexp(t, `^JOB +NUMBER  AHEAD  NOTE\ntake_steps\.kept  3 +0 +-\n$`, r.stdout)
	require.Equal(t, `Dead letter 1 of job take_steps.large is left: no run of it was started, which would have its definition.
starter: 1 of 2 dead letters of queue letters cannot be retried
`, r.stderr)
	require.Regexp(t, `\n1 +take_steps\.large `, c.ok(t, "queues", "dead", "list", "letters"))
}
