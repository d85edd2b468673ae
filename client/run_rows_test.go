package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

func endedRun(t *testing.T, status enumspb.WorkflowExecutionStatus, end contract.RunEnd) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	payload, err := temporalclient.EncodePayload(end)
	require.NoError(t, err)
	return &workflowpb.WorkflowExecutionInfo{
		Status: status, Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{contract.MemoEnd: payload}},
	}
}

// A run that did nothing has a status of its own, whatever its workflow has. A filter by
// a status finds it, and no other.
func TestStatusesOfRunsThatDidNothing(t *testing.T) {
	t.Parallel()
	const completed, canceled = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	other := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		status enumspb.WorkflowExecutionStatus
		end    contract.RunEnd
		want   client.RunStatus
	}{
		"completed":                    {completed, contract.RunEnd{}, client.RunCompleted},
		"canceled":                     {canceled, contract.RunEnd{}, client.RunCanceled},
		"held back":                    {canceled, contract.RunEnd{HeldUntil: other}, client.RunHeldBack},
		"superseded":                   {completed, contract.RunEnd{SupersededBy: other}, client.RunSuperseded},
		"superseded, of a failing job": {canceled, contract.RunEnd{SupersededBy: other}, client.RunSuperseded},
	} {
		info := endedRun(t, c.status, c.end)
		require.Equal(t, c.want, client.NewRun(info).Status, name)
		for _, status := range client.RunStatuses() {
			require.Equal(t, status == c.want, client.Matches(client.RunFilter{Status: status}, info), "%s by status %s", name, status)
		}
		require.True(t, client.Matches(client.RunFilter{}, info), name)
		require.True(t, client.Matches(client.RunFilter{Statuses: []client.RunStatus{client.RunFailed, c.want}}, info), name)
	}
}
