package schedules

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// Applied reads what was applied from a provider, nothing if it never was. It
// reads the history of the record and so needs no worker.
func (s *Syncer) Applied(ctx context.Context, provider job.Provider) (contract.AppliedState, error) {
	return readApplied(ctx, s.client, provider)
}

func readApplied(ctx context.Context, c *client.Client, provider job.Provider) (contract.AppliedState, error) {
	id := contract.AppliedWorkflowID(provider)
	var state contract.AppliedState
	events := c.Temporal().GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		var notFound *serviceerror.NotFound
		if errors.As(err, &notFound) {
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

// foldApplied adds an event of an AppliedJobs workflow.
func foldApplied(state *contract.AppliedState, event *historypb.HistoryEvent) error {
	if started := event.GetWorkflowExecutionStartedEventAttributes(); started != nil {
		if started.GetWorkflowType().GetName() != contract.AppliedJobsType {
			return client.ErrNotOurs
		}
		return temporalclient.DecodeOnly(started.GetInput(), state)
	}
	signaled := event.GetWorkflowExecutionSignaledEventAttributes()
	if signaled.GetSignalName() != contract.SignalApplied {
		return nil
	}
	var record contract.AppliedRecord
	if err := temporalclient.DecodeOnly(signaled.GetInput(), &record); err != nil {
		return err
	}
	state.Take(record)
	return nil
}

// endRecord ends the record of a provider that has no jobs left. Another apply that makes
// jobs begins it anew. What that one writes at the same moment may be lost; the next apply
// finds it.
func endRecord(ctx context.Context, c *client.Client, provider job.Provider) error {
	id := contract.AppliedWorkflowID(provider)
	var notFound *serviceerror.NotFound
	err := c.Temporal().TerminateWorkflow(ctx, id, "", fmt.Sprintf("provider %s has no jobs left", provider))
	if err != nil && !errors.As(err, &notFound) {
		return fmt.Errorf("end the record of what was applied, %s: %w", id, err)
	}
	return nil
}

// recordApplied adds to what was applied from a provider. If nobody keeps the record, it
// is begun with what is known, unless there is nothing to add but what is gone: someone
// else who has removed these jobs too may have ended the record. It needs no worker.
func recordApplied(ctx context.Context, c *client.Client, provider job.Provider, known contract.AppliedState, record contract.AppliedRecord) error {
	id := contract.AppliedWorkflowID(provider)
	if len(record.Applied)+len(record.Types) == 0 {
		var notFound *serviceerror.NotFound
		err := c.Temporal().SignalWorkflow(ctx, id, "", contract.SignalApplied, record)
		if err != nil && !errors.As(err, &notFound) {
			return fmt.Errorf("record what was removed, %s: %w", id, err)
		}
		return nil
	}
	_, err := c.Temporal().SignalWithStartWorkflow(ctx, id, contract.SignalApplied, record, sdk.StartWorkflowOptions{
		TaskQueue:             contract.QueuesTaskQueue,
		StaticSummary:         fmt.Sprintf("what was applied from provider %s", provider),
		TypedSearchAttributes: temporal.NewSearchAttributes(contract.AttributeProvider.ValueSet(string(provider))),
	}, contract.AppliedJobsType, known)
	if err != nil {
		return fmt.Errorf("record what was applied, %s: %w", id, err)
	}
	return nil
}
