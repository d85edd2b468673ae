package readmodel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

func aRun(id string, at time.Duration, status client.RunStatus) client.Run {
	return client.Run{
		RunRef: client.RunRef{RunID: id}, Status: status, Started: now.Add(at), Scheduled: now.Add(at), Took: job.Duration(time.Second),
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	require.Empty(t, readmodel.Outcomes())
	require.Equal(t, "CFR", readmodel.Outcomes(
		aRun("3", 3*time.Second, client.RunRunning), aRun("1", time.Second, client.RunCompleted), aRun("2", 2*time.Second, client.RunFailed),
	), "runs are in the order of their starts")
	require.Equal(t, "C", readmodel.Outcomes(
		aRun("1", 0, client.RunRunning), aRun("1", 0, client.RunCompleted), aRun("1", 0, client.RunRunning),
	), "a run that has ended does not run again")
	all := ""
	var runs []client.Run
	for n, status := range client.RunStatuses() {
		runs = append(runs, aRun(fmt.Sprint(n), time.Duration(n)*time.Second, status))
		all += readmodel.Outcomes(aRun("x", 0, status))
	}
	require.Equal(t, "RWRCFXKTHPI", all)
	require.Equal(t, all, readmodel.Outcomes(runs...))

	runs = nil
	for n := range 250 {
		runs = append(runs, aRun(fmt.Sprint(n), time.Duration(n)*time.Second, client.RunCompleted))
	}
	runs = append(runs, aRun("old", -time.Hour, client.RunFailed))
	require.Equal(t, strings.Repeat("C", 100), readmodel.Outcomes(runs...), "the latest hundred are kept")
}

func TestMissedStarts(t *testing.T) {
	t.Parallel()
	offset := job.Duration(0)
	hourly := job.Job{ID: "a.b", Trigger: job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour), Offset: &offset}}}
	at := func(hours ...int) []time.Time {
		var times []time.Time
		for _, h := range hours {
			times = append(times, now.Add(time.Duration(h)*time.Hour))
		}
		return times
	}
	ran := func(hours ...int) []client.Run {
		var runs []client.Run
		for _, h := range hours {
			runs = append(runs, aRun(fmt.Sprint(h), time.Duration(h)*time.Hour, client.RunCompleted))
		}
		return runs
	}
	missed := func(paused bool, until time.Duration, runs []client.Run) []time.Time {
		return readmodel.Missed(hourly, paused, now, now.Add(until), runs...)
	}
	require.Empty(t, missed(false, time.Hour, nil), "of a job that has not run nothing is known")
	require.Empty(t, missed(false, 3*time.Hour+30*time.Second, ran(0, 1, 2)), "a run that is a little late may come yet")
	require.Equal(t, at(3), missed(false, 3*time.Hour+2*time.Minute, ran(0, 1, 2)))
	require.Equal(t, at(1, 4), missed(false, 4*time.Hour+2*time.Minute, ran(0, 2, 3)))
	require.Equal(t, at(1), missed(true, 4*time.Hour+2*time.Minute, ran(0, 2, 3)), "nobody waits for the starts of a paused job")
	require.Equal(t, at(4), readmodel.Missed(hourly, false, at(3)[0], now.Add(5*time.Hour-time.Minute), ran(0)...),
		"before it was known to be on, it may have been paused")
	long := aRun("long", 0, client.RunRunning)
	require.Empty(t, missed(false, 5*time.Hour, []client.Run{long}), "it is under way still")
}
