package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

func failing(limit int) job.Job {
	j := newJob("a", job.Schedule{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour), PauseAfterFailures: limit}})
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
)

// line is the runs of a schedule, one after the other.
type line struct {
	*testing.T
	job  job.Job
	hash string
	// keepsErrors says that a canceled run leaves the error of the run before to the
	// next one, as the server's schedules do; otherwise it passes on its own.
	keepsErrors bool
	// pause is the answer to requests to pause the schedule.
	pause func(workflows.PauseFailingInput) workflows.PauseFailingOutput

	last  error
	asked []workflows.PauseFailingInput
	told  int // signals to the probe
}

func (l *line) run(how outcome) {
	env := newEnvironment(l.T, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
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
	require.NoError(l, env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(contract.AttributeSpecHash.ValueSet(l.hash))))
	if l.last != nil {
		env.SetLastError(l.last)
	}
	env.RegisterActivityWithOptions(func(_ context.Context, in workflows.PauseFailingInput) (workflows.PauseFailingOutput, error) {
		l.asked = append(l.asked, in)
		return l.pause(in), nil
	}, activity.RegisterOptions{Name: contract.PauseFailingActivity})
	env.OnSignalExternalWorkflow(mock.Anything, "job/count_things.a/probe", "", workflows.SignalProbe, workflows.ProbeNews{Succeeded: true}).
		Return(func(string, string, string, string, any) error {
			l.told++
			return errors.New("there is no probe")
		})
	env.ExecuteWorkflow(contract.RunJobType, contract.RunInput{Job: l.job, StartedBy: contract.StartedBySchedule})
	require.True(l, env.IsWorkflowCompleted())
	err := env.GetWorkflowError()
	if how == succeeds {
		require.NoError(l, err)
		l.last = nil
		return
	}
	class, message := contract.Cause(err)
	switch how {
	case fails:
		require.Equal(l, "Away: the vendor is away", class+": "+message)
	case timesOut:
		require.Equal(l, "StartToCloseTimeout: the run took longer than its run timeout", class+": "+message)
	case canceled:
		require.True(l, temporal.IsCanceledError(err), "%v", err)
		if l.keepsErrors {
			return
		}
	}
	l.last = errors.Unwrap(err)
}

// Whatever becomes of the runs of a schedule, a pause is asked for exactly when
// enough of them in a row have failed.
func TestFailuresInARowAreCounted(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, keepsErrors := range []bool{false, true} {
		for range 4 {
			limit := 1 + random.IntN(4)
			l := &line{T: t, job: failing(limit), hash: "h1", keepsErrors: keepsErrors}
			l.pause = func(in workflows.PauseFailingInput) workflows.PauseFailingOutput {
				return workflows.PauseFailingOutput{Failures: in.Failures} // Someone has paused it.
			}
			inARow, asked := 0, 0
			for n := range 25 {
				how := []outcome{succeeds, fails, fails, timesOut, fails, canceled}[random.IntN(6)]
				switch how {
				case succeeds:
					inARow = 0
				case fails, timesOut:
					inARow++
					if inARow >= limit {
						asked++
					}
				}
				l.run(how)
				require.Len(t, l.asked, asked, "limit %d, run %d, which %s", limit, n, how)
				if how != succeeds && how != canceled && inARow >= limit {
					require.Equal(t, inARow, l.asked[asked-1].Failures)
					require.Empty(t, l.asked[asked-1].Known)
				}
			}
			require.Zero(t, l.told, "the schedule was never paused for failures")
		}
	}
}

func TestTheRunsOfAPausedScheduleKnowItsPause(t *testing.T) {
	l := &line{T: t, job: failing(2), hash: "h1"}
	l.pause = func(in workflows.PauseFailingInput) workflows.PauseFailingOutput {
		return workflows.PauseFailingOutput{Failures: in.Failures, Pause: "note"}
	}
	l.run(fails)
	require.Empty(t, l.asked)
	l.run(timesOut)
	require.Len(t, l.asked, 1)
	require.Equal(t, 2, l.asked[0].Failures)
	require.Equal(t, "h1", l.asked[0].SpecHash)
	require.Equal(t, "the run took longer than its run timeout", l.asked[0].Error)
	l.run(canceled)
	l.run(fails) // As a try.
	require.Len(t, l.asked, 2)
	require.Equal(t, "note", l.asked[1].Known)

	l.pause = func(workflows.PauseFailingInput) workflows.PauseFailingOutput {
		return workflows.PauseFailingOutput{Failures: 1} // Someone has resumed it.
	}
	l.run(fails)
	require.Len(t, l.asked, 3)
	l.run(fails)
	require.Equal(t, 2, l.asked[3].Failures)
	require.Empty(t, l.asked[3].Known)

	l.pause = func(in workflows.PauseFailingInput) workflows.PauseFailingOutput {
		return workflows.PauseFailingOutput{Failures: in.Failures, Pause: "another note"}
	}
	l.run(fails)
	l.run(fails)
	l.run(succeeds)
	require.Equal(t, 1, l.told, "the probe is told of the success")
	l.run(succeeds)
	require.Equal(t, 1, l.told)
}

