package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	sdk "go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
	"github.com/dendrascience/dendra-jobs/verbs/verbstest"
)

// TestTableOfVerbs brings jobs, runs and queues into the real ones of the states. A verb of which the
// list says that it does not apply changes nothing there; one that applies is taken. It has a
// namespace of its own: whoever looks for a job asks all of its queues.
func TestTableOfVerbs(t *testing.T) {
	t.Parallel()
	w := startWorld(t, stacktest.StartNamespace(t))
	v := &verbWorld{world: w, c: w.server.InProcess(), gate: workertest.NewGate(t)}
	t.Cleanup(func() { workertest.Open(t, v.gate) })
	v.tryAll(t, verbstest.Jobs(t), v.jobs(), verbs.JobVerbs())
	v.tryAll(t, verbstest.Runs(t), v.runs(), verbs.RunVerbs())
	v.tryAll(t, verbstest.Queues(t), v.queues(), verbs.QueueVerbs())
	t.Run("run that ends between", func(t *testing.T) { t.Parallel(); v.endedBetween(t) })
	t.Run("ended run by the client", func(t *testing.T) { t.Parallel(); v.endedByClient(t) })
}

// verbWorld makes what verbs are done to.
type verbWorld struct {
	*world
	c    *api.Clients
	gate string
}

// object is something in a state.
type object struct {
	name string
	// read gives all that a verb could change.
	read func(*testing.T) proto.Message
}

// keyOf is a status as part of a name.
func keyOf(status fmt.Stringer) string {
	return strings.ToLower(strings.ReplaceAll(status.String(), "_", "-"))
}

// state makes an object of its own that is in a state.
type state func(t *testing.T, key string) object

// tryAll does the verbs of a list in all states that are real.
func (w *verbWorld) tryAll(t *testing.T, all []verbstest.State, brought map[string]state, list []*verbs.Verb) {
	verbstest.RequireReal(t, all, brought)
	for _, s := range all {
		if s.Real {
			t.Run(s.Name, func(t *testing.T) { t.Parallel(); w.try(t, s, brought[s.Name], list) })
		}
	}
}

// try does the verbs: those that do not apply to one object, each of the others to its own.
func (w *verbWorld) try(t *testing.T, is verbstest.State, bring state, list []*verbs.Verb) {
	one := bring(t, "one")
	before := one.read(t)
	for _, v := range list {
		if v.Label == "" {
			continue // Only its command builds its request.
		}
		args := verbs.To(one.name)
		args.Start, args.End = time.Now().Add(-time.Minute), time.Now()
		if is.Applies(v) {
			args.Names = []string{bring(t, v.Name).name}
			_, err := v.Do(t.Context(), w.c.Calls, args)
			require.NoError(t, err, "%s applies to a %s", v.Name, is.Name)
			continue
		}
		done, err := v.Do(t.Context(), w.c.Calls, args)
		t.Logf("%s: %v %v", v.Name, done.Result, err)
		require.Equal(t, prototext.Format(before), prototext.Format(one.read(t)), "%s does not apply to a %s", v.Name, is.Name)
	}
}

