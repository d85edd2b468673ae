package client

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// Applied reads what was applied from a provider, nothing if it never was. It
// reads the history of the record and so needs no worker.
func (c *JobClient) Applied(ctx context.Context, provider job.Provider) (contract.AppliedState, error) {
	id := contract.AppliedWorkflowID(provider)
	var state contract.AppliedState
	events := c.temporal.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if isNotFound(err) {
			return state, nil
		}
		if err == nil {
			err = foldApplied(&state, event)
		}
		if err != nil {
			return state, fmt.Errorf("what was applied, %s: %w", id, err)
		}
	}
	return state, nil
}

// foldApplied takes what an event of an AppliedJobs workflow tells.
func foldApplied(state *contract.AppliedState, event *historypb.HistoryEvent) error {
	if started := event.GetWorkflowExecutionStartedEventAttributes(); started != nil {
		if started.GetWorkflowType().GetName() != contract.AppliedJobsType {
			return ErrNotOurs
		}
		return decodeOnly(started.GetInput(), state)
	}
	signaled := event.GetWorkflowExecutionSignaledEventAttributes()
	if signaled.GetSignalName() != contract.SignalApplied {
		return nil
	}
	var record contract.AppliedRecord
	if err := decodeOnly(signaled.GetInput(), &record); err != nil {
		return err
	}
	state.Take(record)
	return nil
}

func decodeOnly(payloads *commonpb.Payloads, into any) error {
	if len(payloads.GetPayloads()) != 1 {
		return errors.New("an event of an unknown form")
	}
	return decode(payloads.GetPayloads()[0], into)
}

// Record adds to what was applied from a provider. If nobody keeps the record, it
// is begun with what is known. It needs no worker.
func (c *JobClient) Record(ctx context.Context, provider job.Provider, known contract.AppliedState, record contract.AppliedRecord) error {
	id := contract.AppliedWorkflowID(provider)
	_, err := c.temporal.SignalWithStartWorkflow(ctx, id, contract.SignalApplied, record, sdk.StartWorkflowOptions{
		TaskQueue:             contract.QueuesTaskQueue,
		StaticSummary:         fmt.Sprintf("what was applied from provider %s", provider),
		TypedSearchAttributes: temporal.NewSearchAttributes(contract.AttributeProvider.ValueSet(string(provider))),
	}, contract.AppliedJobsType, known)
	return explain("record what was applied, "+id, err)
}
