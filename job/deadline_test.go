package job_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	if text == "" {
		return time.Time{}
	}
	parsed, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return parsed
}

func TestLatestDeadlineWhereClocksChange(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, time, zone, now, latest, before string
	}{
		{"winter", "06:00", "Europe/Prague", "2026-01-10T05:00:00Z", "2026-01-10T05:00:00Z", "2026-01-09T05:00:00Z"},
		{"a moment before", "06:00", "Europe/Prague", "2026-01-10T04:59:59Z", "2026-01-09T05:00:00Z", "2026-01-08T05:00:00Z"},
		{"the day on which clocks go forward", "06:00", "Europe/Prague", "2026-03-29T04:00:00Z", "2026-03-29T04:00:00Z", "2026-03-28T05:00:00Z"},
		{"the day on which clocks go back", "06:00", "Europe/Prague", "2026-10-25T05:00:00Z", "2026-10-25T05:00:00Z", "2026-10-24T04:00:00Z"},
		{"a time that is skipped", "02:30", "Europe/Prague", "2026-03-29T12:00:00Z", "2026-03-29T01:30:00Z", "2026-03-28T01:30:00Z"},
		{"a time that is shown twice: before the second", "02:30", "Europe/Prague", "2026-10-25T01:29:59Z", "2026-10-24T00:30:00Z", "2026-10-23T00:30:00Z"},
		{"a time that is shown twice: the second", "02:30", "Europe/Prague", "2026-10-25T01:30:00Z", "2026-10-25T01:30:00Z", "2026-10-24T00:30:00Z"},
		{"forward in Los Angeles", "02:30", "America/Los_Angeles", "2026-03-08T20:00:00Z", "2026-03-08T10:30:00Z", "2026-03-07T10:30:00Z"},
		{"back in Los Angeles", "01:30", "America/Los_Angeles", "2026-11-01T20:00:00Z", "2026-11-01T09:30:00Z", "2026-10-31T08:30:00Z"},
		{"midnight that is skipped", "00:00", "America/Santiago", "2026-09-06T12:00:00Z", "2026-09-06T04:00:00Z", "2026-09-05T04:00:00Z"},
		{"half an hour", "02:15", "Australia/Lord_Howe", "2026-10-04T12:00:00Z", "2026-10-03T15:45:00Z", "2026-10-02T15:45:00Z"},
		{"no zone", "23:30", "", "2026-05-01T00:00:00Z", "2026-04-30T23:30:00Z", "2026-04-29T23:30:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			latest, before, err := job.Deadline{Time: test.time, TimeZone: test.zone}.Latest(at(t, test.now))
			require.NoError(t, err)
			require.Equal(t, test.latest, latest.UTC().Format(time.RFC3339))
			require.Equal(t, test.before, before.UTC().Format(time.RFC3339))
		})
	}
}

// Whatever the zone and the hour, there is a deadline on each day, in order.
func TestDeadlinesAreDaily(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Europe/Prague", "America/Los_Angeles", "America/Santiago", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"} {
		for _, clock := range []string{"00:00", "01:30", "02:15", "02:30", "23:59"} {
			d := job.Deadline{Time: clock, TimeZone: zone}
			now := at(t, "2027-01-01T23:59:59Z")
			for range 365 {
				latest, before, err := d.Latest(now)
				require.NoError(t, err)
				require.False(t, latest.After(now))
				gap := latest.Sub(before)
				require.True(t, gap >= 22*time.Hour && gap <= 26*time.Hour, "%s before %s", before, latest)
				again, _, err := d.Latest(latest.Add(-time.Nanosecond))
				require.NoError(t, err)
				require.True(t, again.Equal(before), "%s is not %s", again, before)
				now = latest.Add(-time.Nanosecond)
			}
		}
	}
}

