package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/dendrascience/dendra-jobs/internal/grpcproxy"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestReadOnlyServer has a server that lets the starter look and not touch.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	proxy, err := grpcproxy.Start(t.Context(), s.stack.Temporal, grpcproxy.Options{Refuse: grpcproxy.ReadOnly})
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	readOnly := func(args ...string) (int, string, string) {
		proxy.Reset()
		return execute(t.Context(), append(args, "--address", proxy.Address, "--namespace", s.stack.Namespace)...)
	}
	refusal := fmt.Sprintf("starter: the server refuses changes in namespace %q (Request unauthorized.); nothing more was tried\n", s.stack.Namespace)
	refused := func(method string, args ...string) {
		t.Helper()
		code, _, stderr := readOnly(args...)
		require.Equal(t, 1, code, args)
		require.Equal(t, refusal, stderr, args)
		// As many as are made at once, each with its few tries, and no more.
		require.Positive(t, proxy.Calls()[method], "%v", proxy.Calls())
		require.LessOrEqual(t, proxy.Calls()[method], 2*8, "%v", proxy.Calls())
	}

	set := declaredJobs{recurring: 40, continuous: 8}
	file := set.file(t)
	code, stdout, stderr := readOnly("plan", "-f", file)
	require.Equal(t, 2, code, stderr)
	require.Contains(t, stdout, "48 to create, ")
	refused("CreateSchedule", "apply", "-f", file, "--yes")
	refused("StartWorkflowExecution", "apply", "-f", declaredJobs{oneShot: 50}.file(t), "--yes")
	refused("ExecuteMultiOperation", "apply", "-f", declaredJobs{queued: 50}.file(t), "--yes")
	saved := filepath.Join(t.TempDir(), "plan")
	code, _, stderr = readOnly("plan", "-f", file, "--out", saved)
	require.Equal(t, 2, code, stderr)
	refused("CreateSchedule", "apply", saved)
	require.Empty(t, s.schedules())

	s.must(0, "apply", "-f", file, "--yes")
	code, stdout, stderr = readOnly("plan", "-f", file)
	require.Zero(t, code, "%s\n%s", stderr, stdout)
	require.Contains(t, stdout, "48 unchanged")
	code, _, stderr = readOnly("drift")
	require.Zero(t, code, stderr)
	set.revision = 1
	refused("UpdateSchedule", "apply", "-f", set.file(t), "--yes")
	refused("UpdateWorkflowExecution", "apply", "-f", declaredJobs{continuous: 20, revision: 1}.file(t), "--yes")
	stacktest.WaitFor(t, "the schedules to be listed", func() (bool, error) { return len(s.schedules()) == 40, nil })
	code, _, stderr = readOnly("apply", "-f", declaredJobs{recurring: 40}.file(t), "--yes", "--prune")
	require.Equal(t, 1, code)
	require.Equal(t, refusal, stderr)
	s.must(0, "plan", "-f", file, "--prune")
}

// TestWrongServer has a namespace that is not there, and a server without TLS.
func TestWrongServer(t *testing.T) {
	st := stacktest.Start(t)
	file := declaredJobs{recurring: 1}.file(t)
	for _, command := range [][]string{{"plan", "-f", file}, {"apply", "-f", file, "--yes"}, {"drift"}} {
		args := append(command, "--address", st.Temporal)
		code, _, stderr := execute(t.Context(), append(args, "--namespace", "elsewhere")...)
		require.Equal(t, 1, code)
		require.Equal(t, "starter: temporal at "+st.Temporal+" has no namespace \"elsewhere\"\n", stderr)
	}
	t.Setenv("TEMPORAL_TLS", "true")
	code, _, stderr := execute(t.Context(), "plan", "-f", file, "--address", st.Temporal)
	require.Equal(t, 1, code)
	require.Equal(t, "starter: temporal at "+st.Temporal+" cannot be reached; is it running there? (it does not speak TLS)\n", stderr)
}

// TestPartsOfTheServerAreAway has a server that answers, and does not get what it needs.
func TestPartsOfTheServerAreAway(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	const refused = "GetNamespace operation failed. Error: dial tcp 127.0.0.1:5432: connect: connection refused"
	for want, err := range map[string]error{
		"the database of temporal at ADDRESS does not answer it (" + refused + ")": serviceerror.NewUnavailable(refused),
		"the database of temporal at ADDRESS is overloaded (Persistence Max QPS Reached.)": serviceerror.NewResourceExhausted(
			enumspb.RESOURCE_EXHAUSTED_CAUSE_PERSISTENCE_LIMIT, "Persistence Max QPS Reached."),
		"temporal at ADDRESS does not answer this call, though it answered others: it, one of its hosts, or its database is away " +
			"(shard status unknown)": serviceerror.NewUnavailable("shard status unknown"),
	} {
		proxy, failed := grpcproxy.Start(t.Context(), st.Temporal, grpcproxy.Options{Refuse: func(method string) error {
			if method != "DescribeNamespace" {
				return nil
			}
			return serviceerror.ToStatus(err).Err()
		}})
		require.NoError(t, failed)
		t.Cleanup(proxy.Close)
		code, _, stderr := execute(t.Context(), "drift", "--address", proxy.Address)
		require.Equal(t, 1, code)
		require.Equal(t, "starter: "+strings.ReplaceAll(want, "ADDRESS", proxy.Address)+"\n", stderr)
	}
}

// TestPruneGuards has prunes that would remove more than people mean.
func TestPruneGuards(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	set := declaredJobs{recurring: 20, continuous: 5}
	s.must(0, "apply", "-f", set.file(t), "--yes")
	stacktest.WaitFor(t, "the jobs to be listed", func() (bool, error) { return len(s.schedules()) == 20, nil })
	s.counts("WorkflowType = 'ContinuousJob'", 5)

	empty := declaredJobs{}.file(t)
	for _, command := range [][]string{{"plan"}, {"apply", "--yes"}} {
		out := s.must(1, append(command, "-f", empty, "--prune")...)
		require.Contains(t, out, empty+" declares no job, and --prune would delete all there are")
	}
	require.Contains(t, s.must(1, "apply", "-f", empty, "--yes", "--prune", "--allow-empty"), "25 of 25 jobs")
	fewer := declaredJobs{recurring: 15, continuous: 4}
	require.Contains(t, s.must(1, "apply", "-f", fewer.file(t), "--yes", "--prune"), "6 of 25 jobs")
	require.Len(t, s.schedules(), 20)
	s.must(0, "plan", "-f", set.file(t), "--prune")

	fewer.recurring = 16
	s.must(0, "apply", "-f", fewer.file(t), "--yes", "--prune") // Five of 25.
	s.must(0, "plan", "-f", fewer.file(t), "--prune")
	s.must(0, "apply", "-f", empty, "--yes", "--prune", "--allow-empty", "--allow-mass-prune")
	s.must(0, "plan", "-f", empty, "--prune", "--allow-empty")
	s.must(0, "drift")
}
