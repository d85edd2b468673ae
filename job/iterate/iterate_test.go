package iterate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/iterate"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

var errBroken = errors.New("broken")

// TestLoop runs iterations of ten seconds with steps of two seconds.
func TestLoop(t *testing.T) {
	t.Parallel()
	type state struct {
		it     *iterate.Iteration
		run    *jobtest.Run
		cancel context.CancelFunc
		step   int64 // from 1
	}
	for name, c := range map[string]struct {
		step  func(s state) (iterate.Next, error)
		err   error
		steps int64
		took  time.Duration
	}{
		"the deadline ends it": {
			func(state) (iterate.Next, error) { return iterate.More, nil }, nil, 5, 10 * time.Second,
		},
		"a step is the last one": {
			func(s state) (iterate.Next, error) {
				if s.step == 2 {
					return iterate.Done, nil
				}
				return iterate.More, nil
			}, nil, 2, 4 * time.Second,
		},
		"work under way is finished after the deadline": {
			func(s state) (iterate.Next, error) {
				if s.step < 8 {
					return iterate.Unfinished, nil
				}
				return iterate.More, nil
			}, nil, 8, 16 * time.Second,
		},
		"a stop ends it": {
			func(s state) (iterate.Next, error) {
				if s.step == 3 {
					s.run.Stop()
				}
				return iterate.More, nil
			}, nil, 3, 6 * time.Second,
		},
		"a stop ends it with work under way": {
			func(s state) (iterate.Next, error) {
				if s.step == 7 {
					s.run.Stop()
				}
				return iterate.Unfinished, nil
			}, nil, 7, 14 * time.Second,
		},
		"an error ends it, with a checkpoint": {
			func(s state) (iterate.Next, error) {
				if s.step == 2 {
					return iterate.More, errBroken
				}
				return iterate.More, nil
			}, errBroken, 2, 4 * time.Second,
		},
		"the end of the context is an error": {
			func(s state) (iterate.Next, error) {
				s.cancel()
				return iterate.Unfinished, nil
			}, context.Canceled, 1, 2 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				run := jobtest.NewRun(job.Job{ID: "test.loop"})
				it := iterate.New(run, 10*time.Second, func(counts map[string]int64) (job.Progress, any) {
					return job.Progress{Done: counts["steps"]}, counts["steps"]
				})
				began := time.Now()
				err := it.Loop(ctx, func(context.Context) (iterate.Next, error) {
					<-time.After(2 * time.Second)
					it.Count("steps", 1)
					return c.step(state{it, run, cancel, it.Counted("steps")})
				})
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.took, time.Since(began))
				require.Equal(t, map[string]int64{"steps": c.steps}, it.Counts())
				require.Len(t, run.Checkpoints(), int(c.steps), "one after each step")
				var saved int64
				_, err = run.SavedCursor(&saved)
				require.NoError(t, err)
				require.Equal(t, c.steps, saved)
			})
		})
	}
}

// TestTimeBeginsWithTheLoop: what it takes to begin leaves the work its time.
func TestTimeBeginsWithTheLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		it := iterate.New(jobtest.NewRun(job.Job{ID: "test.slow"}), time.Second, nil)
		<-time.After(time.Hour)
		require.NoError(t, it.Loop(t.Context(), func(context.Context) (iterate.Next, error) {
			it.Count("steps", 1)
			require.Equal(t, time.Second, it.Left())
			return iterate.Done, nil
		}))
		require.EqualValues(t, 1, it.Counted("steps"))
	})
}

func TestNothingToDo(t *testing.T) {
	t.Parallel()
	never := func(context.Context) (iterate.Next, error) { return iterate.Done, errBroken }
	run := jobtest.NewRun(job.Job{ID: "test.nothing"})
	require.NoError(t, iterate.New(run, 0, nil).Loop(t.Context(), never), "the deadline is over")
	run.Stop()
	require.NoError(t, iterate.New(run, time.Hour, nil).Loop(t.Context(), never), "stopped before")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, iterate.New(run, time.Hour, nil).Loop(ctx, never), context.Canceled)
}

func TestWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait  time.Duration
		after func(run *jobtest.Run, cancel context.CancelFunc) // three seconds
		whole bool
		took  time.Duration
	}{
		"whole":    {4 * time.Second, nil, true, 4 * time.Second},
		"deadline": {time.Minute, nil, false, 10 * time.Second},
		"stop":     {time.Minute, func(run *jobtest.Run, _ context.CancelFunc) { run.Stop() }, false, 3 * time.Second},
		"cancel":   {time.Minute, func(_ *jobtest.Run, cancel context.CancelFunc) { cancel() }, false, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				run := jobtest.NewRun(job.Job{ID: "test.wait"})
				it := iterate.New(run, 10*time.Second, nil)
				if c.after != nil {
					time.AfterFunc(3*time.Second, func() { c.after(run, cancel) })
				}
				began := time.Now()
				require.Equal(t, c.whole, it.Wait(ctx, c.wait))
				require.Equal(t, c.took, time.Since(began))
			})
		})
	}
}