// A definition that was changed starts anew.
func TestFailuresOfAnotherDefinitionDoNotCount(t *testing.T) {
	l := &line{T: t, job: failing(2), hash: "h1"}
	l.pause = func(in workflows.PauseFailingInput) workflows.PauseFailingOutput {
		return workflows.PauseFailingOutput{Failures: in.Failures, Pause: "note"}
	}
	l.run(fails)
	l.hash = "h2"
	l.run(fails)
	require.Empty(t, l.asked)
	l.run(fails)
	require.Len(t, l.asked, 1)
	l.hash = "h3"
	l.run(succeeds)
	require.Zero(t, l.told)
}

// What a run finds that another program, a termination or a former version left
// behind is no count.
func TestAnErrorOfAnotherKindIsNoCount(t *testing.T) {
	for _, last := range []error{
		&temporal.TerminatedError{}, temporal.NewCanceledError(), errors.New("something"),
		temporal.NewApplicationError("draining", "WorkerDraining", contract.ActivityOutput{Worker: "w"}),
		temporal.NewApplicationError("no object", "Other", "text"),
	} {
		l := &line{T: t, job: failing(2), hash: "h1", last: last}
		l.run(fails)
		require.Empty(t, l.asked)
		l.last = last
		l.run(succeeds)
		require.Equal(t, 1, l.told, "a probe is told, if there is one: %v", last)
	}
}

// Only runs of a schedule whose job says so have anything to do with it.
func TestOtherRunsPassNothingOn(t *testing.T) {
	j := failing(1)
	never := failing(0)
	for _, in := range []contract.RunInput{
		{Job: never, StartedBy: contract.StartedBySchedule},
		{Job: j, StartedBy: contract.StartedByHand},
		{Job: oneShot("a"), StartedBy: contract.StartedByApply},
	} {
		in.Job.Options.MaxRetryCount = 0
		env := newEnvironment(t, func(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
			return contract.ActivityOutput{}, errors.New("away")
		})
		env.ExecuteWorkflow(contract.RunJobType, in) // No activity but the handler's is registered.
		var activityError *temporal.ActivityError
		require.ErrorAs(t, errors.Unwrap(env.GetWorkflowError()), &activityError)
	}
}

// fakeSchedule is what a probe sees of a schedule.
type fakeSchedule struct {
	env     *testsuite.TestWorkflowEnvironment
	pause   string // "" while it is not paused
	tries   []time.Time
	looks   int
	resumed string
	running bool
	// onTry says how a try goes on.
	onTry func(n int)
}

func newProbe(t *testing.T) *fakeSchedule {
	t.Helper()
	f := &fakeSchedule{env: newEnvironment(t, nothing), pause: "note", onTry: func(int) {}}
	register := func(a any, name string) {
		f.env.RegisterActivityWithOptions(a, activity.RegisterOptions{Name: name})
	}
	register(func(_ context.Context, in workflows.TryPausedInput) (workflows.TryPausedOutput, error) {
		f.looks++
		switch {
		case f.pause != in.Pause:
			return workflows.TryPausedOutput{Ended: "touched"}, nil
		case !in.Start || f.running:
			return workflows.TryPausedOutput{}, nil
		}
		f.tries = append(f.tries, f.env.Now())
		f.onTry(len(f.tries))
		return workflows.TryPausedOutput{Started: true}, nil
	}, contract.TryPausedActivity)
	register(func(_ context.Context, in workflows.ResumePausedInput) (workflows.ResumePausedOutput, error) {
		if f.pause != in.Pause {
			return workflows.ResumePausedOutput{Ended: "touched"}, nil
		}
		f.pause, f.resumed = "", in.Note
		return workflows.ResumePausedOutput{Ended: in.Note}, nil
	}, contract.ResumePausedActivity)
	return f
}

func nothing(context.Context, contract.ActivityInput) (contract.ActivityOutput, error) {
	return contract.ActivityOutput{}, nil
}

func (f *fakeSchedule) tell(after time.Duration, news workflows.ProbeNews) {
	f.env.RegisterDelayedCallback(func() { f.env.SignalWorkflow(workflows.SignalProbe, news) }, after)
}