func (w *verbWorld) jobs() map[string]state {
	recurring := func(paused, run bool, status jobsv1.JobStatus) state {
		return func(t *testing.T, key string) object {
			id := fmt.Sprintf("take_steps.verb-recurring-%t-%t-%s", paused, run, key)
			j := steps(t, id, "gate", w.gate)
			j.Mode = &jobsv1.Job_Recurring{Recurring: &jobsv1.Recurring{
				RecurEvery: durationpb.New(24 * time.Hour), Overlap: jobsv1.OverlapPolicy_OVERLAP_POLICY_ALLOW_ALL,
			}}
			w.create(t, j)
			if run {
				_, err := w.c.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Id: id})
				require.NoError(t, err)
			}
			if paused {
				_, err := w.c.Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: id})
				require.NoError(t, err)
			}
			return w.job(t, id, status)
		}
	}
	continuous := func(verb *verbs.Verb, status jobsv1.JobStatus) state {
		return func(t *testing.T, key string) object {
			id := "take_steps.verb-continuous-" + keyOf(status) + "-" + key
			j := steps(t, id, "gate", w.gate)
			j.Mode = &jobsv1.Job_Continuous{Continuous: &jobsv1.Continuous{Interval: durationpb.New(time.Hour)}}
			w.create(t, j)
			running := w.job(t, id, jobsv1.JobStatus_JOB_STATUS_RUNNING)
			if verb == nil {
				return running
			}
			_, err := verb.Do(t.Context(), w.c.Calls, verbs.To(id))
			require.NoError(t, err)
			return w.job(t, id, status)
		}
	}
	once := func(gate string, status jobsv1.JobStatus) state {
		return func(t *testing.T, key string) object {
			id := "take_steps.verb-once-" + keyOf(status) + "-" + key
			j := steps(t, id, "gate", gate)
			j.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
			w.create(t, j)
			return w.job(t, id, status)
		}
	}
	queued := func(t *testing.T, key string) object {
		queue := "verb-waits-" + key
		w.pausedQueue(t, queue)
		j := steps(t, "take_steps.verb-waits-"+key)
		j.Mode = &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: queue}}
		w.create(t, j)
		return w.job(t, j.GetId(), jobsv1.JobStatus_JOB_STATUS_WAITING)
	}
	return map[string]state{
		"recurring scheduled": recurring(false, false, jobsv1.JobStatus_JOB_STATUS_SCHEDULED),
		"recurring running":   recurring(false, true, jobsv1.JobStatus_JOB_STATUS_RUNNING),
		"recurring paused":    recurring(true, true, jobsv1.JobStatus_JOB_STATUS_PAUSED),
		"continuous running":  continuous(nil, jobsv1.JobStatus_JOB_STATUS_RUNNING),
		"continuous paused":   continuous(verbs.PauseJob, jobsv1.JobStatus_JOB_STATUS_PAUSED),
		"continuous stopped":  continuous(verbs.StopJob, jobsv1.JobStatus_JOB_STATUS_STOPPED),
		"one_shot running":    once(w.gate, jobsv1.JobStatus_JOB_STATUS_RUNNING),
		"one_shot completed":  once("", jobsv1.JobStatus_JOB_STATUS_COMPLETED),
		"queued waiting":      queued,
	}
}

func (w *verbWorld) create(t *testing.T, j *jobsv1.Job) {
	t.Helper()
	_, err := w.c.Jobs.CreateJob(t.Context(), &jobsv1.CreateJobRequest{Job: j})
	require.NoError(t, err)
}

// job is a job once it has a status.
func (w *verbWorld) job(t *testing.T, id string, status jobsv1.JobStatus) object {
	t.Helper()
	get := func(t *testing.T) *jobsv1.Job {
		answer, err := w.c.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: id})
		require.NoError(t, err)
		return answer.GetJob()
	}
	stacktest.WaitFor(t, id+" to be "+status.String(), func() (bool, error) { return get(t).GetState().GetStatus() == status, nil })
	return object{id, func(t *testing.T) proto.Message {
		state := get(t).GetState()
		return &jobsv1.JobState{
			Status: state.GetStatus(), PauseReason: state.GetPauseReason(), StopReason: state.GetStopReason(), RunNames: state.GetRunNames(),
			Continuous: &jobsv1.ContinuousState{Iterations: state.GetContinuous().GetIterations()},
		}
	}}
}

