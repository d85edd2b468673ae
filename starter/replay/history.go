package replay

import (
	"context"
	"errors"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
)

// history reads a history, nil if the server has it no more, or if no code has seen it yet.
func (r *replayer) history(ctx context.Context, execution *commonpb.WorkflowExecution) (*historypb.History, error) {
	events := r.client.GetWorkflowHistory(ctx, execution.GetWorkflowId(), execution.GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	history, seen := &historypb.History{}, false
	for events.HasNext() {
		event, err := events.Next()
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			return nil, nil //nolint:nilnil // Documented: the server has it no more.
		}
		if err != nil {
			return nil, err
		}
		history.Events = append(history.Events, event)
		seen = seen || event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
	}
	if !seen {
		return nil, nil //nolint:nilnil // Documented: no code has seen it.
	}
	return history, nil
}
