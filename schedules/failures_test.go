package schedules_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/wording"
)

// vendor is what the runs of a test job talk to: it fails on demand.
type vendor struct {
	away   atomic.Bool
	hangs  atomic.Bool // until the run is stopped
	ledger workertest.Ledger
}

func (v *vendor) jobType() job.Type {
	return job.NewType("CallVendor", "testing", "Calls a vendor.", workertest.Noted(&v.ledger, func(ctx context.Context, run job.Run, _ anySpec) (job.Result, error) {
		if v.hangs.Load() {
			return job.Result{}, workertest.Wait(ctx, run, nil)
		}
		if v.away.Load() {
			return job.Result{}, job.Final("Away", "the vendor is away")
		}
		return job.Result{Message: "called"}, nil
	}))
}

func (v *vendor) set(away, hangs bool) {
	v.away.Store(away)
	v.hangs.Store(hangs)
}

// ended gives the calls that succeeded, or else that failed.
func (v *vendor) ended(ok bool) []workertest.Call {
	return slices.DeleteFunc(v.ledger.Calls(""), func(c workertest.Call) bool { return c.Ended.IsZero() || (c.Err == nil) != ok })
}

// calling is a recurring job that calls the vendor.
func calling(key string, r job.Recurring) job.Job {
	return job.Job{
		ID: job.ID("CallVendor", key), Type: "CallVendor", Worker: "testing", Provider: job.ProviderTOML,
		Trigger: job.Trigger{Recurring: &r}, Spec: []byte(`{}`), Options: job.DefaultOptions(job.ModeRecurring),
	}
}

// row is a job in the list of jobs.
func (f *fixture) row(id string) (client.JobRow, error) {
	rows, _, err := f.client.Jobs.List(f.Context(), client.JobFilter{})
	for _, row := range rows {
		if row.ID == id {
			return row, err
		}
	}
	return client.JobRow{}, err
}

// waitFailing waits until a job is listed with so many failures in a row, or more.
func (f *fixture) waitFailing(id string, failures int) contract.Failing {
	f.Helper()
	var failing contract.Failing
	stacktest.WaitFor(f, "failures of "+id, func() (bool, error) {
		row, err := f.row(id)
		if err != nil || row.Failing == nil {
			return false, err
		}
		failing = *row.Failing
		require.Equal(f, client.JobFailing, row.Status)
		require.Equal(f, row.Next, failing.NextRun)
		return failing.Failures >= failures, nil
	})
	return failing
}

// waitHealthy waits until a job is listed as not failing.
func (f *fixture) waitHealthy(id string) {
	f.Helper()
	stacktest.WaitFor(f, "the job to be listed as scheduled", func() (bool, error) {
		row, err := f.row(id)
		return row.Status == client.JobScheduled && row.Failing == nil, err
	})
}

// trigger starts a run and waits for its end.
func (f *fixture) trigger(id string) client.RunStatus {
	f.Helper()
	triggered, err := f.client.Jobs.Trigger(f.Context(), id)
	require.NoError(f, err)
	run, err := f.client.Runs.Follow(f.Context(), triggered.Run, func(*client.RunDetail) {})
	require.NoError(f, err)
	if run.Status == client.RunFailed {
		require.Equal(f, "Away: the vendor is away", run.Class+": "+run.Error)
		require.NotEmpty(f, run.Worker)
	}
	return run.Status
}

// TestAFailingJobIsHeldBackAndTriedAgain has a job fail whose worker and server are
// killed meanwhile, and looks at every start of it.
func TestAFailingJobIsHeldBackAndTriedAgain(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal")
	v := &vendor{}
	v.set(true, false)
	f := newFixture(t, st, v.jobType())
	c := f.client
	j := calling("often", job.Recurring{
		RecurEvery: job.Duration(2 * time.Second), PauseAfterFailures: 2, RetryEvery: job.Duration(2 * time.Second),
	})
	f.apply(f.plan(false, j))

	before := f.waitFailing(j.ID, 3)
	require.Equal(t, "Away: the vendor is away", before.Class+": "+before.Error)
	require.WithinDuration(t, v.ended(false)[0].Began, before.Since, 2*time.Second)
	var about client.Run
	stacktest.WaitFor(t, "a run that is held back", func() (bool, error) {
		held, err := c.Runs.List(t.Context(), client.RunFilter{JobID: j.ID, Status: client.RunHeldBack})
		if len(held) > 0 {
			about = held[0]
		}
		return len(held) > 0 && about.HeldUntil.After(about.Scheduled), err
	})
	detail, err := c.Runs.Get(t.Context(), about.RunRef)
	require.NoError(t, err)
	spans, err := c.Runs.Spans(t.Context(), detail)
	require.NoError(t, err)
	last := spans[len(spans)-1]
	require.Equal(t, client.SpanHeldBack, last.Kind)
	require.Contains(t, last.Reason, "in a row have failed")
	f.stop()
	st.Kill()
	st.Restart(t)
	workertest.Start(t, st, v.jobType())

	after := f.waitFailing(j.ID, 4)
	require.Equal(t, before.Since, after.Since, "the streak is not lost")
	described, err := c.Jobs.Get(t.Context(), j.ID)
	require.NoError(t, err)
	require.Equal(t, client.JobFailing, described.Row.Status)
	require.Equal(t, after.Since, described.Row.Failing.Since)
	for _, at := range described.Next {
		require.False(t, at.Before(described.Row.Failing.NextRun))
	}
	require.Len(t, v.ended(false), described.Row.Failing.Failures, "each failure is counted once")
	require.True(t, f.plan(false, j).Empty())

	v.set(false, false)
	stacktest.WaitFor(t, "the next run", func() (bool, error) { return len(v.ended(true)) > 0, nil })
	require.False(t, v.ended(true)[0].Began.Before(after.NextRun))
	f.waitHealthy(j.ID)
	stacktest.WaitFor(t, "the job to go on", func() (bool, error) { return len(v.ended(true)) >= 3, nil })
	f.everyStartIsToldOf(j.ID)

	live, err := c.Jobs.LiveSchedule(t.Context(), j.ID)
	require.NoError(t, err)
	require.False(t, live.Paused)
	require.Nil(t, live.Schedule.GetInfo().GetUpdateTime(), "nobody has changed the schedule, not even for a moment")
	require.Empty(t, live.PauseReason)
}

