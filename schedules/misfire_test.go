package schedules_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// outage is one outage of a server, and what became of the starts around it.
type outage struct {
	*fixture
	down time.Time
}

const (
	tick      = 3 * time.Second
	mostTicks = 12
	outages   = 40 * time.Second
	// longWait is for the starts that were missed: a busy machine is slow at them.
	longWait = 3 * time.Minute
)

// TestMisfire takes the server away for some starts of jobs of every misfire policy.
func TestMisfire(t *testing.T) {
	jobs := map[string]job.Recurring{
		"skip":        {Misfire: job.MisfireSkip},
		"skip-allow":  {Misfire: job.MisfireSkip, Overlap: job.OverlapAllowAll},
		"once":        {},
		"once-allow":  {Misfire: job.MisfireOnce, Overlap: job.OverlapAllowAll},
		"once-buffer": {Misfire: job.MisfireOnce, Overlap: job.OverlapBufferAll},
		"all":         {Misfire: job.MisfireAll, MaxMissed: mostTicks},
		"all-allow":   {Misfire: job.MisfireAll, MaxMissed: mostTicks, Overlap: job.OverlapAllowAll},
	}
	var declared []job.Job
	for key, r := range jobs {
		r.RecurEvery, r.Offset = job.Duration(tick), new(job.Duration)
		declared = append(declared, declare(key, job.Trigger{Recurring: &r}))
	}
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal")
	o := &outage{fixture: newFixture(t, st)}
	o.apply(o.plan(false, declared...))
	for _, j := range declared {
		o.waitHandled(j.ID, time.Now().Add(-time.Minute), 1)
	}
	until(t, tick/2) // No start is under way.
	st.Kill()
	o.down = time.Now()
	stacktest.WaitFor(t, "the outage to end", func() (bool, error) { return time.Since(o.down) > outages, nil })
	until(t, tick/20)
	st.Restart(t)
	up := time.Now()
	for _, j := range declared {
		o.waitHandled(j.ID, up, 3)
		stacktest.WaitWithin(t, longWait, "nothing to wait in "+j.ID, func() (bool, error) {
			live, err := o.client.Jobs.LiveSchedule(t.Context(), j.ID)
			return err == nil && live.Schedule.GetInfo().GetBufferSize() == 0, err
		})
	}
	for _, j := range declared {
		key := j.ID[len("do_nothing."):]
		madeUp, first, last := o.madeUp(j.ID)
		missed := int(first.Sub(o.down.Truncate(tick)) / tick)
		t.Logf("%s: %d of %d missed starts ran", key, madeUp, missed)
		require.GreaterOrEqual(t, missed, 12, key)
		switch jobs[key].Misfire {
		case job.MisfireSkip:
			require.LessOrEqual(t, madeUp, 1, key) // One that is hardly late counts as on time.
			require.Zero(t, o.ranLate(j.ID, 1), key)
		case job.MisfireAll:
			// On a busy machine further ones are due before the first run, and while
			// the others wait for each other.
			want := min(missed, mostTicks)
			require.LessOrEqual(t, madeUp, want+slack(first)+ticks(up, first), key)
			require.GreaterOrEqual(t, madeUp, want-slack(first)-ticks(first, last), key)
			if jobs[key].GivesWay() {
				require.Zero(t, o.ranLate(j.ID, mostTicks), key)
			}
		default:
			require.InDelta(t, 1, madeUp, float64(slack(first)), key)
			if jobs[key].GivesWay() {
				require.Zero(t, o.ranLate(j.ID, 1), key)
			}
		}
	}
	o.accountFor(jobs, declared)
	o.inSync(false, declared...)
}

