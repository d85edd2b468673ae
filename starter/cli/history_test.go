package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// TestCommandsOfManyJobs works with many jobs and runs at once, and looks at what they left.
func TestCommandsOfManyJobs(t *testing.T) {
	t.Parallel()
	c, _ := served(t)
	gate := workertest.NewGate(t)
	var text strings.Builder
	const n = 3
	for k := range n {
		fmt.Fprintf(&text, `
[jobs.take_steps.bulk-%d]
spec = { steps = 2, gate = %q }
recurring = { recur_every = "P1D" }
tags = { batch = "bulk", part = "%d" }
owner = "organization:bulk"
`, k, gate, k%2)
	}
	c.ok(t, "apply", "-f", writeFile(t, "bulk.toml", text.String()), "--yes")
	tag := []string{"--tag", "batch=bulk"}
	with := func(command string, args ...string) []string {
		return append(append(strings.Fields(command), tag...), args...)
	}
	stacktest.WaitFor(t, "the jobs in the list", func() (bool, error) {
		return len(answered[jobsv1.ListJobsResponse](t, c, with("jobs list")...).GetJobs()) == n, nil
	})
	require.Len(t, answered[jobsv1.ListJobsResponse](t, c, with("jobs list", "--tag", "part=0")...).GetJobs(), 2)
	require.Len(t, answered[jobsv1.ListJobsResponse](t, c, "jobs", "list", "--type", "take_steps", "--owner", "organization:bulk").GetJobs(), n)

	require.Equal(t, "take_steps.bulk-0\ntake_steps.bulk-1\ntake_steps.bulk-2\n", c.ok(t, with("jobs pause", "--dry-run")...))
	require.Len(t, decoded[[]cli.BulkOutcome](t, c, with("jobs stop", "--dry-run")...), 0, "none runs")
	r := c.run(t.Context(), with("jobs pause")...)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "  take_steps.bulk-0\n  take_steps.bulk-1\n  take_steps.bulk-2\n")
	require.Contains(t, r.stderr, "there is no terminal to ask on: add --yes to pause 3 jobs")
	r = console{address: c.address, terminal: true, stdin: "n\n"}.run(t.Context(), with("jobs pause")...)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "Pause 3 jobs? [y/N] ")
	require.Contains(t, r.stderr, "nothing was done")
	r = console{address: c.address, terminal: true, stdin: "y\n"}.run(t.Context(), with("jobs pause")...)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, "take_steps.bulk-0: paused\ntake_steps.bulk-1: paused\ntake_steps.bulk-2: paused\n", r.stdout)
	stacktest.WaitFor(t, "the pauses in the list", func() (bool, error) {
		return len(answered[jobsv1.ListJobsResponse](t, c, with("jobs list", "--status", "paused")...).GetJobs()) == n, nil
	})
	r = c.run(t.Context(), with("jobs pause", "--yes")...)
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stderr, "3 jobs that match are left out: there is nothing to pause.\nNo job found.\n")
	c.ok(t, with("jobs resume", "--yes")...)
	r = c.run(t.Context(), "jobs", "pause", "take_steps.bulk-0", "take_steps.none")
	require.Equal(t, 1, r.code)
	require.Equal(t, "take_steps.bulk-0: paused\n", r.stdout)
	require.Equal(t, "starter: take_steps.none: there is no job take_steps.none; starter jobs list shows those there are\n"+
		"starter: 1 of 2 jobs failed\n", r.stderr)
	c.ok(t, "jobs", "resume", "take_steps.bulk-0")

	triggered := decoded[[]cli.BulkOutcome](t, c, with("jobs trigger", "--yes")...)
	require.Len(t, triggered, n)
	require.Regexp(t, `^started, run \S+ of job/take_steps\.bulk-0-`, triggered[0].Result)
	running := with("runs list", "--status", "running")
	stacktest.WaitFor(t, "the progress of the runs in the list", func() (bool, error) {
		return strings.Count(c.ok(t, running...), "1/2 on the way") == n, nil
	})
	canceled := decoded[[]cli.BulkOutcome](t, c, with("runs cancel", "--yes", "--tag", "part=0")...)
	require.Len(t, canceled, 2)
	require.Equal(t, "stop requested", canceled[0].Result)
	r = console{address: c.address, terminal: true, stdin: "n\n"}.run(t.Context(), "runs", "terminate", "take_steps.bulk-1")
	require.Equal(t, 1, r.code, "it asks even for one")
	require.Contains(t, r.stderr, "its progress since its last checkpoint is lost")
	c.ok(t, "runs", "terminate", "take_steps.bulk-1", "--yes", "--reason", "by test")
	stacktest.WaitFor(t, "the ends in the list", func() (bool, error) {
		listed := func(status string) int {
			return len(answered[jobsv1.ListRunsResponse](t, c, with("runs list", "--status", status)...).GetRuns())
		}
		return listed("canceled") == 2 && listed("terminated") == 1 && listed("running")+listed("canceling") == 0, nil
	})
	require.Regexp(t, `\nError     terminated by \S+: by test\n`, c.ok(t, "runs", "describe", "take_steps.bulk-1"))

	workertest.Open(t, gate)
	require.Equal(t, "No run found.\n", c.run(t.Context(), with("runs retry", "--yes")...).stderr, "people have ended them")
	var retried []cli.BulkOutcome
	for _, status := range []string{"canceled", "terminated"} {
		retried = append(retried, decoded[[]cli.BulkOutcome](t, c, with("runs retry", "--yes", "--since", "PT10M", "--status", status)...)...)
	}
	require.Len(t, retried, n)
	for _, outcome := range retried {
		require.Regexp(t, `^started again, run \S+ of job/take_steps\.bulk-`, outcome.Result)
	}
	var completed []*jobsv1.Run
	stacktest.WaitFor(t, "the retried runs in the list", func() (bool, error) {
		completed = answered[jobsv1.ListRunsResponse](t, c, with("runs list", "--status", "completed")...).GetRuns()
		return len(completed) == n, nil
	})
	require.NotEmpty(t, completed[0].GetRetryOf())
	require.EqualValues(t, 1, completed[0].GetAttempts())
	require.Equal(t, map[string]int64{"steps": 2}, completed[0].GetCounts())
	stacktest.WaitFor(t, "nothing to retry", func() (bool, error) {
		outcomes := decoded[[]cli.BulkOutcome](t, c, with("runs retry", "--yes", "--status", "canceled")...)
		for _, outcome := range outcomes {
			if !strings.HasPrefix(outcome.Result, "unchanged; ") {
				return false, fmt.Errorf("%+v", outcome)
			}
		}
		return true, nil
	})
	workflowID, runID, _ := strings.Cut(completed[0].GetName(), "@")
	r = c.run(t.Context(), "runs", "retry", workflowID, runID)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "starter: "+workflowID+" "+runID+": it is completed\n")

	for want, args := range map[string][]string{
		"No run found.\n": {"runs", "cancel", "--owner", "user:nobody", "--yes"},
		"No job found.\n": {"jobs", "list", "--owner", "user:nobody"},
	} {
		r := c.run(t.Context(), args...)
		require.Zero(t, r.code)
		require.Equal(t, want, r.stderr)
	}
	r = c.run(t.Context(), "runs", "list", "--job", "take_steps.none")
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: there is no job take_steps.none; starter jobs list shows those there are\n", r.stderr)
	r = c.run(t.Context(), "runs", "cancel", "take_steps.bulk-0", "take_steps.bulk-1", "--yes")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, " it has ended already: it is completed\nstarter: 2 of 2 runs failed\n")
	r = c.run(t.Context(), "runs", "list", "--type", "TakeStep")
	require.Equal(t, 2, r.code)
	require.Equal(t, "starter: unknown job type \"TakeStep\"; did you mean \"TakeSteps\"?\n", r.stderr)

	account := c.ok(t, "runs", "list", "--missed", "--job", "take_steps.bulk-0")
	require.Regexp(t, `^JOB  DUE  REASON  DETAIL\n\ntake_steps\.bulk-0: 0 starts since .*, 0 runs, 0 missed\.\n`, account)
	require.Len(t, answered[jobsv1.ListMissedStartsResponse](t, c, "runs", "list", "--missed", "--type", "take_steps", "--tag", "batch").GetCounts(), n)

}