func (f *fakeSchedule) execute(t *testing.T, state workflows.ProbeState) workflows.ProbeOutput {
	t.Helper()
	f.env.ExecuteWorkflow(contract.ProbeJobType, state)
	require.True(t, f.env.IsWorkflowCompleted())
	require.NoError(t, f.env.GetWorkflowError())
	var out workflows.ProbeOutput
	require.NoError(t, f.env.GetWorkflowResult(&out))
	return out
}

func probeState(every time.Duration) workflows.ProbeState {
	j := failing(3)
	j.Recurring.ProbeEvery = job.Duration(every)
	return workflows.ProbeState{Job: j, SpecHash: "h1", Pause: "note"}
}

func (f *fakeSchedule) waits(start time.Time) []time.Duration {
	var waits []time.Duration
	for _, at := range f.tries {
		waits = append(waits, at.Sub(start).Round(time.Second))
		start = at
	}
	return waits
}

func TestAProbeTriesLessAndLessOftenUntilARunSucceeds(t *testing.T) {
	f := newProbe(t)
	f.onTry = func(n int) {
		news := workflows.ProbeNews{Failed: fmt.Sprintf("failure %d", n)}
		if n == 5 {
			news = workflows.ProbeNews{Succeeded: true}
		}
		f.tell(time.Minute, news)
	}
	start := f.env.Now()
	out := f.execute(t, probeState(10*time.Minute))
	require.Equal(t, []time.Duration{ // A wait counts from the end of the run before.
		10 * time.Minute, 21 * time.Minute, 41 * time.Minute, 61 * time.Minute, 61 * time.Minute,
	}, f.waits(start))
	require.Equal(t, 5, out.Tries)
	require.Equal(t, f.resumed, out.Reason)
	require.Contains(t, f.resumed, "a run succeeded, after 5 tries")
	require.Empty(t, f.pause)
}

func TestAProbeDoesNotStartARunBesideAnother(t *testing.T) {
	f := newProbe(t)
	f.running = true
	f.env.RegisterDelayedCallback(func() { f.running = false }, 35*time.Minute)
	f.onTry = func(int) { f.tell(time.Second, workflows.ProbeNews{Succeeded: true}) }
	start := f.env.Now()
	out := f.execute(t, probeState(10*time.Minute))
	require.Equal(t, []time.Duration{40 * time.Minute}, f.waits(start))
	require.Equal(t, 1, out.Tries)
}

// A success that someone else brought about resumes the schedule too.
func TestAProbeHearsOfARunThatSomeoneTriggered(t *testing.T) {
	f := newProbe(t)
	f.tell(time.Minute, workflows.ProbeNews{Succeeded: true})
	out := f.execute(t, probeState(10*time.Minute))
	require.Zero(t, out.Tries)
	require.Empty(t, f.tries)
	require.Contains(t, f.resumed, "a run succeeded, after 0 tries")
}

func TestAProbeEndsWhenSomeoneHasAHandInTheSchedule(t *testing.T) {
	for _, told := range []bool{true, false} {
		f := newProbe(t)
		f.env.RegisterDelayedCallback(func() { f.pause = "vendor is down" }, time.Minute)
		if told {
			f.tell(2*time.Minute, workflows.ProbeNews{})
		}
		start := f.env.Now()
		out := f.execute(t, probeState(10*time.Minute))
		require.Equal(t, workflows.ProbeOutput{Reason: "touched"}, out)
		require.Empty(t, f.tries)
		require.Empty(t, f.resumed)
		require.Equal(t, "vendor is down", f.pause)
		want := 10 * time.Minute
		if told {
			want = 2 * time.Minute
		}
		require.Equal(t, want, f.env.Now().Sub(start).Round(time.Minute))
	}
}

func TestAProbeThatIsToldOfAnotherPauseStartsAnew(t *testing.T) {
	f := newProbe(t)
	state := probeState(10 * time.Minute)
	again := state
	again.Pause = "another note"
	f.env.RegisterDelayedCallback(func() { f.pause = again.Pause }, 15*time.Minute)
	f.tell(16*time.Minute, workflows.ProbeNews{Start: &again})
	f.tell(17*time.Minute, workflows.ProbeNews{Start: &again}) // The same, told twice.
	f.onTry = func(n int) {
		if n == 2 {
			f.tell(time.Minute, workflows.ProbeNews{Succeeded: true})
		}
	}
	start := f.env.Now()
	out := f.execute(t, state)
	require.Equal(t, []time.Duration{10 * time.Minute, 16 * time.Minute}, f.waits(start))
	require.Equal(t, 1, out.Tries, "of the pause at hand")
}

