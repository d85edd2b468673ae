package cli_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// TestManyRuns ends more runs than a page of a list has: one command is broken off, and another
// ends all that are left. The runs wait for their time, so that no worker is needed.
func TestManyRuns(t *testing.T) {
	t.Parallel()
	const many = 1200
	st := stacktest.StartNamespace(t)
	c := console{address: st.Temporal, namespace: st.Namespace}
	runs := client.New(st.Dial(t), st.Namespace).Runs
	require.NoError(t, temporalclient.Each(many, 32, func(n int) error {
		_, err := runs.StartAt(t.Context(), job.Job{
			ID: fmt.Sprintf("take_steps.many-%d", n), Type: "TakeSteps", Trigger: job.Trigger{OneShot: &job.OneShot{}}, Worker: testWorker,
			Spec: []byte(`{"steps": 1}`), Options: job.DefaultOptions(job.ModeOneShot), Provider: job.ProviderAPI,
		}, contract.StartedByHand, client.StartOptions{At: time.Now().Add(time.Hour)})
		return err
	}))
	count := func(status string) int {
		return len(answered[jobsv1.ListRunsResponse](t, c, "runs", "list", "--status", status, "--limit", "0").GetRuns())
	}
	stacktest.WaitFor(t, "the runs in the list", func() (bool, error) { return count("waiting") == many, nil })
	require.Len(t, decoded[[]cli.BulkOutcome](t, c, "runs", "cancel", "--type", "TakeSteps", "--dry-run"), many)

	// Breaking off leaves what was not begun as it was.
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	stdout, stderr := &stacktest.Output{}, &stacktest.Output{}
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Program{
			Getenv: func(string) string { return "" }, IsTerminal: func(any) bool { return true }, Patience: time.Hour,
			Stderr: stderr, Stdin: strings.NewReader("y\n"), Stdout: stdout, Types: testTypes(),
		}.Execute(ctx, []string{"runs", "terminate", "--type", "TakeSteps", "--address", st.Temporal, "--namespace", st.Namespace})
	}()
	stacktest.WaitFor(t, "some progress", func() (bool, error) { return strings.Contains(stderr.String(), fmt.Sprintf(" of %d runs", many)), nil })
	interrupt()
	require.Equal(t, 1, <-ended)
	require.Contains(t, stderr.String(), fmt.Sprintf("Terminate %d runs? A terminated run does not save its position", many))
	report := regexp.MustCompile(fmt.Sprintf(`starter: interrupted: of %d runs (\d+) were done, 0 failed, (\d+) were not begun\n$`, many)).FindStringSubmatch(stderr.String())
	require.NotNil(t, report, stderr.String())
	done, err := strconv.Atoi(report[1])
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(many-done), report[2])
	t.Logf("%d of %d runs were terminated before the command was broken off", done, many)
	require.Equal(t, done, strings.Count(stdout.String(), ": terminated\n"))
	stacktest.WaitFor(t, "the terminated runs in the list", func() (bool, error) { return count("terminated") == done, nil })
	stacktest.WaitFor(t, "the other runs in the list", func() (bool, error) { return count("waiting") == many-done, nil })

	outcomes := decoded[[]cli.BulkOutcome](t, c, "runs", "terminate", "--type", "TakeSteps", "--yes")
	require.Len(t, outcomes, many-done)
	require.Greater(t, len(outcomes), 1000, "more than a page")
	for _, one := range outcomes {
		require.Equal(t, "terminated", one.Result, one.Name)
	}
	stacktest.WaitFor(t, "the end of all", func() (bool, error) { return count("terminated") == many, nil })
}
