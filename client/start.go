package client

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/internal/tracing"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/wording"
)

// Start starts a run of a job at once. If a run of the job with the same spec
// is under way, that one is given instead; with another spec is an error.
func (c *RunClient) Start(ctx context.Context, j job.Job, by contract.StartedBy) (RunRef, error) {
	return c.StartAt(ctx, j, by, StartOptions{})
}

// StartOptions say how a run is started.
type StartOptions struct {
	// At is when the run begins. At a time that is past, or none, it begins at once. Until
	// then the run is [RunWaiting]. If one waits already for another time, it is an error.
	At time.Time
	// RequestID is that of a request that may be made several times: the same one starts
	// no second run, not even when the first has ended. Defaults to a new one.
	RequestID string
	// First starts no run of a job that has one, however that ended: it is given instead.
	// It knows the runs of the namespace's retention.
	First bool
}

// StartAt is Start with options.
func (c *RunClient) StartAt(ctx context.Context, j job.Job, by contract.StartedBy, options StartOptions) (RunRef, error) {
	s := start{
		workflowType: contract.RunJobType, requestID: options.RequestID,
		input: contract.RunInput{Job: j, StartedBy: by},
		delay: max(time.Until(options.At), 0),
	}
	if options.First {
		s.reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	}
	ref, err := c.start(ctx, j, s)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		ref, _, err := c.holder(ctx, j, options.At)
		return ref, err
	}
	return ref, explain("start job "+j.ID, err)
}

// Once is the run that StartOnce gives.
type Once struct {
	RunRef
	// ExistedBefore says that the run was there already: it is under way, or has completed.
	ExistedBefore bool
	// Status is how it stood.
	Status RunStatus
}

// ErrOtherSpec says that a job's id stands for other work: it has run with another
// spec.
var ErrOtherSpec = errors.New("it has another spec")

// StartOnce starts a run of a one-shot unless one with the same spec is under way
// or has completed, which is given instead: however often and by however many it is
// called, the work is done once. A run that failed, was canceled, terminated or
// timed out is started again. With another spec than that of the latest run it
// gives [ErrOtherSpec], however that ended. It knows the runs of the namespace's
// retention. The time is that of [StartOptions].
func (c *RunClient) StartOnce(ctx context.Context, j job.Job, by contract.StartedBy, at time.Time) (Once, error) {
	live, err := c.jobs().LiveWorkflow(ctx, j.ID)
	if err != nil {
		return Once{}, err
	}
	if live != nil {
		if err := live.CheckSpec(j); err != nil {
			return Once{}, err
		}
	}
	ref, err := c.start(ctx, j, start{
		workflowType: contract.RunJobType, reuse: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
		input: contract.RunInput{Job: j, StartedBy: by},
		delay: max(time.Until(at), 0),
	})
	if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return Once{RunRef: ref, Status: RunRunning}, explain("start job "+j.ID, err)
	}
	ref, live, err = c.holder(ctx, j, at)
	if err != nil {
		return Once{}, err
	}
	return Once{RunRef: ref, ExistedBefore: true, Status: runStatus(live.Workflow.Status)}, nil
}

// StartContinuous starts a continuous job. One that was stopped or canceled goes on at its
// cursor; one that was deleted begins anew. One that runs with the same definition is left
// alone; with another, or someone else's, is an error.
func (c *JobClient) StartContinuous(ctx context.Context, j job.Job) error {
	state := contract.NewContinuousState(j)
	var err error
	if state.Cursor, err = c.lastCursor(ctx, j); err != nil {
		return err
	}
	_, err = c.start(ctx, j, start{workflowType: contract.ContinuousJobType, input: state})
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		_, _, err = c.holder(ctx, j, time.Time{})
		return err
	}
	return explain("start job "+j.ID, err)
}

// start says how to start a workflow of a job.
type start struct {
	// workflowID defaults to the one that the job's id names.
	workflowID   string
	workflowType string
	requestID    string // defaults to a new one
	input        any
	delay        time.Duration
	retryOf      string                        // a run id
	reuse        enumspb.WorkflowIdReusePolicy // defaults to a start after every end
}

// start starts a workflow of a job. It is the call itself and not the SDK's
// function, since that cannot be given a request id.
func (c *conn) start(ctx context.Context, j job.Job, s start) (_ RunRef, err error) {
	ctx, end := tracing.Span(ctx, "StartWorkflow:"+s.workflowType, "dendra.job_id", j.ID, "dendra.job_type", j.Type)
	defer func() { end(err) }()
	if err := c.checkBind(ctx, j); err != nil {
		return RunRef{}, err
	}
	if s.requestID == "" {
		s.requestID = newRequestID()
	}
	m, err := temporalclient.JobMetadata(j)
	if err != nil {
		return RunRef{}, err
	}
	input, err := temporalclient.EncodePayload(s.input)
	if err != nil {
		return RunRef{}, err
	}
	if s.retryOf != "" {
		if m.Memo.Fields[contract.MemoRetryOf], err = temporalclient.EncodePayload(s.retryOf); err != nil {
			return RunRef{}, err
		}
	}
	if s.workflowID == "" {
		s.workflowID = contract.JobWorkflowID(j.ID)
	}
	request := &workflowservice.StartWorkflowExecutionRequest{
		Namespace:    c.namespace,
		WorkflowId:   s.workflowID,
		WorkflowType: &commonpb.WorkflowType{Name: s.workflowType},
		TaskQueue:    &taskqueuepb.TaskQueue{Name: contract.TaskQueue(j.Worker), Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Input:        &commonpb.Payloads{Payloads: []*commonpb.Payload{input}},
		Identity:     c.identity,
		RequestId:    s.requestID,

		WorkflowIdReusePolicy:    s.reuse,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,

		Memo: m.Memo, SearchAttributes: m.SearchAttributes, UserMetadata: m.UserMetadata,

		Header: temporalclient.Header(ctx),
	}
	if s.reuse == enumspb.WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED {
		request.WorkflowIdReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	if s.delay > 0 {
		request.WorkflowStartDelay = durationpb.New(s.delay)
	}
	response, err := call(ctx, c, c.temporal.WorkflowService().StartWorkflowExecution, request)
	if err != nil {
		return RunRef{}, err
	}
	return RunRef{WorkflowID: s.workflowID, RunID: response.GetRunId()}, nil
}

// newRequestID names a request, so that making it again is harmless.
func newRequestID() string { return strings.ToLower(ulid.Make().String()) }

// holder gives the workflow that holds a job's id, if it is the job's own, has the
// definition j, and begins when it should.
func (c *conn) holder(ctx context.Context, j job.Job, at time.Time) (RunRef, *Live, error) {
	live, err := c.jobs().LiveWorkflow(ctx, j.ID)
	if err != nil {
		return RunRef{}, nil, err
	}
	hash, err := j.DefinitionHash()
	if err != nil {
		return RunRef{}, nil, err
	}
	if live == nil || live.DefinitionHash != hash {
		return RunRef{}, nil, stateErrorf("job %s runs with another definition now; try again when that has ended", j.ID)
	}
	if begins := live.Workflow.Begins; begins.After(time.Now()) && begins.Sub(at).Abs() > sameStart {
		return RunRef{}, nil, stateErrorf("job %s waits until %s already; cancel that run first", j.ID, wording.Stamp(begins))
	}
	return RunRef{WorkflowID: contract.JobWorkflowID(j.ID), RunID: live.Workflow.RunID}, live, nil
}

// sameStart is how far apart two starts may be that were asked for the same time:
// the server counts the delay from when it gets the request.
const sameStart = 2 * time.Second
