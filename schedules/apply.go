package schedules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"go.temporal.io/api/serviceerror"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// Report says how one change went, in the order in which changes end.
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
	if plan.Namespace != s.client.Namespace() {
		return fmt.Errorf("the plan is for namespace %q, not %q", plan.Namespace, s.client.Namespace())
	}
	if err := plan.CheckPrune(); err != nil {
		return err
	}
	recorder := newRecorder(s.client, plan)
	work := plan.work()
	if err := recorder.before(ctx, work); err != nil {
		return s.refused(err)
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var mu sync.Mutex
	done := 0
	err := temporalclient.Each(len(work), plan.options.Parallel, func(i int) error {
		if working.Err() != nil {
			return context.Cause(working)
		}
		err := s.carryOut(working, work[i], plan)
		if err == nil {
			err = recorder.done(ctx, work[i])
		}
		var denied *serviceerror.PermissionDenied
		if errors.As(err, &denied) {
			stop(s.refused(err))
		}
		if err != nil && errors.Is(context.Cause(working), ErrRefused) {
			return context.Cause(working) // Also of calls that were broken off by it.
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		report(Report{Change: work[i], Err: err, Done: done, Total: len(work)})
		return err
	})
	if errors.Is(err, ErrRefused) {
		return err // So would be what is left to be written down.
	}
	return errors.Join(err, recorder.close(ctx))
}

// refused makes one sentence of a server's refusal to change anything.
func (s *Syncer) refused(err error) error {
	var denied *serviceerror.PermissionDenied
	if !errors.As(err, &denied) {
		return err
	}
	return fmt.Errorf("%w in namespace %q (%s); nothing more was tried", ErrRefused, s.client.Namespace(), denied.Message)
}

// ErrUnderWay says that what a change would start is under way, since someone else has
// started it.
var ErrUnderWay = errors.New("apply again when it has ended")

// ErrRefused says that the server lets nothing be changed.
var ErrRefused = errors.New("the server refuses changes")

// carryOut makes a change of a plan.
func (s *Syncer) carryOut(ctx context.Context, change Change, plan *Plan) error {
	for _, r := range change.replaces {
		if err := s.remove(ctx, r, change, plan.options.own.alone); err != nil {
			return err
		}
	}
	if change.Action == ActionDelete {
		return nil
	}
	if change.onlyRemoves() {
		return nil
	}
	j := change.job
	switch j.Mode() {
	case job.ModeRecurring:
		return s.putSchedule(ctx, change)
	case job.ModeContinuous:
		return s.putLoop(ctx, change)
	case job.ModeQueued:
		id, err := requestID(change, plan)
		if err != nil {
			return err
		}
		receipt, err := s.client.Queues.Enqueue(ctx, j, client.EnqueueOptions{AllowRerun: !change.isFirst(), RequestID: id})
		if err == nil && receipt.Duplicate && !change.isFirst() {
			err = fmt.Errorf("job %s is in queue %s already; %w", j.ID, j.Queue(), ErrUnderWay)
		}
		return err
	default:
		id, err := requestID(change, plan)
		if err != nil {
			return err
		}
		if change.waiting != "" {
			if err := s.client.Apply.EndWaiting(ctx, j.ID, change.waiting, "its definition was changed before it began"); err != nil {
				return err
			}
		}
		_, err = s.client.Runs.StartAt(ctx, j, contract.StartedByApply, client.StartOptions{At: j.At(), RequestID: id, First: change.isFirst()})
		return err
	}
}

// onlyRemoves reports whether a job that runs once is paused: only the resource of
// its former mode, or its item in a queue, is to be removed.
func (change *Change) onlyRemoves() bool {
	mode := change.job.Mode()
	return change.job.Options.Paused && (mode == job.ModeOneShot || mode == job.ModeQueued)
}

// isFirst reports whether the plan has found neither a run of the job nor an item. Whoever has
// planned the same meanwhile may have been faster, and the run may have ended by now: it
// is the run of this change too.
func (change *Change) isFirst() bool { return change.Version == "" }

// requestID is the same for every apply that finds the same and wants the same:
// however many there are, they start one run. It is another once an apply was
// recorded: a job that was taken out of its queue may be put into it again. Where the
// caller names the request, the name alone counts, whatever was found and recorded.
func requestID(change Change, plan *Plan) (string, error) {
	hash, err := change.job.DefinitionHash()
	asked := fmt.Sprintf("over %q after %d", change.Version, plan.applied.Records)
	if plan.options.RequestID != "" {
		asked = fmt.Sprintf("as %q", plan.options.RequestID)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", change.JobID, hash, asked))
	return "apply-" + hex.EncodeToString(sum[:8]), err
}

func (s *Syncer) putSchedule(ctx context.Context, change Change) error {
	wanted, err := scheduleOf(change.job)
	if err != nil {
		return err
	}
	version, err := wantedVersion(change.job, wanted)
	if err != nil {
		return err
	}
	return s.client.Apply.PutSchedule(ctx, client.ScheduleChange{
		Job: change.job, Schedule: wanted, SetPause: change.setPause,
		Create: change.Action == ActionCreate || change.Version == "", Expected: hasVersion(change.Version), InSync: hasVersion(version),
	})
}

func (s *Syncer) putLoop(ctx context.Context, change Change) error {
	if change.Action == ActionCreate || change.liveHash == "" {
		return s.client.Jobs.StartContinuous(ctx, change.job)
	}
	if err := s.client.Apply.SetContinuous(ctx, change.job, change.liveHash, change.job.Continuous.RestartOnChange); err != nil || !change.setPause {
		return err
	}
	if change.job.Options.Paused {
		return s.client.Jobs.Pause(ctx, change.JobID, pausedInDefinition)
	}
	return s.client.Jobs.Resume(ctx, change.JobID, "as declared")
}

// remove takes away a resource, if it is still what the plan has seen. With stopRuns
// the runs that a schedule has started are stopped too.
func (s *Syncer) remove(ctx context.Context, r removal, change Change, stopRuns bool) error {
	var err error
	switch r.resource {
	case resourceSchedule:
		err = s.deleteSchedule(ctx, r, change, stopRuns)
	case resourceLoop:
		err = s.client.Apply.StopContinuous(ctx, change.JobID, "no longer declared", func(live *client.Live) bool {
			return workflowVersion(live) == r.version
		})
	case resourceItem:
		err = s.client.Apply.RemoveWaiting(ctx, change.queue, change.JobID, change.sequence)
	}
	if errors.Is(err, client.ErrNotFound) {
		return nil
	}
	return err
}

// hasVersion reports whether a live schedule has a version.
func hasVersion(version string) func(*client.Live) bool {
	return func(live *client.Live) bool {
		found, err := scheduleVersion(live)
		return err == nil && found == version
	}
}
