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
	require.Equal(t, client.RunTimedOut, readmodel.LatestOf(runs[:10]...), "those that did nothing do not count")
	require.Equal(t, all, readmodel.Outcomes(runs...))

	runs = nil
	for n := range 250 {
		runs = append(runs, aRun(fmt.Sprint(n), time.Duration(n)*time.Second, client.RunCompleted))
	}
	runs = append(runs, aRun("old", -time.Hour, client.RunFailed))
	require.Equal(t, strings.Repeat("C", 100), readmodel.Outcomes(runs...), "the latest hundred are kept")
}

// TestStartsOfRunsThatWereDroppedAreNotMissed has more runs than are kept, of which the oldest that
// is kept makes up for a start of long before.
func TestStartsOfRunsThatWereDroppedAreNotMissed(t *testing.T) {
	t.Parallel()
	zero := job.Duration(0)
	j := job.Job{ID: "count_things.a", Type: "CountThings", Trigger: job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Minute), Offset: &zero}}}
	begin := now.Truncate(time.Minute)
	var runs []client.Run
	for n := range 180 {
		if n != 170 { // It was missed.
			run := aRun(fmt.Sprint(n), 0, client.RunCompleted)
			run.Scheduled = begin.Add(time.Duration(n) * time.Minute)
			run.Started = run.Scheduled.Add(time.Millisecond)
			runs = append(runs, run)
		}
	}
	backfill := aRun("backfill", 0, client.RunCompleted)
	backfill.Scheduled, backfill.Started = begin.Add(5*time.Minute), begin.Add(79*time.Minute+30*time.Second)
	missed, err := readmodel.CountMissed(j, begin.Add(-time.Hour), append(runs, backfill), begin.Add(179*time.Minute+30*time.Second))
	require.NoError(t, err)
	require.Equal(t, 1, missed)
}

// TestDurationsBesideTheMedian: the median is 5, a quarter of it and less 1, four times and more 9.
func TestDurationsBesideTheMedian(t *testing.T) {
	t.Parallel()
	var runs []client.Run
	for n, took := range []time.Duration{1, 25, 50, 100, 100, 100, 141, 200, 400, 9000} {
		run := aRun(fmt.Sprint(n), time.Duration(n)*time.Second, client.RunCompleted)
		run.Took = job.Duration(took * time.Millisecond)
		runs = append(runs, run)
	}
	require.Equal(t, "1135556799", readmodel.Durations(runs...))
	failed := aRun("failed", time.Minute, client.RunFailed)
	failed.Took = job.Duration(200 * time.Millisecond)
	require.Equal(t, "11355567997000", readmodel.Durations(append(runs, failed,
		aRun("held", 2*time.Minute, client.RunHeldBack), aRun("gave way", 3*time.Minute, client.RunSuperseded), aRun("running", 4*time.Minute, client.RunRunning))...))
	require.Equal(t, "0", readmodel.Durations(failed), "nobody knows what is usual")
}
