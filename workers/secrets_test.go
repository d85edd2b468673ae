package workers_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
)

// TestNothingThatLeavesARunHasItsSecrets has a handler put a secret, in all forms, into all
// that it can leave, in runs that succeed, fail, are canceled, and are handed over by a
// worker that stops. Everything that is kept of them is searched.
func TestNothingThatLeavesARunHasItsSecrets(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
	st := stacktest.StartOwn(t, "--only", "temporal,nats")
	c := newControl(t, st)
	secret := stacktest.NewCanary(t, "spilt")
	worker := func(name string) *stacktest.Process {
		program := workerProgram(t, st.Temporal, "--service", name, "--log-format", "json")
		program.Env = []string{workerVariable + "=1", "DENDRA_SECRET_TEST_TOKEN=" + secret.Value}
		w := stacktest.StartProgram(t, st, program)
		w.WaitOutput(`"msg":"serving"`)
		return w
	}
	search := func(place string, content []byte) {
		require.Empty(t, secret.In(content), place)
		require.NotContains(t, string(content), "spilt/", "a part that was cut, in: %s", place)
	}
	first := worker("first")
	begin := func(key string, spec tellSpec) client.RunRef {
		return startRun(t, c, newJob(t, "TellSecret", key, oneShot(), spec))
	}
	gate := workertest.NewGate(t)
	succeeds, fails := begin("succeeds", tellSpec{Succeed: true}), begin("fails", tellSpec{})
	canceled, drained := begin("canceled", tellSpec{Gate: workertest.NewGate(t)}), begin("drained", tellSpec{Gate: gate, Succeed: true})
	require.Contains(t, requireCompleted(t, c, succeeds).Output.Message, "[redacted]")
	require.Equal(t, client.RunFailed, follow(t, c, fails).Status)
	for _, ref := range []client.RunRef{canceled, drained} {
		waitFirstStep(t, c, ref)
		description, err := c.Temporal().DescribeWorkflowExecution(t.Context(), ref.WorkflowID, ref.RunID)
		require.NoError(t, err)
		heartbeat, err := proto.Marshal(description.GetPendingActivities()[0].GetHeartbeatDetails())
		require.NoError(t, err)
		require.Contains(t, string(heartbeat), "[redacted]")
		search("heartbeat", heartbeat)
	}
	require.NoError(t, c.Runs.Cancel(t.Context(), canceled, "by a test"))
	require.Equal(t, client.RunCanceled, follow(t, c, canceled).Status)
	first.Signal(syscall.SIGTERM)
	require.Zero(t, first.Wait())
	second := worker("second")
	workertest.Open(t, gate)
	requireCompleted(t, c, drained)

	for _, ref := range []client.RunRef{succeeds, fails, canceled, drained} {
		events := c.Temporal().GetWorkflowHistory(t.Context(), ref.WorkflowID, ref.RunID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			require.NoError(t, err)
			content, err := proto.Marshal(event)
			require.NoError(t, err)
			search("history of "+ref.WorkflowID, content)
		}
	}
	second.Signal(syscall.SIGTERM)
	require.Zero(t, second.Wait())
	for _, w := range []*stacktest.Process{first, second} {
		require.Contains(t, w.Output(), "[redacted]")
		search("log of a worker", []byte(w.Output()))
	}
	require.Zero(t, st.Stop())
	logged := false
	st.EachFile(t, func(server string, content []byte) {
		logged = logged || server == "nats" && len(content) > 0
		search("files of "+server, content)
	})
	require.True(t, logged, "NATS has the logs of runs")
}
