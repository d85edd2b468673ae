package client

import (
	"context"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// A Schedule cannot resume itself. So each pause with an end has a workflow that begins at the
// end and resumes the job, if it is still that pause.

// timePause starts the workflow that ends a pause of a recurring job.
func (c *conn) timePause(ctx context.Context, jobID string, end time.Time) error {
	input, err := temporalclient.EncodePayload(contract.EndPauseInput{JobID: jobID, End: end})
	if err != nil {
		return err
	}
	_, err = call(ctx, c, c.temporal.WorkflowService().StartWorkflowExecution, &workflowservice.StartWorkflowExecutionRequest{
		Namespace: c.namespace, WorkflowId: contract.EndPauseWorkflowID(jobID, end), RequestId: newRequestID(), Identity: c.identity,
		WorkflowType:       &commonpb.WorkflowType{Name: contract.EndPauseType},
		TaskQueue:          &taskqueuepb.TaskQueue{Name: contract.QueuesTaskQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Input:              &commonpb.Payloads{Payloads: []*commonpb.Payload{input}},
		WorkflowStartDelay: durationpb.New(max(time.Until(end), 0)),
		// Another caller may have paused the job until then too.
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		Header:                   temporalclient.Header(ctx),
	})
	return explain("time the pause of job "+jobID, err)
}
