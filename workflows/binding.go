package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// keptRebinds is how many rebinds a run or a continuous job keeps to show.
const keptRebinds = 10

// binding chooses the services of a run or of a continuous job.
type binding struct {
	*contract.Binding
	searching bool   // a service is being looked for
	show      func() // shows the binding as it is
}

// execute runs the activity of a job with the attempts that are left: of a job that is
// not bound on the task queue of its worker type, of a bound one on that of a
// service with the tags. A run that its service did not take is given to another
// at the last cursor, which is left in the input.
func (b *binding) execute(ctx workflow.Context, j job.Job, a *attempts, in *contract.ActivityInput) (contract.ActivityOutput, error) {
	var output contract.ActivityOutput
	if len(j.Options.Bind) == 0 {
		err := workflow.ExecuteActivity(withJobActivity(ctx, j, a.next()), j.Type, *in).Get(ctx, &output)
		return output, err
	}
	for {
		if err := b.choose(ctx, j); err != nil {
			return contract.ActivityOutput{}, err
		}
		err := workflow.ExecuteActivity(b.onService(withJobActivity(ctx, j, a.next()), j), j.Type, *in).Get(ctx, &output)
		if err == nil {
			b.Silent = false
			return output, nil
		}
		cursor, started, waited := notTaken(err)
		if !waited {
			b.ended(err)
			return output, err
		}
		if len(cursor) > 0 {
			in.Cursor = cursor
		}
		b.Lost, b.NotTaken = fmt.Sprintf("the service did not take the run within %s", j.Options.FailoverWait()), true
		if started {
			b.Silent = lostBefore(err)
			b.Lost = fmt.Sprintf("the service fell silent during the run and did not return within %s", j.Options.FailoverWait())
			if !a.lose(attemptsBefore(err)) {
				return output, err
			}
		}
	}
}

// start is execute in a coroutine of its own. The cursor that a change of the
// service left is in the input when the future is ready.
func (b *binding) start(ctx workflow.Context, j job.Job, a *attempts, in *contract.ActivityInput) workflow.Future {
	future, ended := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		output, err := b.execute(ctx, j, a, in)
		ended.Set(output, err)
	})
	return future
}

// onService sends activities to the service.
func (b *binding) onService(ctx workflow.Context, j job.Job) workflow.Context {
	ctx = workflow.WithTaskQueue(ctx, contract.ServiceTaskQueue(j.Worker, b.Service))
	if j.Options.FailoverPolicy() == job.FailoverWait {
		return ctx
	}
	return workflow.WithScheduleToStartTimeout(ctx, takeWait(j.Options))
}

// takeWait is how long a run waits for its service to take it: failover_after less
// the heartbeat timeout. If the service fell silent, the run has waited for that long
// before, so that it moves within failover_after of the last heartbeat. If not, the
// rest is waited for afterwards. At least a half is left: a service that is only busy
// is not to be looked for all the time.
func takeWait(o job.Options) time.Duration {
	wait := o.FailoverWait().Std()
	return wait - min(o.HeartbeatTimeout.Std(), wait/2)
}

// failoverLeft is what is left of failover_after for a service that is away.
func (b *binding) failoverLeft(o job.Options) job.Duration {
	left := o.FailoverWait().Std()
	if b.Silent {
		left = takeWait(o)
	}
	if b.NotTaken {
		left -= takeWait(o)
	}
	return job.Duration(left)
}

// choose finds a service unless the one that is known will do.
func (b *binding) choose(ctx workflow.Context, j job.Job) error {
	if !sameTags(b.Tags, j.Options.Bind) {
		// The definition has changed: what was chosen before does not count.
		b.Service, b.Lost, b.Tags, b.NotTaken, b.Silent = "", "", j.Options.Bind, false, false
	}
	if b.Service != "" && b.Lost == "" {
		return nil
	}
	in := contract.ChooseServiceInput{
		JobID: j.ID, Worker: j.Worker, Type: j.Type, Bind: j.Options.Bind, Last: b.Service,
		Failover: j.Options.FailoverPolicy(), After: b.failoverLeft(j.Options), FreeSlot: b.NotTaken,
		Spread: j.Recurring == nil,
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           contract.QueuesTaskQueue,
		StartToCloseTimeout: 30 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{MaximumInterval: 10 * time.Second},
		Summary:             j.ID,
	})
	var choice contract.ServiceChoice
	b.searching = true
	b.show()
	defer b.show()
	err := workflow.ExecuteActivity(ctx, contract.ChooseServiceActivity, in).Get(ctx, &choice)
	b.searching = false
	if err != nil {
		return err
	}
	if choice.Service != b.Service {
		b.Silent = false
	}
	if b.Service != "" && choice.Service != b.Service {
		b.Rebound++
		b.Rebinds = append(b.Rebinds, contract.Rebind{At: workflow.Now(ctx), From: b.Service, To: choice.Service, Reason: b.Lost})
		if extra := len(b.Rebinds) - keptRebinds; extra > 0 {
			b.Rebinds = append([]contract.Rebind(nil), b.Rebinds[extra:]...)
		}
	}
	b.Service, b.Lost, b.NotTaken = choice.Service, "", false
	return nil
}

// ended takes in that the service went away in the middle of a run, if it did.
func (b *binding) ended(err error) {
	if _, handed := handedBack(err); handed {
		b.Lost = "the service shut down"
	}
	if _, b.Silent = lostWorker(err); b.Silent {
		b.Lost = "the service fell silent"
	}
}

// notTaken reports whether err says that a service did not take a run in time,
// with the last cursor, and whether an earlier attempt had begun there.
func notTaken(err error) (cursor json.RawMessage, started, ok bool) {
	var timeout *temporal.TimeoutError
	if !errors.As(err, &timeout) || timeout.TimeoutType() != enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
		return nil, false, false
	}
	started = errors.Unwrap(timeout) != nil
	if timeout.HasLastHeartbeatDetails() {
		started = true
		var heartbeat contract.Heartbeat
		if err := timeout.LastHeartbeatDetails(&heartbeat); err == nil {
			cursor = heartbeat.Cursor
		}
	}
	return cursor, started, true
}

// lostBefore reports whether an activity which no worker took has had an attempt before, in
// which the worker fell silent.
func lostBefore(err error) bool {
	var timeout *temporal.TimeoutError
	if !errors.As(err, &timeout) {
		return false
	}
	_, lost := lostWorker(errors.Unwrap(timeout))
	return lost
}

func sameTags(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for _, name := range workflow.DeterministicKeys(a) {
		if value, ok := b[name]; !ok || value != a[name] {
			return false
		}
	}
	return true
}

// details is what the Web UI shows of the binding, "" of a job that is not bound.
func (b *binding) details() string {
	var text string
	switch {
	case b.searching && b.Lost != "":
		text = "\n\nlooking for a service: " + contract.Plain(b.Lost)
	case b.searching:
		text = "\n\nlooking for a service"
	}
	if b.Service == "" {
		return text
	}
	text += "\n\non service " + contract.Plain(b.Service)
	for _, rebind := range b.Rebinds {
		text += fmt.Sprintf("\n\n- %s: %s", rebind.At.UTC().Format(time.DateTime), contract.Plain(rebind.String()))
	}
	return text
}
