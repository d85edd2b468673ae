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
	records := workflow.GetSignalChannel(ctx, contract.SignalApplied)
	for n := 0; n < maxRecordsPerRun && !workflow.GetInfo(ctx).GetContinueAsNewSuggested(); n++ {
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("%d jobs are applied", len(state.Jobs)))
		var record contract.AppliedRecord
		records.Receive(ctx, &record)
		state.Take(record)
	}
	for {
		var record contract.AppliedRecord
		if !records.ReceiveAsync(&record) {
			return workflow.NewContinueAsNewError(ctx, contract.AppliedJobsType, state)
		}
		state.Take(record)
	}
}
