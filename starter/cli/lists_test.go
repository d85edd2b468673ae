package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// lists looks at what lists leave out, and at their pages and times.
func lists(t *testing.T, c console) {
	all := func(args ...string) *jobsv1.ListJobsResponse {
		return answered[jobsv1.ListJobsResponse](t, c, append([]string{"jobs", "list"}, args...)...)
	}
	status := map[string]jobsv1.JobStatus{}
	stacktest.WaitFor(t, "jobs that have ended", func() (bool, error) {
		for _, j := range all("--all").GetJobs() {
			status[j.GetId()] = j.GetState().GetStatus()
		}
		return status["take_steps.adhoc"] == jobsv1.JobStatus_JOB_STATUS_COMPLETED &&
			status["take_steps.fails"] == jobsv1.JobStatus_JOB_STATUS_FAILED && status["take_steps.stopped"] == jobsv1.JobStatus_JOB_STATUS_STOPPED, nil
	})

	// One-shots that have ended are left out and counted, unless they failed.
	r := c.run(t.Context(), "jobs", "list")
	require.Zero(t, r.code, r.stderr)
	require.NotContains(t, r.stdout, "take_steps.adhoc")
	require.NotContains(t, r.stdout, "take_steps.stopped")
	require.Regexp(t, `take_steps\.fails +one-shot +failed .* Told: told to fail\n`, r.stdout)
	require.Regexp(t, `^\d+ jobs that have ended are left out: --all lists them\.\n$`, r.stderr)
	listed := all()
	require.Len(t, all("--all").GetJobs(), len(listed.GetJobs())+int(listed.GetEndedLeftOut()))
	require.Contains(t, c.ok(t, "jobs", "list", "--status", "completed"), "take_steps.adhoc ")
	require.Contains(t, c.ok(t, "jobs", "describe", "take_steps.fails"), "\nStatus       failed: Told: told to fail\n")

	// Pages join to the whole list.
	var ids []string
	for token := ""; ; {
		args := []string{"--all", "--limit", "2"}
		if token != "" {
			args = append(args, "--page-token", token)
		}
		page := all(args...)
		require.LessOrEqual(t, len(page.GetJobs()), 2)
		for _, j := range page.GetJobs() {
			ids = append(ids, j.GetId())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	require.Len(t, ids, len(status))
	r = c.run(t.Context(), "jobs", "list", "--limit", "1")
	require.Contains(t, r.stderr, "There may be more: --limit 0 lists all. ")
	r = c.run(t.Context(), "jobs", "list", "--page-token", "nonsense")
	require.Equal(t, 1, r.code)
	var runs []string
	for token := ""; ; {
		args := []string{"runs", "list", "--job", "take_steps.adhoc", "--limit", "1"}
		if token != "" {
			args = append(args, "--page-token", token)
		}
		page := answered[jobsv1.ListRunsResponse](t, c, args...)
		for _, run := range page.GetRuns() {
			runs = append(runs, run.GetName())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	require.Len(t, runs, len(answered[jobsv1.ListRunsResponse](t, c, "runs", "list", "--job", "take_steps.adhoc", "--limit", "0").GetRuns()))

	// Times.
	ago := time.Now().Add(-24 * time.Hour).UTC().Format(time.RFC3339)
	require.Empty(t, all("--all", "--until", ago).GetJobs())
	require.Contains(t, c.ok(t, "jobs", "list", "--all", "--since", ago), "take_steps.adhoc ")
	require.Empty(t, answered[jobsv1.ListRunsResponse](t, c, "runs", "list", "--until", ago).GetRuns())

	// A narrow screen.
	narrow := console{address: c.address, env: map[string]string{"COLUMNS": "80"}}.run(t.Context(), "runs", "list", "--job", "take_steps.adhoc")
	require.Zero(t, narrow.code, narrow.stderr)
	for line := range strings.Lines(narrow.stdout) {
		require.LessOrEqual(t, len([]rune(line)), 81)
	}
	require.Contains(t, narrow.stderr, "--wide shows all columns.")
	wide := console{address: c.address, env: map[string]string{"COLUMNS": "80"}}.run(t.Context(), "runs", "list", "--job", "take_steps.adhoc", "--wide")
	require.Contains(t, wide.stdout, "RUN ID")
}
