package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// failing is a job every five minutes.
func failing(limit int) job.Job {
	j := newJob("a", job.Trigger{Recurring: &job.Recurring{
		RecurEvery: job.Duration(5 * time.Minute), Offset: new(job.Duration), PauseAfterFailures: limit,
	}})
	j.Options.MaxRetryCount = 0
	return j
}

// outcome is how a run of a test schedule ends.
type outcome string

const (
	succeeds outcome = "succeeds"
	fails    outcome = "fails"
	timesOut outcome = "times out"
	canceled outcome = "is canceled"
	heldBack outcome = "is held back"
)

// noon is the time of the first start of a line.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// line is the runs of a schedule, one after the other. As the server's schedules do,
// it hands each run the error of the last one that failed.
type line struct {
	*testing.T
	job  job.Job
	hash string
	last error

	handled []time.Time // the starts whose runs did something
}

// run starts a run at a time. Held back, it does nothing, however it would have ended.
func (l *line) run(due time.Time, how outcome) contract.RunEnd {
	l.Helper()
	handled := false
	env := newEnvironment(l.T, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
		handled = true
		switch how {
		case succeeds:
			return contract.ActivityOutput{}, nil
		case canceled:
			return contract.ActivityOutput{}, temporal.NewCanceledError()
		case timesOut:
			return contract.ActivityOutput{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)
		}
		return contract.ActivityOutput{}, temporal.NewApplicationError("the vendor is away", "Away")
	})
	require.NoError(l, env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(
		temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime").ValueSet(due.Truncate(time.Second)),
		contract.AttributeDefinitionHash.ValueSet(l.hash))))
	env.SetStartTime(due)
	if l.last != nil {
		env.SetLastError(l.last)
	}
	var end contract.RunEnd
	env.OnUpsertMemo(mock.Anything).Run(func(args mock.Arguments) {
		memo, ok := args.Get(0).(map[string]any)
		require.True(l, ok)
		end, ok = memo[contract.MemoEnd].(contract.RunEnd)
		require.True(l, ok)
	}).Return(nil)
	env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: l.job, StartedBy: contract.StartedBySchedule})
	require.True(l, env.IsWorkflowCompleted())
	if !handled {
		how = heldBack
	} else {
		l.handled = append(l.handled, due)
	}
	l.ends(how, env.GetWorkflowError())
	return end
}

// ends keeps what a run leaves to the next one.
func (l *line) ends(how outcome, err error) {
	l.Helper()
	switch how {
	case succeeds:
		require.NoError(l, err)
		l.last = nil
		return
	case canceled, heldBack:
		require.True(l, temporal.IsCanceledError(err), "%v", err)
		return
	}
	require.Equal(l, map[outcome]string{
		fails:    "Away: the vendor is away",
		timesOut: "StartToCloseTimeout: the run took longer than its run timeout",
	}[how], contract.ErrorClass(err)+": "+contract.ErrorReason(err))
	l.last = errors.Unwrap(err)
}

// minutes are the starts that did something, in minutes after noon.
func (l *line) minutes() []int {
	var all []int
	for _, at := range l.handled {
		all = append(all, int(at.Sub(noon).Minutes()))
	}
	return all
}

func TestAFailingJobIsTriedEverMoreRarely(t *testing.T) {
	t.Parallel()
	l := &line{T: t, job: failing(2), hash: "h1"}
	for n := range 60 {
		due := noon.Add(time.Duration(n) * 5 * time.Minute)
		before := len(l.handled)
		end := l.run(due.Add(time.Second/2), fails)
		require.True(t, end.Failing.Failing)
		require.Equal(t, noon.Add(time.Second/2), end.Failing.Since.Truncate(time.Millisecond))
		require.Equal(t, "Away: the vendor is away", end.Failing.Class+": "+end.Failing.Error)
		require.Equal(t, len(l.handled), end.Failing.Failures)
		if len(l.handled) > before {
			require.Zero(t, end.HeldUntil)
			continue
		}
		require.Equal(t, end.Failing.NextRun, end.HeldUntil)
		require.True(t, end.HeldUntil.After(due))
		require.Contains(t, end.Message, "runs in a row have failed, and the next run is at 2026-05-01T")
		require.Empty(t, end.Error, "it did not fail itself")
	}
	require.Equal(t, []int{0, 5, 10, 20, 40, 80, 140, 200, 260}, l.minutes())

	// The next run succeeds, and the job goes on as before.
	require.Nil(t, l.run(noon.Add(320*time.Minute), succeeds).Failing)
	require.Nil(t, l.run(noon.Add(325*time.Minute), succeeds).Failing)
	require.Equal(t, 1, l.run(noon.Add(330*time.Minute), fails).Failing.Failures)
	require.Equal(t, 2, l.run(noon.Add(335*time.Minute), fails).Failing.Failures)
	require.Equal(t, []int{320, 325, 330, 335}, l.minutes()[9:])
}

