package control

import (
	"context"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// StartRun starts a run of a job at once. If a run of the job with the same spec
// is under way, that one is given instead; with another spec is an error.
func (c *Client) StartRun(ctx context.Context, j job.Job, trigger workflows.Trigger) (RunRef, error) {
	return c.StartRunOnce(ctx, j, trigger, newRequestID())
}

// StartRunOnce is StartRun for a request that may be made several times: the same
// request id starts no second run, not even when the first has ended.
func (c *Client) StartRunOnce(ctx context.Context, j job.Job, trigger workflows.Trigger, requestID string) (RunRef, error) {
	in := workflows.RunInput{Job: j, Trigger: trigger}
	ref, err := c.start(ctx, j, workflows.RunJobType, in, requestID)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return c.sameDefinition(ctx, j)
	}
	return ref, explain("start job "+j.ID, err)
}

// StartContinuous starts the loop of a continuous job. A loop that runs with the
// same definition is left alone; with another, or someone else's, is an error.
func (c *Client) StartContinuous(ctx context.Context, j job.Job) error {
	_, err := c.start(ctx, j, workflows.ContinuousJobType, workflows.NewContinuousState(j), newRequestID())
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		_, err = c.sameDefinition(ctx, j)
		return err
	}
	return explain("start job "+j.ID, err)
}

// start starts a workflow that a job's id names. It is the call itself and not
// the SDK's function, since that cannot be given a request id.
func (c *Client) start(ctx context.Context, j job.Job, workflowType string, in any, requestID string) (RunRef, error) {
	m, err := marksOf(j)
	if err != nil {
		return RunRef{}, err
	}
	input, err := encode(in)
	if err != nil {
		return RunRef{}, err
	}
	id := workflows.JobWorkflowID(j.ID)
	response, err := call(ctx, c.temporal.WorkflowService().StartWorkflowExecution, &workflowservice.StartWorkflowExecutionRequest{
		Namespace:    c.namespace,
		WorkflowId:   id,
		WorkflowType: &commonpb.WorkflowType{Name: workflowType},
		TaskQueue:    &taskqueuepb.TaskQueue{Name: workflows.TaskQueue(j.Worker), Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Input:        &commonpb.Payloads{Payloads: []*commonpb.Payload{input}},
		Identity:     c.identity,
		RequestId:    requestID,

		WorkflowIdReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,

		Memo: m.memo, SearchAttributes: m.attributes, UserMetadata: m.metadata,
	})
	if err != nil {
		return RunRef{}, err
	}
	return RunRef{WorkflowID: id, RunID: response.GetRunId()}, nil
}

func newRequestID() string { return strings.ToLower(ulid.Make().String()) }

// sameDefinition gives the workflow that holds a job's id, if it is the job's own
// and has the definition j.
func (c *Client) sameDefinition(ctx context.Context, j job.Job) (RunRef, error) {
	live, err := c.LiveWorkflow(ctx, j.ID)
	if err != nil {
		return RunRef{}, err
	}
	hash, err := j.SpecHash()
	if err != nil {
		return RunRef{}, err
	}
	if live == nil || live.SpecHash != hash {
		return RunRef{}, fmt.Errorf("job %s runs with another definition now; try again when that has ended", j.ID)
	}
	return RunRef{WorkflowID: workflows.JobWorkflowID(j.ID), RunID: live.Workflow.RunID}, nil
}