func TestAProbeGoesOnAfterContinueAsNew(t *testing.T) {
	f := newProbe(t)
	f.onTry = func(int) { f.env.SetContinueAsNewSuggested(true) }
	f.env.ExecuteWorkflow(contract.ProbeJobType, probeState(10*time.Minute))
	var state workflows.ProbeState
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, f.env.GetWorkflowError(), &again)
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &state))
	require.Equal(t, 1, state.Tries)

	next := newProbe(t)
	next.env.SetStartTime(f.env.Now())
	next.onTry = func(int) { next.tell(time.Minute, workflows.ProbeNews{Succeeded: true}) }
	out := next.execute(t, state)
	require.Equal(t, []time.Duration{20 * time.Minute}, next.waits(f.env.Now()))
	require.Equal(t, 2, out.Tries)
}

// Whatever happens in whatever order: tries are at least their wait apart, nothing
// is started or resumed once someone has had a hand in the schedule, and the probe
// ends when, and only when, a run has succeeded or someone had.
func TestAProbeUnderRandomEvents(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		f := newProbe(t)
		state := probeState(time.Duration(1+random.IntN(120)) * time.Minute)
		succeedsAt, touchedAt := 1+random.IntN(8), time.Duration(1+random.IntN(600))*time.Minute
		touched := false
		f.env.RegisterDelayedCallback(func() {
			if f.pause == state.Pause {
				f.pause, touched = []string{"", "by hand"}[random.IntN(2)], true
			}
		}, touchedAt)
		for range random.IntN(5) {
			f.tell(time.Duration(random.IntN(600))*time.Minute+time.Second, workflows.ProbeNews{})
		}
		f.onTry = func(n int) {
			require.False(t, touched)
			after := time.Duration(1+random.IntN(600)) * time.Second
			if n >= succeedsAt {
				f.tell(after, workflows.ProbeNews{Succeeded: true})
			} else if random.IntN(3) > 0 { // Else it was canceled, and tells nothing.
				f.tell(after, workflows.ProbeNews{Failed: "away"})
			}
		}
		start := f.env.Now()
		out := f.execute(t, state)
		for n, wait := range f.waits(start) {
			require.GreaterOrEqual(t, wait, state.Job.Recurring.ProbeBackoff().Wait(n+1), "try %d of %s", n+1, state.Job.Recurring.ProbeEvery)
		}
		require.Len(t, f.tries, out.Tries)
		require.Equal(t, touched, f.resumed == "", "ended: %s", out.Reason)
		require.NotEqual(t, state.Pause, f.pause)
	}
}

func TestAProbeEndsWithItsJob(t *testing.T) {
	f := newProbe(t)
	state := probeState(10 * time.Minute)
	state.Job.Recurring.EndAt = f.env.Now().Add(15 * time.Minute)
	out := f.execute(t, state)
	require.Equal(t, workflows.ProbeOutput{Tries: 1, Reason: "the job has no more starts: its end_at has passed"}, out)
	require.Equal(t, "note", f.pause)
}

func TestACanceledProbeLeavesThePause(t *testing.T) {
	f := newProbe(t)
	f.env.RegisterDelayedCallback(f.env.CancelWorkflow, time.Minute)
	f.env.ExecuteWorkflow(contract.ProbeJobType, probeState(10*time.Minute))
	require.True(t, temporal.IsCanceledError(f.env.GetWorkflowError()))
	require.Equal(t, "note", f.pause)
}

func TestAProbeRefusesAJobOfAnotherMode(t *testing.T) {
	env := newEnvironment(t, nothing)
	env.ExecuteWorkflow(contract.ProbeJobType, workflows.ProbeState{Job: oneShot("a")})
	require.ErrorContains(t, env.GetWorkflowError(), `job "count_things.a" is not a recurring job`)
}

func TestThePausesNoteFitsTheServersLimit(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	j := failing(5)
	require.Equal(t, "5 runs in a row failed, the last one: away; paused at 2026-11-21T09:00:00.000Z, tried again after PT1H, until a run succeeds",
		workflows.PauseNote(j, 5, "away", at))
	j.Recurring.ProbeEvery = job.Duration(time.Minute)
	require.Equal(t, "a run failed: away; paused at 2026-11-21T09:00:00.000Z, tried again after PT1M, then at most PT1H apart, until a run succeeds",
		workflows.PauseNote(j, 1, "away", at))
	long := workflows.PauseNote(j, 5, strings.Repeat("čž ", 2000), at)
	require.LessOrEqual(t, len(long), 1000)
	require.Contains(t, long, "…; paused at 2026-11-21T09:00:00.000Z")
}
