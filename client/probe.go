package client

import (
	"context"

	"github.com/dendrascience/dendra-jobs/contract"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/dendrascience/dendra-jobs/workflows"
)

// probe tells how the tries of a recurring job stand that was paused after
// failures; nil when it is not tried.
func (c *Client) probe(ctx context.Context, jobID string) (*contract.Probe, error) {
	id := contract.ProbeWorkflowID(jobID)
	response, err := c.temporal.DescribeWorkflowExecution(ctx, id, "")
	if isNotFound(err) {
		return nil, nil //nolint:nilnil // Documented: it is not tried.
	}
	if err != nil {
		return nil, explain("probe of job "+jobID, err)
	}
	info := response.GetWorkflowExecutionInfo()
	payload, ok := info.GetMemo().GetFields()[contract.MemoProbe]
	if !ok || info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING ||
		Attribute(info.GetSearchAttributes(), contract.AttributeJobID.GetName()) != jobID {
		return nil, nil //nolint:nilnil // It has ended, or is someone else's.
	}
	var probe contract.Probe
	if err := decode(payload, &probe); err != nil {
		return nil, explain("probe of job "+jobID, err)
	}
	return &probe, nil
}

// wakeProbe has a job's probe look at its schedule, which was paused and has been
// changed: it then ends at once and not at its next try. Nothing is lost if it
// cannot be told.
func (c *Client) wakeProbe(ctx context.Context, before *Live) {
	if !before.Paused {
		return
	}
	id := contract.ProbeWorkflowID(before.Job.ID)
	_ = c.temporal.SignalWorkflow(ctx, id, "", workflows.SignalProbe, workflows.ProbeNews{})
}