// Whatever becomes of the runs of a schedule, those that fail are counted, and those
// that are canceled change nothing.
func TestFailuresInARowAreCounted(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	for limit := range 4 {
		l := &line{T: t, job: failing(limit), hash: "h1"}
		inARow, next := 0, time.Time{}
		for n := range 25 {
			due := noon.Add(time.Duration(n) * 5 * time.Minute)
			how := []outcome{succeeds, fails, fails, timesOut, fails, canceled}[random.IntN(6)]
			held := due.Before(next)
			end := l.run(due, how)
			require.Equal(t, held, !end.HeldUntil.IsZero(), "limit %d, run %d, which %s", limit, n, how)
			switch {
			case held, how == canceled:
			case how == succeeds:
				inARow, next = 0, time.Time{}
			default:
				inARow++
				next = l.job.Recurring.NextRun(l.job.ID, inARow, due)
			}
			if inARow == 0 {
				require.Nil(t, end.Failing)
				continue
			}
			require.Equal(t, inARow, end.Failing.Failures, "limit %d, run %d, which %s", limit, n, how)
			require.Equal(t, next, end.Failing.NextRun.UTC())
		}
	}
}

// A run that someone has triggered has a time that is no start of the job.
func TestATriggeredRunIsNotHeldBack(t *testing.T) {
	t.Parallel()
	l := &line{T: t, job: failing(1), hash: "h1"}
	l.run(noon, fails)
	l.run(noon.Add(5*time.Minute), fails)
	require.Equal(t, noon.Add(15*time.Minute), l.run(noon.Add(10*time.Minute), fails).HeldUntil)
	end := l.run(noon.Add(11*time.Minute), fails)
	require.Zero(t, end.HeldUntil)
	require.Equal(t, 3, end.Failing.Failures)
	require.Equal(t, noon.Add(30*time.Minute), end.Failing.NextRun)
	require.Equal(t, noon.Add(30*time.Minute), l.run(noon.Add(15*time.Minute), fails).HeldUntil)
	require.Nil(t, l.run(noon.Add(16*time.Minute), succeeds).Failing)
	l.run(noon.Add(20*time.Minute), fails)
	require.Equal(t, []int{0, 5, 11, 16, 20}, l.minutes())
}

// A definition that was changed starts anew.
func TestFailuresOfAnotherDefinitionDoNotCount(t *testing.T) {
	t.Parallel()
	l := &line{T: t, job: failing(1), hash: "h1"}
	for n := range 3 {
		l.run(noon.Add(time.Duration(n)*5*time.Minute), fails)
	}
	require.Equal(t, []int{0, 5}, l.minutes())
	l.hash = "h2"
	end := l.run(noon.Add(15*time.Minute), fails)
	require.Equal(t, 1, end.Failing.Failures)
	require.Equal(t, noon.Add(15*time.Minute), end.Failing.Since)
	l.hash = "h3"
	require.Nil(t, l.run(noon.Add(20*time.Minute), succeeds).Failing)
}

// What a run finds that another program or a former version left behind is no count.
func TestAnErrorOfAnotherKindIsNoCount(t *testing.T) {
	t.Parallel()
	for _, last := range []error{
		&temporal.TerminatedError{}, temporal.NewCanceledError(), errors.New("something"),
		temporal.NewApplicationError("draining", "WorkerDraining", contract.ActivityOutput{Worker: "w"}),
		temporal.NewApplicationError("no object", "Other", "text"),
	} {
		l := &line{T: t, job: failing(2), hash: "h1", last: last}
		require.Equal(t, 1, l.run(noon, fails).Failing.Failures)
		l.last = last
		require.Nil(t, l.run(noon, succeeds).Failing)
	}
}

// Only runs of a schedule pass anything on.
func TestOtherRunsPassNothingOn(t *testing.T) {
	t.Parallel()
	for _, in := range []contract.RunInput{
		{Job: failing(1), StartedBy: contract.StartedByHand},
		{Job: oneShot("a"), StartedBy: contract.StartedByApply},
	} {
		in.Job.Options.MaxRetryCount = 0
		env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
			return contract.ActivityOutput{}, errors.New("away")
		})
		env.ExecuteWorkflow(contract.RunJobType, in)
		var activityError *temporal.ActivityError
		require.ErrorAs(t, errors.Unwrap(env.GetWorkflowError()), &activityError)
	}
}
