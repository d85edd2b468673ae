package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
)

// maxRecordsPerRun bounds the history of a run of AppliedJobs.
const maxRecordsPerRun = 500

// AppliedJobs remembers which jobs of a provider were applied and as what. It
// does nothing with them: its history is the record, which can be read and added
// to while no worker is alive, and it runs only to keep that history short.
func AppliedJobs(ctx workflow.Context, state contract.AppliedState) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // A cancel request must not lose the record.
	records := workflow.GetSignalChannel(ctx, contract.SignalApplied)
	for n := 0; n < maxRecordsPerRun && !mustContinueAsNew(ctx); n++ {
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("%d jobs are applied", len(state.Jobs)))
		if err := workflow.Await(ctx, func() bool { return records.Len() > 0 || mustContinueAsNew(ctx) }); err != nil {
			return err
		}
		var record contract.AppliedRecord
		if records.ReceiveAsync(&record) {
			state.Take(record)
		}
	}
	for {
		var record contract.AppliedRecord
		if !records.ReceiveAsync(&record) {
			return continueAsNew(ctx, contract.AppliedJobsType, state)
		}
		state.Take(record)
	}
}
