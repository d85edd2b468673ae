package orchestrate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/orchestrate"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func TestStagesOfJobTypes(t *testing.T) {
	t.Parallel()
	found := map[orchestrate.Stage][]string{}
	for _, typ := range activities.Types() {
		stage := orchestrate.StageOf(job.ID(typ.Name, "key"))
		if stage != orchestrate.StageOther {
			found[stage] = append(found[stage], typ.Name)
		}
	}
	require.Equal(t, map[orchestrate.Stage][]string{
		orchestrate.StageExtract: {"ExtractHoboTimeFrame", "ExtractCampbellScientificLdmp"},
		orchestrate.StagePrepare: {"PrepareHoboTimeFrame", "PrepareCampbellScientificLdmp"},
		orchestrate.StageLoad:    {"LiveLoadInfluxV1", "PostToArchive"},
	}, found)
}

// orderedJobs note the order of changes.
type orderedJobs struct {
	*jobtest.Jobs
	order []string
}

func (o *orderedJobs) Apply(ctx context.Context, set job.Set) (job.Applied, error) {
	applied, err := o.Jobs.Apply(ctx, set)
	for _, change := range applied.Changes {
		if !set.DryRun && change.Err == nil {
			o.order = append(o.order, string(change.Action)+" "+change.JobID)
		}
	}
	return applied, err
}

func TestStagesGoInTheOrderOfThePipeline(t *testing.T) {
	t.Parallel()
	jobs := &orderedJobs{Jobs: jobtest.NewJobs()}
	plan := planner().Plan(input(account(t), station(t, "a", "-08:00", "live")))
	const (
		extract = "extract_campbell_scientific_ldmp.ldmp"
		prepare = "prepare_campbell_scientific_ldmp.ldmp"
		load    = "live_load_influx_v1.ldmp"
	)
	jobs.Fail(prepare, errors.New("not now"))
	applied, err := plan.Apply(t.Context(), jobs, "ldmp")
	require.ErrorContains(t, err, "not now")
	require.Len(t, applied.Changes, 3)
	require.Equal(t, []string{"create " + load, "create " + extract}, jobs.order, "what fails holds up no other")
	jobs.Fail(prepare, nil)
	_, err = plan.Apply(t.Context(), jobs, "ldmp")
	require.NoError(t, err)

	jobs.order = nil
	jobs.Fail(prepare, errors.New("not now"))
	gone := job.Set{Provider: job.IntegrationProvider("ldmp")}
	_, err = orchestrate.Apply(t.Context(), jobs, gone)
	require.Error(t, err)
	require.Equal(t, []string{"delete " + extract}, jobs.order, "what comes after waits")
	jobs.Fail(prepare, nil)
	_, err = orchestrate.Apply(t.Context(), jobs, gone)
	require.NoError(t, err)
	require.Equal(t, []string{"delete " + extract, "delete " + prepare, "delete " + load}, jobs.order)
	applied, err = orchestrate.Apply(t.Context(), jobs, gone)
	require.NoError(t, err)
	require.Empty(t, applied.Changes)
}