// accountFor compares the ledger of missed starts with what handlers did. Lists lag
// behind, so that a start of the last seconds may seem to have no run, or a run not
// to have been handled, for a while.
func (o *outage) accountFor(jobs map[string]job.Recurring, declared []job.Job) {
	o.Helper()
	until := time.Now().Add(-tick)
	for _, j := range declared {
		key := j.ID[len("do_nothing."):]
		var account *client.StartsReport
		reasons := map[client.MissedReason]int{}
		stacktest.WaitFor(o, "the account of "+key+" to be of what ran", func() (bool, error) {
			var err error
			account, err = o.client.Jobs.Missed(o.Context(), client.MissedFilter{JobID: j.ID, Since: o.down.Add(-tick), Until: until})
			if err != nil || len(account.Jobs) != 1 {
				return false, err
			}
			clear(reasons)
			for _, start := range slices.Concat(account.Missed, account.LeftOut) {
				reasons[start.Reason]++
			}
			handled, err := o.handled(j.ID)
			if err != nil {
				return false, err
			}
			ran, sum := 0, account.Jobs[0]
			for _, run := range handled {
				if !run.Scheduled.Before(sum.From) && !run.Scheduled.After(account.Until) {
					ran++
				}
			}
			if ran != sum.Runs || reasons[client.MissedUnknown] > 0 {
				return false, fmt.Errorf("%d runs were handled, and the account is %+v %v", ran, sum, reasons)
			}
			return true, nil
		})
		sum := account.Jobs[0]
		require.Equal(o, sum.Scheduled, sum.Runs+sum.Waiting+sum.LeftOut+sum.Missed, key)
		require.Len(o, account.Missed, sum.Missed, key)
		o.Logf("%s: %+v %v", key, sum, reasons)
		superseded, err := o.client.Runs.List(o.Context(), client.RunFilter{JobID: j.ID, Status: client.RunSuperseded})
		require.NoError(o, err)
		require.GreaterOrEqual(o, len(superseded), reasons[client.MissedSuperseded], key)
		switch jobs[key].Misfire {
		case job.MisfireSkip:
			require.Positive(o, reasons[client.MissedWindow]+reasons[client.MissedSuperseded], key)
		case job.MisfireAll:
		default:
			require.Positive(o, reasons[client.MissedServerLate]+reasons[client.MissedSuperseded], key)
		}
	}
}

// slack is 1 where a start was due just before the others were looked at, so that
// it may belong to either side.
func slack(first time.Time) int {
	if first.Sub(first.Truncate(tick)) < tick/4 {
		return 1
	}
	return 0
}

// ticks counts the starts that were due after one time and up to another.
func ticks(from, to time.Time) int { return int(to.Truncate(tick).Sub(from.Truncate(tick)) / tick) }

// until waits until so long after a start.
func until(t *testing.T, after time.Duration) {
	t.Helper()
	at := time.Now().Truncate(tick).Add(tick + after)
	stacktest.WaitFor(t, "a moment between two starts", func() (bool, error) { return !time.Now().Before(at), nil })
}

// handled are the runs of a job that its handler saw, by when they were due.
func (o *outage) handled(jobID string) ([]client.Run, error) {
	runs, err := o.client.Runs.List(o.Context(), client.RunFilter{JobID: jobID})
	ran := o.ledger.Runs(jobID)
	var handled []client.Run
	for _, run := range runs {
		if ran[run.RunID] {
			handled = append(handled, run)
		}
	}
	return handled, err
}

// waitHandled waits for runs that were due after a time.
func (o *outage) waitHandled(jobID string, after time.Time, count int) {
	o.Helper()
	stacktest.WaitWithin(o, longWait, "runs of "+jobID, func() (bool, error) {
		runs, err := o.handled(jobID)
		n := 0
		for _, run := range runs {
			if run.Scheduled.After(after) {
				n++
			}
		}
		return n >= count, err
	})
}

// ranLate counts the runs that handlers saw although, when they were started, so many
// later starts were due that they should have given way.
func (o *outage) ranLate(jobID string, later int) int {
	o.Helper()
	runs, err := o.handled(jobID)
	require.NoError(o, err)
	count := 0
	for _, run := range runs {
		if ticks(run.Scheduled, run.Started) >= later {
			count++
		}
	}
	return count
}

// madeUp counts the runs that made up for missed starts: those that were due
// after the outage began and before the first run after it started. It gives
// when that was, and when the last of them started.
func (o *outage) madeUp(jobID string) (count int, first, last time.Time) {
	o.Helper()
	runs, err := o.handled(jobID)
	require.NoError(o, err)
	for _, run := range runs {
		if run.Started.After(o.down) && (first.IsZero() || run.Started.Before(first)) {
			first = run.Started
		}
	}
	last = first
	for _, run := range runs {
		// A start that is on time is no missed one.
		if run.Scheduled.After(o.down) && run.Scheduled.Before(first) && first.Sub(run.Scheduled) >= tick/4 {
			count++
			if run.Started.After(last) {
				last = run.Started
			}
		}
	}
	return count, first, last
}