func (w *verbWorld) runs() map[string]state {
	run := func(verb *verbs.Verb, gate string, status jobsv1.RunStatus, more ...any) state {
		return func(t *testing.T, key string) object {
			id := "take_steps.verb-run-" + keyOf(status) + "-" + key
			j := steps(t, id, append([]any{"gate", gate}, more...)...)
			j.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
			w.create(t, j)
			answer, err := w.c.Jobs.GetJob(t.Context(), &jobsv1.GetJobRequest{Id: id})
			require.NoError(t, err)
			name := answer.GetJob().GetState().GetRunNames()[0]
			if verb != nil {
				w.run(t, name, jobsv1.RunStatus_RUN_STATUS_RUNNING)
				_, err := verb.Do(t.Context(), w.c.Calls, verbs.To(name))
				require.NoError(t, err)
			}
			return w.run(t, name, status)
		}
	}
	return map[string]state{
		"run running":    run(nil, w.gate, jobsv1.RunStatus_RUN_STATUS_RUNNING),
		"run completed":  run(nil, "", jobsv1.RunStatus_RUN_STATUS_COMPLETED),
		"run failed":     run(nil, "", jobsv1.RunStatus_RUN_STATUS_FAILED, "fail", true),
		"run canceled":   run(verbs.CancelRun, w.gate, jobsv1.RunStatus_RUN_STATUS_CANCELED),
		"run terminated": run(verbs.TerminateRun, w.gate, jobsv1.RunStatus_RUN_STATUS_TERMINATED),
	}
}

// run is a run once it has a status.
func (w *verbWorld) run(t *testing.T, name string, status jobsv1.RunStatus) object {
	t.Helper()
	get := func(t *testing.T) *jobsv1.Run {
		answer, err := w.c.Runs.GetRun(t.Context(), &jobsv1.GetRunRequest{Name: name})
		require.NoError(t, err)
		return answer.GetRun()
	}
	stacktest.WaitFor(t, name+" to be "+status.String(), func() (bool, error) { return get(t).GetStatus() == status, nil })
	return object{name, func(t *testing.T) proto.Message {
		r := get(t)
		return &jobsv1.Run{Status: r.GetStatus(), Attempts: r.GetAttempts(), ErrorMessage: r.GetErrorMessage()}
	}}
}

// endedByClient cancels and terminates a run that has ended through the client alone, which looks only once it
// has asked: Temporal takes such a request, too.
func (w *verbWorld) endedByClient(t *testing.T) {
	name := w.runs()["run completed"](t, "client").name
	workflowID, runID, _ := strings.Cut(name, "@")
	for _, end := range []func(context.Context, client.RunRef, string) error{w.client.Runs.Cancel, w.client.Runs.Terminate} {
		err := end(t.Context(), client.RunRef{WorkflowID: workflowID, RunID: runID}, "a test")
		_, refused := errors.AsType[*client.StateError](err)
		require.True(t, refused, "%v", err)
		require.ErrorContains(t, err, "has ended already: it is completed")
	}
}

func (w *verbWorld) queues() map[string]state {
	queue := func(status jobsv1.QueueStatus, items int, then func(t *testing.T, name string)) state {
		return func(t *testing.T, key string) object {
			name := fmt.Sprintf("verb-%s-%d-%s", keyOf(status), items, key)
			w.pausedQueue(t, name)
			for n := range items {
				j := steps(t, fmt.Sprintf("take_steps.%s-%d", name, n), "fail", true)
				j.Mode = &jobsv1.Job_Queued{Queued: &jobsv1.Queued{Queue: name}}
				w.create(t, j)
			}
			if then != nil {
				then(t, name)
			}
			return w.queue(t, name, status)
		}
	}
	do := func(v *verbs.Verb) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			_, err := v.Do(t.Context(), w.c.Calls, verbs.To(name))
			require.NoError(t, err)
		}
	}
	return map[string]state{
		"empty idle":     queue(jobsv1.QueueStatus_QUEUE_STATUS_IDLE, 0, do(verbs.ResumeQueue)),
		"empty paused":   queue(jobsv1.QueueStatus_QUEUE_STATUS_PAUSED, 0, nil),
		"waiting paused": queue(jobsv1.QueueStatus_QUEUE_STATUS_PAUSED, 2, nil),
		"waiting halted": queue(jobsv1.QueueStatus_QUEUE_STATUS_HALTED, 2, do(verbs.ResumeQueue)),
		"empty drained": queue(jobsv1.QueueStatus_QUEUE_STATUS_DRAINED, 0, func(t *testing.T, name string) {
			do(verbs.ResumeQueue)(t, name)
			do(verbs.DrainQueue)(t, name)
		}),
		"waiting ended": queue(jobsv1.QueueStatus_QUEUE_STATUS_ENDED, 1, func(t *testing.T, name string) {
			require.NoError(t, w.temporal.TerminateWorkflow(t.Context(), contract.QueueWorkflowID(name), "", "a test"))
		}),
	}
}