// later starts a one-shot for a time ahead, twice, and takes it back.
func later(t *testing.T, c console) {
	at := time.Now().Add(time.Hour).UTC().Format(time.RFC3339) // The same time again is the same start.
	start := []string{"run", "--type", "TakeSteps", "--key", "later", "--spec", `{"steps": 1}`, "--at", at}
	out := c.ok(t, start...)
	require.Regexp(t, `^Job take_steps\.later: begins at \S+ \S+ UTC, run \S+ of job/take_steps\.later\.\n$`, out)
	r := c.run(t.Context(), "run", "take_steps.later", "--in", "PT2H")
	require.Equal(t, 1, r.code)
	require.Regexp(t, `^starter: job take_steps\.later waits until \S+ \S+ UTC already; cancel that run first\n$`, r.stderr)
	other := slices.Clone(start)
	other[len(other)-2], other[len(other)-1] = "--in", "PT3H"
	r = c.run(t.Context(), other...)
	require.Equal(t, 1, r.code)
	require.Regexp(t, `^starter: job take_steps\.later waits until \S+ \S+ UTC already; cancel that run first\n$`, r.stderr)
	require.Regexp(t, `\(in (1 h|\d+ min)\); no other is started\.\n`, c.run(t.Context(), start...).stderr)
	waiting := answered[jobsv1.Run](t, c, "runs", "describe", "take_steps.later")
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_WAITING, waiting.GetStatus())
	require.True(t, waiting.GetUpdateTime().AsTime().Before(time.Now()), "it was asked for in the past: %s", waiting.GetUpdateTime())
	stacktest.WaitFor(t, "the run in the list", func() (bool, error) {
		return strings.Contains(c.ok(t, "runs", "list", "--status", "waiting"), "  waits until "), nil
	})
	require.Contains(t, c.ok(t, "runs", "describe", "take_steps.later"), "\nWaits until  ")
	require.Contains(t, c.run(t.Context(), "runs", "cancel", "take_steps.later").stderr, "there is no terminal to ask on: add --yes to cancel 1 run\n")
	require.Contains(t, c.ok(t, "runs", "cancel", "take_steps.later", "--yes"), ": stop requested\n")
	r = c.run(t.Context(), "run", "take_steps.always", "--in", "PT1H")
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: job take_steps.always is continuous: only a one-shot can be started for later\n", r.stderr)
}
