package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/wording"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const timed = `
[jobs.take_steps.timed]
spec = { steps = 1 }
owner = "user:me"
recurring = { cron = "30 4 * * *", time_zone = "Europe/Prague" }

[jobs.take_steps.minutes]
spec = { steps = 1 }
owner = "user:me"
recurring = { recur_every = "PT1M", misfire = "all" }
paused = false

[jobs.take_steps.loop]
spec = { steps = 1 }
continuous = { interval = "PT1H" }
`

// starts works with the times of recurring jobs.
func starts(t *testing.T, c console) {
	c.ok(t, "apply", "-f", writeFile(t, "jobs.toml", timed), "--yes")

	next := answered[jobsv1.ListNextStartsResponse](t, c, "jobs", "next", "take_steps.timed", "-n", "3")
	require.Len(t, next.GetStartTimes(), 3)
	at := func(n int) string { return next.GetStartTimes()[n].AsTime().Format(time.RFC3339) }
	said := func(n int) string { return wording.Stamp(next.GetStartTimes()[n].AsTime()) }
	require.Equal(t, "Europe/Prague", next.GetTimeZone())
	out := c.ok(t, "jobs", "next", "take_steps.timed")
	require.Regexp(t, `^LOCAL TIME +UTC +WHEN +EUROPE/PRAGUE\n`, out)
	require.Contains(t, out, at(2))
	require.Contains(t, out, "04:30:00 CE")

	r := c.run(t.Context(), "jobs", "skip-next", "take_steps.timed", "--by", "ada")
	require.Equal(t, "Job take_steps.timed: the start of "+said(0)+" is skipped; the next start is "+
		said(1)+".\n", r.stdout, r.stderr)
	skipped := answered[jobsv1.SkipNextStartResponse](t, c, "jobs", "skip-next", "take_steps.timed")
	require.Equal(t, at(1), skipped.GetSkippedTime().AsTime().Format(time.RFC3339))
	require.Equal(t, at(2), skipped.GetNextStartTime().AsTime().Format(time.RFC3339))
	r = c.run(t.Context(), "jobs", "next", "take_steps.timed", "-n", "1")
	require.Contains(t, r.stderr, "The start of "+at(0)+" is skipped by ada.\n")
	require.Contains(t, r.stdout, at(2))

	var upcoming *jobsv1.ListUpcomingStartsResponse
	stacktest.WaitFor(t, "the list to have the schedule", func() (bool, error) {
		upcoming = answered[jobsv1.ListUpcomingStartsResponse](t, c, "upcoming", "--within", "PT30M", "--owner", "user:me", "--limit", "2")
		return len(upcoming.GetStarts()) > 0, nil
	})
	require.Len(t, upcoming.GetStarts(), 2)
	require.InDelta(t, 30, len(answered[jobsv1.ListUpcomingStartsResponse](t, c, "upcoming", "--within", "PT30M", "--owner", "user:me", "--limit", "0").GetStarts()), 1)
	r = c.run(t.Context(), "upcoming", "--within", "PT30M", "--owner", "user:me", "--limit", "2")
	require.Regexp(t, `\n\n\d+ starts of 1 job within PT30M; at most 1 in one second, at [0-9:]+\.\n$`, r.stdout)
	require.Regexp(t, `^\d+ more; --limit 0 lists all\.\n$`, r.stderr)
	r = c.run(t.Context(), "upcoming", "--within", "PT1M", "--type", "OnlyRecurring")
	require.Equal(t, "AT  JOB  TYPE  OWNER\n", r.stdout)
	require.Equal(t, "No start found.\n", r.stderr)

	c.ok(t, "jobs", "pause", "take_steps.minutes", "--reason", "backfilled")
	r = c.run(t.Context(), "jobs", "next", "take_steps.minutes", "-n", "1")
	require.Contains(t, r.stderr, "Job take_steps.minutes is paused (backfilled): it does not start until it is resumed.\n")

	backfill := []string{"jobs", "backfill", "take_steps.timed", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-03T12:00:00Z"}
	r = c.run(t.Context(), backfill...)
	require.Equal(t, "starter: there is no terminal to ask on: add --yes to start 3 runs\n", r.stderr)
	r = c.run(t.Context(), append(backfill, "-o", "json")...)
	require.Equal(t, "starter: backfill with -o json does not ask: add --yes to start 3 runs\n", r.stderr)
	asked := c
	asked.terminal, asked.stdin = true, "n\n"
	r = asked.run(t.Context(), backfill...)
	require.Equal(t, "Run job take_steps.timed 3 times, for its starts from 2026-03-01 03:30:00 UTC to 2026-03-03 03:30:00 UTC? [y/N] starter: nothing was started\n", r.stderr)
	require.Equal(t, "Job take_steps.timed: 3 runs requested, for its starts from 2026-03-01 03:30:00 UTC to 2026-03-03 03:30:00 UTC.\n",
		c.ok(t, append(backfill, "--yes")...))
	stacktest.WaitFor(t, "the runs", func() (bool, error) {
		runs := answered[jobsv1.ListRunsResponse](t, c, "runs", "list", "--job", "take_steps.timed", "--status", "completed").GetRuns()
		return len(runs) == 3, nil
	})
	require.Equal(t, "Job take_steps.timed has no start from 2026-03-01 00:00:00 UTC to 2026-03-01 01:00:00 UTC.\n",
		c.ok(t, "jobs", "backfill", "take_steps.timed", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-01T01:00:00Z"))

	for want, args := range map[string][]string{
		"there is no job take_steps.none; starter jobs list shows those there are":                                                            {"next", "take_steps.none"},
		"job take_steps.loop: continuous jobs do not support listing starts":                                                                  {"next", "take_steps.loop"},
		"job take_steps.loop is not recurring":                                                                                                {"skip-next", "take_steps.loop"},
		"job take_steps.minutes has more than 1000 starts from 2026-03-01 00:00:00 UTC to 2026-03-02 00:00:00 UTC: backfill a part at a time": {"backfill", "take_steps.minutes", "--from", "2026-03-01T00:00:00Z", "--to", "2026-03-02T00:00:00Z"},
		"end_time: it is not past": {"backfill", "take_steps.minutes", "--from", "PT1H", "--to", "2099-01-01T00:00:00Z"},
	} {
		r := c.run(t.Context(), append([]string{"jobs"}, args...)...)
		require.Equal(t, 1, r.code, args)
		require.Equal(t, "starter: "+want+"\n", r.stderr)
	}
	// What is skipped is no difference.
	stacktest.WaitFor(t, "an empty plan", func() (bool, error) {
		r := c.run(t.Context(), "plan", "-f", writeFile(t, "jobs.toml", timed))
		return r.code == 0, nil
	})
}

func TestMisuseOfStarts(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`-n 0 is not from 1 to 1000 (see starter jobs next --help)`:        {"jobs", "next", "a.b", "-n", "0"},
		`-n 1001 is not from 1 to 1000 (see starter jobs next --help)`:     {"jobs", "next", "a.b", "-n", "1001"},
		`JOB is missing (see starter jobs next --help)`:                    {"jobs", "next"},
		`JOB is missing (see starter jobs skip-next --help)`:               {"jobs", "skip-next"},
		`--within P1DT1H is longer than P1D (see starter upcoming --help)`: {"upcoming", "--within", "25h"},
		`--limit -1 is negative (see starter upcoming --help)`:             {"upcoming", "--limit", "-1"},
		`unexpected argument "a.b" (see starter upcoming --help)`:          {"upcoming", "a.b"},
		`--from is missing (see starter jobs backfill --help)`:             {"jobs", "backfill", "a.b"},
		`--from 2026-03-02T00:00:00Z is after --to 2026-03-01T00:00:00Z (see starter jobs backfill --help)`: {
			"jobs", "backfill", "a.b", "--from", "2026-03-02T00:00:00Z", "--to", "2026-03-01T00:00:00Z",
		},
		`invalid argument "noon" for "--from" flag: it is neither a time such as 2026-05-01T12:00:00Z nor a duration, counted back from now: write it as PT15M, 15m or 900 (seconds) (see starter jobs backfill --help)`: {
			"jobs", "backfill", "a.b", "--from", "noon",
		},
	} {
		r := console{}.run(t.Context(), args...)
		require.Equal(t, 2, r.code, args)
		require.Equal(t, "starter: "+want+"\n", r.stderr, args)
	}
}