func TestMissedDeadline(t *testing.T) {
	t.Parallel()
	d := job.Deadline{Time: "06:00", TimeZone: "Europe/Prague"}
	for _, test := range []struct {
		name, success, known, now string
		missed                    bool
	}{
		{"a success in the night", "2026-01-10T03:00:00Z", "", "2026-01-10T05:30:00Z", false},
		{"none since yesterday", "2026-01-09T03:00:00Z", "", "2026-01-10T05:30:00Z", true},
		{"none since yesterday, but it is not time", "2026-01-09T03:00:00Z", "", "2026-01-10T04:59:00Z", false},
		{"a late success ends it", "2026-01-10T05:10:00Z", "", "2026-01-10T05:30:00Z", false},
		{"a job that is new", "", "2026-01-10T04:00:00Z", "2026-01-10T05:30:00Z", false},
		{"a job that has never had a success", "", "2026-01-09T04:00:00Z", "2026-01-10T05:30:00Z", true},
		{"of which nothing is known", "", "", "2026-01-10T05:30:00Z", false},
		{"23 hours on the day on which clocks go forward", "2026-03-28T05:00:01Z", "", "2026-03-29T04:00:00Z", false},
		{"a success at the deadline before is of that", "2026-03-28T05:00:00Z", "", "2026-03-29T04:00:00Z", true},
		{"25 hours on the day on which clocks go back", "2026-10-24T04:00:01Z", "", "2026-10-25T05:00:00Z", false},
		{"none in 25 hours", "2026-10-24T03:59:59Z", "", "2026-10-25T05:00:00Z", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, missed := d.Missed(at(t, test.success), at(t, test.known), at(t, test.now))
			require.Equal(t, test.missed, missed)
		})
	}
}

func TestLate(t *testing.T) {
	t.Parallel()
	hour := job.Duration(time.Hour)
	for _, test := range []struct {
		name, success, known, now string
		freshness                 job.Duration
		since                     string
	}{
		{"fresh", "2026-01-10T05:00:00Z", "", "2026-01-10T06:00:00Z", hour, ""},
		{"late", "2026-01-10T05:00:00Z", "", "2026-01-10T06:00:01Z", hour, "2026-01-10T06:00:00Z"},
		{"never a success", "", "2026-01-10T04:00:00Z", "2026-01-10T06:00:01Z", hour, "2026-01-10T05:00:00Z"},
		{"new", "", "2026-01-10T05:30:00Z", "2026-01-10T06:00:01Z", hour, ""},
		{"no limit", "2025-01-10T05:30:00Z", "", "2026-01-10T06:00:01Z", 0, ""},
		{"an hour is one where clocks go back", "2026-10-25T00:30:00Z", "", "2026-10-25T01:30:01Z", hour, "2026-10-25T01:30:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			since, late := job.Late(test.freshness, at(t, test.success), at(t, test.known), at(t, test.now))
			require.Equal(t, test.since != "", late)
			if late {
				require.Equal(t, test.since, since.Format(time.RFC3339))
			}
		})
	}
}

func TestDeadlineAsText(t *testing.T) {
	t.Parallel()
	d, err := job.ParseDeadline("06:00 Europe/Prague")
	require.NoError(t, err)
	require.Equal(t, job.Deadline{Time: "06:00", TimeZone: "Europe/Prague"}, d)
	require.Equal(t, "06:00 UTC", job.Deadline{Time: "06:00"}.String())
	for _, bad := range []string{"", "6:00 UTC", "24:00 UTC", "06:60 UTC", "06:00 Mars/Base"} {
		_, err := job.ParseDeadline(bad)
		require.Error(t, err, bad)
	}
}

func TestLimitsGoWithJobsThatRepeat(t *testing.T) {
	t.Parallel()
	limited := func(trigger job.Trigger, d *job.Deadline) []job.Problem {
		j := job.Job{ID: "probe.x", Type: "Probe", Trigger: trigger, Options: job.DefaultOptions(trigger.Mode())}
		j.Options.Freshness, j.Options.Deadline = job.Duration(time.Hour), d
		return j.Validate()
	}
	continuous := job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}}
	require.Empty(t, limited(continuous, &job.Deadline{Time: "06:00", TimeZone: "Europe/Prague"}))
	require.Empty(t, limited(job.Trigger{Recurring: &job.Recurring{Cron: "0 5 * * *"}}, nil))
	require.Len(t, limited(job.Trigger{OneShot: &job.OneShot{}}, &job.Deadline{Time: "06:00"}), 2)
	require.Len(t, limited(job.Trigger{Queued: &job.Queued{Queue: "q"}}, nil), 1)
	require.Len(t, limited(continuous, &job.Deadline{Time: "6 o'clock", TimeZone: "Mars/Base"}), 2)
}