// pausedQueue makes a queue that a failure halts, and pauses it.
func (w *verbWorld) pausedQueue(t *testing.T, name string) {
	t.Helper()
	_, err := w.c.Queues.SetQueueFailurePolicy(t.Context(), &jobsv1.SetQueueFailurePolicyRequest{Queue: name, OnFailure: jobsv1.FailurePolicy_FAILURE_POLICY_HALT})
	require.NoError(t, err)
	_, err = w.c.Queues.PauseQueue(t.Context(), &jobsv1.PauseQueueRequest{Queue: name})
	require.NoError(t, err)
}

// queue is a queue once it has a status.
func (w *verbWorld) queue(t *testing.T, name string, status jobsv1.QueueStatus) object {
	t.Helper()
	get := func(t *testing.T) *jobsv1.Queue {
		answer, err := w.c.Queues.GetQueue(t.Context(), &jobsv1.GetQueueRequest{Name: name})
		require.NoError(t, err)
		return answer.GetQueue()
	}
	stacktest.WaitFor(t, name+" to be "+status.String(), func() (bool, error) { return get(t).GetStatus() == status, nil })
	return object{name, func(t *testing.T) proto.Message {
		q := get(t)
		return &jobsv1.Queue{
			Name: q.GetName(), Status: q.GetStatus(), Waiting: q.GetWaiting(), Reason: q.GetReason(), Accepted: q.GetAccepted(), Skipped: q.GetSkipped(),
			DeadLetters: q.GetDeadLetters(), Halt: q.GetHalt(), End: q.GetEnd(),
		}
	}}
}

// endsFirst is a Temporal whose run of a job ends just before another is started.
type endsFirst struct {
	sdk.Client
	end func()
}

type endsFirstService struct {
	workflowservice.WorkflowServiceClient
	end func()
}

// WorkflowService implements sdk.Client.
func (c *endsFirst) WorkflowService() workflowservice.WorkflowServiceClient {
	return &endsFirstService{c.Client.WorkflowService(), c.end}
}

// StartWorkflowExecution implements workflowservice.WorkflowServiceClient.
func (c *endsFirstService) StartWorkflowExecution(
	ctx context.Context, in *workflowservice.StartWorkflowExecutionRequest, options ...grpc.CallOption,
) (*workflowservice.StartWorkflowExecutionResponse, error) {
	c.end()
	return c.WorkflowServiceClient.StartWorkflowExecution(ctx, in, options...)
}

// endedBetween runs a one-shot whose run ends after it was seen: the other run is told as a new one.
func (w *verbWorld) endedBetween(t *testing.T) {
	const id = "take_steps.verb-ends-between"
	j := steps(t, id, "gate", w.gate)
	j.Mode = &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}
	w.create(t, j)
	run := func(c *api.Clients) *jobsv1.RunJobResponse {
		answer, err := c.Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Id: id})
		require.NoError(t, err)
		return answer
	}
	first := run(w.c)
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_RUNNING, first.GetExistingStatus())
	temporal := &endsFirst{w.temporal, func() {
		require.NoError(t, w.temporal.TerminateWorkflow(t.Context(), contract.JobWorkflowID(id), "", "a test"))
	}}
	server := api.New(api.Config{Client: client.New(temporal, w.stack.Namespace), Types: ownTypes()})
	t.Cleanup(server.Close)
	second := run(server.InProcess())
	require.NotEqual(t, first.GetRunName(), second.GetRunName())
	require.Equal(t, jobsv1.RunStatus_RUN_STATUS_UNSPECIFIED, second.GetExistingStatus())
}
