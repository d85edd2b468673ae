package client

import (
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/contract"
)

// queryState asks a workflow for its state until ctx ends; a run of "" is the latest. It gives
// nil if the workflow has ended, unless ended ones are asked as well.
//
// The SDK gives a query half of the time that is left, and does not ask again. A workflow task
// that is lost would then not be given out anew in time. A busy server may also give up a query,
// which it calls canceled.
func queryState[T any](ctx context.Context, c *conn, workflowID, runID string, ended bool) (*T, error) {
	request := &sdk.QueryWorkflowWithOptionsRequest{
		WorkflowID: workflowID, RunID: runID, QueryType: contract.QueryState,
		QueryRejectCondition: enumspb.QUERY_REJECT_CONDITION_NOT_OPEN,
	}
	if ended {
		request.QueryRejectCondition = enumspb.QUERY_REJECT_CONDITION_NONE
	}
	for try := 1; ; try++ {
		answer, err := c.temporal.QueryWorkflowWithOptions(ctx, request)
		var late *serviceerror.DeadlineExceeded
		var givenUp *serviceerror.Canceled
		switch {
		case err == nil && answer.QueryRejected != nil:
			return nil, nil //nolint:nilnil // Documented: it has ended.
		case err == nil:
			state := new(T)
			return state, answer.QueryResult.Get(state)
		case !errors.As(err, &late) && !errors.As(err, &givenUp) && !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		case pause(ctx, callBackoff.Wait(try)) != nil:
			return nil, err
		}
	}
}
