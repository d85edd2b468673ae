package jobtest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

type countSpec struct {
	To    int           `json:"to"`
	Token job.SecretRef `json:"token"`
}

// countType counts to spec.To, a checkpoint per number, and stops when asked.
func countType() job.Type {
	return job.NewType("CountUp", job.WorkerBackend, "Counts.",
		func(_ context.Context, run job.Run, spec countSpec) (job.Result, error) {
			if _, err := run.Secret(spec.Token, "https://api.example.org"); err != nil {
				return job.Result{}, err
			}
			var n int
			if _, err := run.Cursor(&n); err != nil {
				return job.Result{}, err
			}
			for n < spec.To {
				select {
				case <-run.Stopping():
					return job.Result{}, job.ErrStopped
				default:
				}
				n++
				run.Checkpoint(job.Progress{Done: int64(n), Total: int64(spec.To)}, n)
			}
			return job.Result{Counts: map[string]int64{"counted": int64(n)}}, nil
		})
}

func TestRunStopsAndGoesOn(t *testing.T) {
	t.Parallel()
	counter := countType()
	definition := jobtest.NewJob(counter, "five", job.Trigger{OneShot: &job.OneShot{}},
		countSpec{To: 5, Token: "secret://token"})
	require.Empty(t, definition.Validate())

	first := jobtest.NewRun(definition,
		jobtest.WithSecrets(map[job.SecretRef]string{"secret://token": "abc"}),
		jobtest.OnCheckpoint(func(r *jobtest.Run, c jobtest.Checkpoint) {
			if c.Progress.Done == 2 {
				r.Stop()
				r.Stop()
			}
		}))
	_, err := counter.Handle(t.Context(), first)
	require.ErrorIs(t, err, job.ErrStopped)
	require.Len(t, first.Checkpoints(), 2)
	var saved int
	found, err := first.SavedCursor(&saved)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, 2, saved)

	second := first.NextAttempt()
	require.Equal(t, 2, second.Attempt())
	require.Equal(t, first.ID(), second.ID())
	result, err := counter.Handle(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, int64(5), result.Counts["counted"])
	require.Len(t, second.Checkpoints(), 3)
	require.JSONEq(t, "3", string(second.Checkpoints()[0].Cursor))
}

func TestRunWithoutSecretFails(t *testing.T) {
	t.Parallel()
	counter := countType()
	run := jobtest.NewRun(jobtest.NewJob(counter, "one", job.Trigger{OneShot: &job.OneShot{}},
		countSpec{To: 1, Token: "secret://missing"}), jobtest.WithCursor(7))
	var failure *job.Failure
	_, err := counter.Handle(t.Context(), run)
	require.ErrorAs(t, err, &failure)
	require.True(t, failure.Kind.Final())
	require.Equal(t, errclass.Secret, failure.Class)
}