// everyStartIsToldOf compares the account of a job's starts with its runs.
func (f *fixture) everyStartIsToldOf(id string) {
	f.Helper()
	stacktest.WaitFor(f, "an account of all starts", func() (bool, error) {
		account, err := f.client.Jobs.Missed(f.Context(), client.MissedFilter{JobID: id, Since: time.Now().Add(-time.Hour)})
		if err != nil {
			return false, err
		}
		failing := 0
		for _, start := range slices.Concat(account.Missed, account.LeftOut) {
			if start.Reason == client.MissedUnknown {
				return false, nil
			}
			if start.Reason == client.MissedFailing {
				failing++
				require.Contains(f, start.Detail, "held back until ")
			}
		}
		held, err := f.client.Runs.List(f.Context(), client.RunFilter{JobID: id, Status: client.RunHeldBack})
		sum := account.Jobs[0]
		return failing == len(held) && failing > 0 && sum.Scheduled == sum.Runs+sum.Missed+sum.LeftOut+sum.Waiting, err
	})
}

// The runs of a job that is far from due are those that the test triggers: none of
// them is held back.
func TestWhatCountsAsAFailureInARow(t *testing.T) {
	t.Parallel()
	v := &vendor{}
	v.set(true, false)
	f := newFixture(t, stacktest.StartNamespace(t), v.jobType())
	j := calling("daily", job.Recurring{RecurEvery: job.Duration(24 * time.Hour), PauseAfterFailures: 2})
	f.apply(f.plan(false, j))
	require.Equal(t, client.RunFailed, f.trigger(j.ID))
	require.Equal(t, client.RunFailed, f.trigger(j.ID))
	failing := f.waitFailing(j.ID, 2)
	require.Equal(t, 2, failing.Failures)
	backfill := func() error {
		starts, err := f.client.Jobs.BackfillStarts(t.Context(), j.ID, time.Now().Add(-48*time.Hour), time.Now())
		require.True(t, err != nil || len(starts) == 2)
		return err
	}
	require.EqualError(t, backfill(), "job call_vendor.daily is failing: starts before "+wording.Stamp(failing.NextRun)+
		" are held back, so that a backfill would do nothing; trigger it, and backfill once a run has completed")
	v.set(false, false)
	require.Equal(t, client.RunCompleted, f.trigger(j.ID))
	f.waitHealthy(j.ID)
	require.NoError(t, backfill())
	v.set(true, false)
	require.Equal(t, client.RunFailed, f.trigger(j.ID))
	require.Equal(t, 1, f.waitFailing(j.ID, 1).Failures, "a success starts the count anew")

	v.set(true, true)
	triggered, err := f.client.Jobs.Trigger(t.Context(), j.ID)
	require.NoError(t, err)
	stacktest.WaitFor(t, "the run to be canceled", func() (bool, error) {
		run, err := f.client.Runs.Get(t.Context(), triggered.Run)
		if err == nil && run.Status == client.RunRunning && run.Worker != "" {
			err = f.client.Jobs.Stop(t.Context(), j.ID, "by test")
		}
		return err == nil && run.Status == client.RunCanceled, err
	})
	require.Equal(t, 1, f.waitFailing(j.ID, 1).Failures, "a canceled run does not count")
	v.set(true, false)
	require.Equal(t, client.RunFailed, f.trigger(j.ID))
	require.Equal(t, 2, f.waitFailing(j.ID, 2).Failures, "and does not end the count")

	// A paused job is paused, and failing too.
	require.NoError(t, f.client.Jobs.Pause(t.Context(), j.ID, "by a tester"))
	stacktest.WaitFor(t, "the pause in the list", func() (bool, error) {
		row, err := f.row(j.ID)
		return row.Status == client.JobPaused && row.Failing != nil && row.Failing.NextRun.IsZero() && row.PauseReason == "by a tester", err
	})
	require.NoError(t, f.client.Jobs.Resume(t.Context(), j.ID, ""))

	// What failed was another definition.
	j.Spec = []byte(`{"b":1}`)
	f.apply(f.plan(false, j))
	f.waitHealthy(j.ID)
	require.Equal(t, client.RunFailed, f.trigger(j.ID))
	require.Equal(t, 1, f.waitFailing(j.ID, 1).Failures)

	// Without the option it is listed all the same.
	plain := calling("plain", job.Recurring{RecurEvery: job.Duration(24 * time.Hour)})
	f.apply(f.plan(false, j, plain))
	require.Equal(t, client.RunFailed, f.trigger(plain.ID))
	require.Equal(t, 1, f.waitFailing(plain.ID, 1).Failures)
}
