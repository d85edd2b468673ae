package schedules_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// reader goes on reading at its cursor until it is told to stop, and records what
// each iteration was given.
type reader struct {
	mu    sync.Mutex
	given []iteration
	// goOn lets an iteration end by itself.
	goOn chan struct{}
}

// iteration is what an iteration was given and how it ended.
type iteration struct {
	A       int  // from its spec
	Cursor  int  // 0: none
	Stopped bool // it was asked to stop
}

func (r *reader) jobType() job.Type {
	type spec struct {
		A int `json:"a"`
	}
	return job.NewType("ReadOn", "testing", "Reads on.", func(ctx context.Context, run job.Run, s spec) (job.Result, error) {
		position := 0
		if _, err := run.Cursor(&position); err != nil {
			return job.Result{}, err
		}
		n := r.add(iteration{A: s.A, Cursor: position})
		run.Checkpoint(job.Progress{Done: 1}, position+10)
		select {
		case <-r.goOn:
			return job.Result{Message: "read"}, nil
		case <-run.Stopping():
			r.stopped(n)
			return job.Result{}, job.ErrStopped
		case <-ctx.Done():
			return job.Result{}, ctx.Err()
		}
	}, job.ModeContinuous)
}

func (r *reader) add(it iteration) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given = append(r.given, it)
	return len(r.given) - 1
}

func (r *reader) stopped(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given[n].Stopped = true
}

func (r *reader) all() []iteration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]iteration(nil), r.given...)
}

// begun waits for the iteration of a number.
func (r *reader) begun(t *testing.T, n int) {
	t.Helper()
	stacktest.WaitFor(t, "an iteration", func() (bool, error) { return len(r.all()) >= n, nil })
}

func readOn(restart bool) job.Job {
	return job.Job{
		ID: "read_on.x", Type: "ReadOn", Worker: "testing", Provider: job.ProviderTOML,
		Spec: json.RawMessage(`{"a":1}`), Options: job.DefaultOptions(job.ModeContinuous),
		Trigger: job.Trigger{Continuous: &job.Continuous{
			Interval: job.Duration(10 * time.Millisecond), RestartOnChange: restart,
		}},
	}
}

// A changed definition goes on at the cursor, whether the iteration under way is
// ended for it or not.
func TestAChangedLoopGoesOnAtItsCursor(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"at once": true, "at the next iteration": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &reader{goOn: make(chan struct{})}
			f := newFixture(t, stacktest.StartNamespace(t), r.jobType())
			j := readOn(restart)
			f.apply(f.plan(false, j))
			r.begun(t, 1)
			r.goOn <- struct{}{}
			r.begun(t, 2)

			j.Spec = json.RawMessage(`{"a":2}`)
			f.apply(f.plan(false, j))
			plan := f.plan(false, j)
			require.True(t, plan.Empty(), "%+v", plan.Changes)
			if !restart {
				require.Equal(t, []iteration{{A: 1}, {A: 1, Cursor: 10}}, r.all(), "the iteration goes on")
				r.goOn <- struct{}{}
			}
			r.begun(t, 3)
			require.Equal(t, []iteration{{A: 1}, {A: 1, Cursor: 10, Stopped: restart}, {A: 2, Cursor: 20}}, r.all())
			require.NoError(t, f.client.Jobs.Stop(t.Context(), j.ID, "by test"))
		})
	}
}

// A loop that has ended goes on at its cursor when it is started again, whoever ended it and
// whoever starts it. One that was deleted begins anew.
func TestAnEndedLoopGoesOnAtItsCursor(t *testing.T) {
	t.Parallel()
	r := &reader{goOn: make(chan struct{})}
	f := newFixture(t, stacktest.StartNamespace(t), r.jobType())
	j := readOn(false)
	ended := func() {
		t.Helper()
		stacktest.WaitFor(t, "the job to end", func() (bool, error) {
			live, err := f.client.Jobs.LiveWorkflow(t.Context(), j.ID)
			return err == nil && !live.Workflow.Open(), err
		})
	}
	f.apply(f.plan(false, j))
	r.begun(t, 1)
	require.NoError(t, f.client.Jobs.Stop(t.Context(), j.ID, "by test"))
	ended()
	j.Spec = json.RawMessage(`{"a":2}`)
	f.apply(f.plan(false, j))
	r.begun(t, 2)
	require.NoError(t, f.temporal.CancelWorkflow(t.Context(), contract.JobWorkflowID(j.ID), ""))
	ended()
	require.NoError(t, f.client.Jobs.Restart(t.Context(), j.ID, "by test"))
	r.begun(t, 3)
	f.apply(f.plan(true))
	f.apply(f.plan(false, j))
	r.begun(t, 4)
	require.Equal(t, []iteration{
		{A: 1, Stopped: true}, {A: 2, Cursor: 10, Stopped: true}, {A: 2, Cursor: 20, Stopped: true}, {A: 2},
	}, r.all())
	require.NoError(t, f.client.Jobs.Stop(t.Context(), j.ID, "by test"))
}
