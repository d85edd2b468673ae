package cli_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// endedQueues terminates a queue, which is told wherever someone asks, and recovered.
func endedQueues(t *testing.T, c console, st *stacktest.Stack) {
	c.ok(t, "queues", "set", "cut", "--on-failure", "halt")
	c.ok(t, "queues", "pause", "cut", "--reason", "lunch")
	for _, key := range []string{"cut1", "cut2"} {
		c.ok(t, "queues", "enqueue", "cut", "--type", "TakeSteps", "--key", key, "--spec", `{"steps": 1}`)
	}
	require.Equal(t, "Queue cut: unchanged, 2 waiting; its workflow is running.\n", c.ok(t, "queues", "recover", "cut"))
	require.NoError(t, st.Dial(t).TerminateWorkflow(t.Context(), contract.QueueWorkflowID("cut"), "", "by mistake"))

	const hint = `queue cut does not run, its workflow ended as terminated at \S+ \S+ UTC: starter queues recover cut starts it again with what waits`
	r := c.run(t.Context(), "queues", "describe", "cut")
	require.Equal(t, 0, r.code)
	require.Regexp(t, `^Queue +cut\nStatus +terminated\nWorkflow ended +\S+ \(.* ago\) by \S+: by mistake\n`, r.stdout)
	require.Regexp(t, `\nWaiting +2\n(?s:.*)take_steps\.cut1(?s:.*)take_steps\.cut2`, r.stdout)
	require.Equal(t, "starter queues recover cut starts it again with what waits.\n", r.stderr)
	stacktest.WaitFor(t, "the queue in the list", func() (bool, error) {
		for _, q := range answered[jobsv1.ListQueuesResponse](t, c, "queues", "list").GetQueues() {
			if q.GetName() == "cut" && q.GetEnd() != nil {
				require.Equal(t, jobsv1.RunStatus_RUN_STATUS_TERMINATED, q.GetEnd().GetStatus())
				require.EqualValues(t, 2, q.GetWaiting())
				return true, nil
			}
		}
		return false, nil
	})
	require.Regexp(t, `\ncut +terminated +2 `, "\n"+c.ok(t, "queues", "list"))
	require.Regexp(t, `take_steps\.cut1 +queued +waiting `, c.ok(t, "jobs", "list", "--queue", "cut"))
	for _, args := range [][]string{
		{"enqueue", "cut", "--type", "TakeSteps", "--key", "cut3", "--spec", `{"steps": 1}`}, {"pause", "cut"}, {"resume", "cut"},
		{"cancel", "cut", "take_steps.cut1", "--yes"}, {"skip", "cut", "--yes"}, {"set", "cut", "--on-failure", "continue"},
	} {
		r := c.run(t.Context(), append([]string{"queues"}, args...)...)
		require.Equal(t, 1, r.code, args)
		require.Regexp(t, `^starter: (\w[^:]*: )?`+hint+`\n$`, r.stderr, fmt.Sprint(args))
	}
	require.Equal(t, "Queue cut: recovered, 2 waiting.\n", c.ok(t, "queues", "recover", "cut"))
	require.Equal(t, "Queue cut: unchanged, 2 waiting; its workflow is running.\n", c.ok(t, "queues", "recover", "cut"))
	require.Regexp(t, `\nStatus +paused: lunch\nOn failure +halt\nAccepted +2\n`, c.ok(t, "queues", "describe", "cut"))
	c.ok(t, "queues", "resume", "cut")
	stacktest.WaitFor(t, "the items to run", func() (bool, error) {
		return answered[jobsv1.GetQueueResponse](t, c, "queues", "describe", "cut").GetQueue().GetCompleted() == 2, nil
	})
}
