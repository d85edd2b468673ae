package workflows_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

func TestAppliedJobsCarriesItsRecordsOn(t *testing.T) {
	t.Parallel()
	record := func(n int) contract.AppliedRecord {
		record := contract.AppliedRecord{Applied: map[string]contract.AppliedJob{
			fmt.Sprintf("a.%d", n%20): {Mode: job.ModeContinuous, Hash: fmt.Sprint(n)},
		}}
		if n%7 == 0 {
			record.Removed = []string{fmt.Sprintf("a.%d", n%5)}
		}
		return record
	}
	start := func() contract.AppliedState {
		return contract.AppliedState{Records: 3, Jobs: map[string]contract.AppliedJob{"a.old": {Mode: job.ModeOneShot, Hash: "0"}}}
	}
	const records = 700 // more than a run takes one by one
	want := start()
	for n := range records {
		want.Take(record(n))
	}
	env := newEnvironment(t, succeed)
	env.RegisterDelayedCallback(func() {
		for n := range records {
			env.SignalWorkflow(contract.SignalApplied, record(n))
		}
	}, 0)
	env.ExecuteWorkflow(contract.AppliedJobsType, start())
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &next)
	var carried contract.AppliedState
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &carried))
	require.Equal(t, want, carried)
	require.EqualValues(t, records+3, carried.Records)
	require.Contains(t, carried.Jobs, "a.old")
}
