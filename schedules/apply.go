package schedules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"go.temporal.io/api/serviceerror"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules/control"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// Report tells how one change went, in the order in which changes end.
type Report struct {
	Change Change
	Err    error
	// Done counts the changes that have ended, of Total.
	Done, Total int
}

// Apply carries a plan out, several changes at a time, and goes on past a change
// that fails. It can be interrupted and run again: what is there is not made
// twice. What someone else has changed since the plan was made is left alone. It
// gives the joined errors of the changes that failed; a server that refuses
// changes at all is one error, and ends it.
func (s *Syncer) Apply(ctx context.Context, plan *Plan, report func(Report)) error {
	if plan.Namespace != s.control.Namespace() {
		return fmt.Errorf("the plan is for namespace %q, not %q", plan.Namespace, s.control.Namespace())
	}
	if err := plan.CheckPrune(); err != nil {
		return err
	}
	recorder := newRecorder(s.control, plan)
	work := plan.work()
	if err := recorder.before(ctx, work); err != nil {
		return s.refused(err)
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	done := 0
	err := control.EachOf(len(work), plan.options.Parallel, func(i int) error {
		if working.Err() != nil {
			return context.Cause(working)
		}
		err := s.carryOut(working, work[i])
		if err == nil {
			err = recorder.done(ctx, work[i])
		}
		var denied *serviceerror.PermissionDenied
		if errors.As(err, &denied) {
			stop(s.refused(err))
			return context.Cause(working)
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		report(Report{Change: work[i], Err: err, Done: done, Total: len(work)})
		return err
	})
	return errors.Join(err, recorder.close(ctx))
}

// refused makes one sentence of a server's refusal to change anything.
func (s *Syncer) refused(err error) error {
	var denied *serviceerror.PermissionDenied
	if !errors.As(err, &denied) {
		return err
	}
	return fmt.Errorf("%w in namespace %q (%s); nothing more was tried", ErrRefused, s.control.Namespace(), denied.Message)
}

// ErrRefused says that the server lets nothing be changed.
var ErrRefused = errors.New("the server refuses changes")

func (s *Syncer) carryOut(ctx context.Context, change Change) error {
	for _, t := range change.replaces {
		if err := s.remove(ctx, t, change); err != nil {
			return err
		}
	}
	if change.Action == ActionDelete {
		return nil
	}
	j := change.job
	runsOnce := j.Mode() == job.ModeOneShot || j.Mode() == job.ModeQueued
	if runsOnce && j.Options.Paused {
		return nil // Only what stood for its former mode was to be removed.
	}
	switch j.Mode() {
	case job.ModeRecurring:
		return s.putSchedule(ctx, change)
	case job.ModeContinuous:
		return s.putLoop(ctx, change)
	case job.ModeQueued:
		id, err := requestID(change)
		if err != nil {
			return err
		}
		receipt, err := s.control.EnqueueOnce(ctx, j, true, id)
		if err == nil && receipt.Duplicate {
			err = fmt.Errorf("job %s is in queue %s already; apply again when it has ended", j.ID, j.Queue())
		}
		return err
	default:
		id, err := requestID(change)
		if err != nil {
			return err
		}
		_, err = s.control.StartRunOnce(ctx, j, workflows.TriggerApply, id)
		return err
	}
}

// requestID is the same for every apply that finds the same and wants the same:
// however many there are, they start one run.
func requestID(change Change) (string, error) {
	hash, err := change.job.SpecHash()
	sum := sha256.Sum256([]byte(hash + " over " + change.Version))
	return "apply-" + hex.EncodeToString(sum[:8]), err
}

func (s *Syncer) putSchedule(ctx context.Context, change Change) error {
	wanted, err := scheduleOf(change.job)
	if err != nil {
		return err
	}
	settled, err := wantedVersion(change.job, wanted)
	if err != nil {
		return err
	}
	is := func(version string) func(*control.Live) bool {
		return func(live *control.Live) bool {
			found, err := scheduleVersion(live)
			return err == nil && found == version
		}
	}
	return s.control.PutSchedule(ctx, control.ScheduleChange{
		Job: change.job, Schedule: wanted, SetPause: change.setPause,
		Create: change.Action == ActionCreate || change.Version == "", Expected: is(change.Version), Settled: is(settled),
	})
}

func (s *Syncer) putLoop(ctx context.Context, change Change) error {
	if change.Action == ActionCreate || change.was == "" {
		return s.control.StartContinuous(ctx, change.job)
	}
	if err := s.control.ReplaceContinuous(ctx, change.job, change.was, change.job.Continuous.RestartOnChange); err != nil || !change.setPause {
		return err
	}
	if change.job.Options.Paused {
		return s.control.Pause(ctx, change.JobID, pausedInDefinition)
	}
	return s.control.Resume(ctx, change.JobID, "as declared")
}

func (s *Syncer) remove(ctx context.Context, t thing, change Change) error {
	var err error
	switch t {
	case thingSchedule:
		err = s.control.DeleteSchedule(ctx, change.JobID)
	case thingLoop:
		err = s.control.StopLoop(ctx, change.JobID, "no longer declared")
	case thingItem:
		err = s.control.RemoveWaiting(ctx, change.queue, change.JobID)
	}
	if errors.Is(err, control.ErrNotFound) {
		return nil
	}
	return err
}
