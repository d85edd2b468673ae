package schedules_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// TestWhatStandsDependsOnWhatIsDeclaredAlone draws sets of jobs A and B, and
// checks that B, applied over A with a prune, leaves what B alone does; that it
// is the same after another apply, of the same plan and of a new one; that the
// plan is empty then; and that no job that runs once has run twice.
func TestWhatStandsDependsOnWhatIsDeclaredAlone(t *testing.T) {
	const leastRounds, mostRounds = 2, 50
	t.Parallel()
	draw := &draw{Rand: stacktest.Random(t)}
	over := &world{newFixture(t, stacktest.StartNamespace(t))}
	alone := &world{newFixture(t, stacktest.StartNamespace(t))}
	rounds, enough := 0, time.Now().Add(time.Duration(stacktest.Size(3, 30))*time.Second)
	for round := range mostRounds {
		if round >= leastRounds && time.Now().After(enough) {
			break
		}
		equivalence(t, draw, over, alone, round)
		rounds++
	}
	t.Logf("%d rounds", rounds)
}

func equivalence(t *testing.T, draw *draw, over, alone *world, round int) {
	draw.round = strconv.Itoa(round)
	a, b := draw.jobs(), draw.jobs()
	over.pausedQueue(draw.heldQueue())
	alone.pausedQueue(draw.heldQueue())
	what := fmt.Sprintf("round %d", round)
	defer func() {
		if t.Failed() {
			t.Logf("%s\nA: %s\nB: %s", what, texts(a), texts(b))
		}
	}()

	over.applyAll(what, a)
	over.quiet(a)
	// The lists that a prune goes by lag behind.
	over.listed(b, a)
	plan := over.plan(what, b)
	over.carryOut(what, plan)
	over.quiet(b)
	alone.applyAll(what, b)
	alone.quiet(b)

	want := alone.liveState(draw.ids(), draw.queues())
	want = withoutRepeats(want, a)
	require.Equal(t, want, over.liveState(draw.ids(), draw.queues()), what)

	over.empty(what, b)
	alone.empty(what, b)
	// Another apply of the same plan, as of someone who was slower.
	over.carryOut(what, plan)
	over.applyAll(what, b)
	over.quiet(b)
	require.Equal(t, want, over.liveState(draw.ids(), draw.queues()), what)
	over.ranOnce(what, a, b)
	alone.ranOnce(what, b)

	// And back: what was taken away is there again.
	for _, w := range []*world{over, alone} {
		w.listed(a, b)
		w.applyAll(what, a)
		w.quiet(a)
		w.empty(what, a)
	}
	require.Equal(t, alone.liveState(draw.ids(), draw.queues()), over.liveState(draw.ids(), draw.queues()), what)
}

// withoutRepeats drops what waits in a queue and has run before: a job that runs
// once does so again only with another spec.
func withoutRepeats(lines []string, before []job.Job) []string {
	for _, j := range before {
		runs := j.Mode() == job.ModeOneShot || j.Mode() == job.ModeQueued && !isHeld(j.Queue())
		if runs && !j.Options.Paused {
			lines = slices.DeleteFunc(lines, func(line string) bool {
				return strings.HasPrefix(line, "waits in ") && strings.HasSuffix(line, ": "+j.ID+" "+string(j.Spec))
			})
		}
	}
	return lines
}

// world is a stack with a worker.
type world struct{ *fixture }

func (w *world) plan(what string, jobs []job.Job) *schedules.Plan {
	w.Helper()
	plan, err := w.syncer.Plan(w.Context(), jobs, schedules.PlanOptions{
		Provider: job.ProviderTOML, Prune: true, AllowMassPrune: true,
	})
	require.NoError(w, err, what)
	require.Zero(w, plan.Count(schedules.ActionBlocked), "%v\n%s", plan.Changes, what)
	return plan
}

func (w *world) carryOut(what string, plan *schedules.Plan) {
	w.Helper()
	require.NoError(w, w.syncer.Apply(w.Context(), plan, func(schedules.Report) {}), what)
}

func (w *world) applyAll(what string, jobs []job.Job) {
	w.Helper()
	w.carryOut(what, w.plan(what, jobs))
}

// empty checks that a plan has nothing to do.
func (w *world) empty(what string, jobs []job.Job) {
	w.Helper()
	plan := w.plan(what, jobs)
	require.True(w, plan.Empty(), "%v\n%s", actions(plan), what)
}

// listed waits until the lists show what of a set is to be pruned.
func (w *world) listed(kept, set []job.Job) {
	w.Helper()
	gone := 0
	for _, j := range set {
		stays := j.Mode() == job.ModeRecurring || j.Mode() == job.ModeContinuous ||
			j.Mode() == job.ModeQueued && !j.Options.Paused && isHeld(j.Queue())
		if stays && !slices.ContainsFunc(kept, func(k job.Job) bool { return k.ID == j.ID }) {
			gone++
		}
	}
	stacktest.WaitFor(w, fmt.Sprintf("%d jobs to be seen that are no longer declared", gone), func() (bool, error) {
		plan, err := w.syncer.Plan(w.Context(), kept, schedules.PlanOptions{Provider: job.ProviderTOML, Prune: true, AllowMassPrune: true})
		if err != nil {
			return false, err
		}
		n := 0
		for _, change := range plan.Changes {
			if change.Action == schedules.ActionDelete && slices.ContainsFunc(set, func(j job.Job) bool { return j.ID == change.JobID }) {
				n++
			}
		}
		return n == gone, nil
	})
}

// pausedQueue makes a queue that takes items and starts none.
func (w *world) pausedQueue(name string) {
	w.Helper()
	opener := declare("opener-of-"+name, queued(name), func(j *job.Job) { j.Provider = job.ProviderAPI })
	_, err := w.client.Queues.Enqueue(w.Context(), opener, client.EnqueueOptions{})
	require.NoError(w, err)
	_, err = w.client.Queues.Pause(w.Context(), name, "holds what is put into it")
	require.NoError(w, err)
	stacktest.WaitFor(w, "the first item of the queue to have ended", func() (bool, error) {
		state, err := w.client.Queues.State(w.Context(), name)
		return err == nil && state.Running == nil && len(state.Waiting) == 0, err
	})
}

// ranOnce checks that what runs once in all of the sets ran once with each spec.
func (w *world) ranOnce(what string, sets ...[]job.Job) {
	w.Helper()
	want := map[string]int{}
	otherwise := map[string]bool{}
	for _, set := range sets {
		for _, j := range set {
			switch once := j.Mode() == job.ModeOneShot || j.Mode() == job.ModeQueued; {
			case !once:
				otherwise[j.ID] = true
			case !j.Options.Paused && !isHeld(j.Queue()):
				want[j.ID+" "+string(j.Spec)] = 1
			}
		}
	}
	ran := map[string]int{}
	for _, call := range w.ledger.Calls("") {
		ran[call.JobID+" "+call.Spec]++
	}
	for _, set := range sets {
		for _, j := range set {
			if key := j.ID + " " + string(j.Spec); !otherwise[j.ID] {
				require.Equal(w, want[key], ran[key], "runs of %s\n%s", key, what)
			}
		}
	}
}
