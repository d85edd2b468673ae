package integration_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// site is a namespace with a platform and a job that reconciles.
type site struct {
	*testing.T
	stack    *stacktest.Stack
	platform *reconciletest.Platform
	client   *client.Client
	jobs     job.Jobs
	ledger   ledger
}

func newSite(t *testing.T) *site {
	t.Helper()
	st := stacktest.StartNamespace(t)
	c := client.New(st.Dial(t), st.Namespace)
	return &site{T: t, stack: st, platform: reconciletest.New(t), client: c, jobs: schedules.NewJobs(c), ledger: ledger{workertest.NewBook(t)}}
}

// reconcileJobs starts a job that looks at everything every second, beside others that
// come from the same jobs file.
func (s *site) reconcileJobs(others ...job.Job) job.Job {
	s.Helper()
	j := jobtest.NewJob(integration.ReconcileJobs(nil), "main", job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}},
		map[string]string{"window": "PT1S"})
	j.Options.HeartbeatTimeout = job.Duration(4 * time.Second)
	_, err := s.jobs.Apply(s.Context(), job.Set{Provider: job.ProviderTOML, Jobs: append(others, j)})
	require.NoError(s, err)
	return j
}

// once reconciles in the test's own process, and gives the changes.
func (s *site) once(dryRun bool) []string {
	s.Helper()
	outcomes := make(chan reconcile.Outcome, 1000)
	_, err := reconcile.New(s.jobs, reconcile.NewPlatform(s.platform.Client), func(o reconcile.Outcome) { outcomes <- o }).Once(s.Context(), dryRun)
	require.NoError(s, err)
	close(outcomes)
	changes := []string{}
	for outcome := range outcomes {
		for _, change := range outcome.Changes {
			changes = append(changes, string(change.Action)+" "+change.JobID)
		}
	}
	slices.Sort(changes)
	return changes
}

func (s *site) waitForCondition(config string, reason reconcile.Reason) {
	s.Helper()
	stacktest.WaitFor(s, fmt.Sprintf("condition %s of config %s", reason, config), func() (bool, error) {
		return s.platform.Condition(config, "Scheduled").GetReason() == string(reason), nil
	})
}

// ended says how a continuous job has ended.
func (s *site) ended(jobID string) enumspb.WorkflowExecutionStatus {
	s.Helper()
	live, err := s.client.Jobs.LiveWorkflow(s.Context(), jobID)
	require.NoError(s, err)
	require.NotNil(s, live)
	return live.Workflow.Status
}

// iterations waits for some more iterations of a continuous job.
func (s *site) iterations(j job.Job, more int64) {
	s.Helper()
	least := int64(-1)
	workertest.WaitLoop(s, s.client, j.ID, fmt.Sprintf("%d more iterations", more), func(state *contract.ContinuousState) bool {
		if least < 0 {
			least = state.Iterations + more
		}
		return state.Iterations >= least
	})
}

// Configs that are enabled get their jobs, those of others go, and neither a broken
// config nor a job of another provider keeps the rest from it.
func TestJobsOfConfigsComeAndGo(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	startWorker(t, s.stack, s.platform.Config, s.ledger)
	theirs := job.Job{
		ID: reconcile.OrchestratorID("taken"), Type: reconcile.OrchestratorType, Worker: job.WorkerBackend, Spec: []byte(`{"config_id":"theirs"}`),
		Trigger: job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Hour)}}, Options: job.DefaultOptions(job.ModeContinuous),
	}
	theirs.Options.Paused = true
	reconciling := s.reconcileJobs(theirs)
	var before *client.Live
	stacktest.WaitFor(t, "the other provider's job to be paused", func() (_ bool, err error) {
		before, err = s.client.Jobs.LiveWorkflow(t.Context(), theirs.ID)
		return before != nil && before.Paused, err
	})

	s.platform.Enable("a", "b", "taken")
	for _, config := range []string{"a", "b"} {
		s.ledger.WaitFor(t, "orchestrator of "+config, 1)
		s.ledger.WaitFor(t, "work of "+config, 1)
		s.waitForCondition(config, reconcile.ReasonApplied)
	}
	s.waitForCondition("taken", reconcile.ReasonBlocked)

	s.platform.Disable("a")
	s.waitForCondition("a", reconcile.ReasonDisabled)
	var lines []string
	for _, entry := range s.ledger.Read(t) {
		lines = append(lines, entry.What)
	}
	first, second := slices.Index(lines, "orchestrator stopped of a"), slices.Index(lines, "work stopped of a")
	require.True(t, 0 <= first && first < second, "the orchestrator first, both gracefully: %v", lines)
	require.NotContains(t, lines, "orchestrator stopped of b")
	require.NotContains(t, lines, "work stopped of b")
	for _, id := range []string{reconcile.OrchestratorID("a"), "work_for_config.a"} {
		require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, s.ended(id))
	}

	s.platform.Enable("a")
	s.ledger.WaitFor(t, "work of a", 2)
	s.platform.Disable("taken")
	s.waitForCondition("taken", reconcile.ReasonDisabled)
	after, err := s.client.Jobs.LiveWorkflow(t.Context(), theirs.ID)
	require.NoError(t, err)
	require.Equal(t, before, after, "the other provider's job is as it was")

	// When all is in line, nothing is done and nothing is written.
	s.waitForCondition("a", reconcile.ReasonApplied)
	stacktest.WaitFor(t, "nothing to do", func() (bool, error) { return len(s.once(true)) == 0, nil })
	require.Empty(t, s.once(false))
	etags, started := s.platform.Etags(), s.workflows("WorkflowType = 'ContinuousJob'")
	s.iterations(reconciling, 2)
	require.Equal(t, etags, s.platform.Etags())
	require.Equal(t, started, s.workflows("WorkflowType = 'ContinuousJob'"))
	require.Equal(t, 1, s.ledger.Count(t, "orchestrator of b"))
	require.Equal(t, 2, s.ledger.Count(t, "orchestrator of a"))

	s.platform.Remove("a", "b")
	for _, config := range []string{"a", "b"} {
		s.ledger.WaitFor(t, "work stopped of "+config, 1)
	}
	s.orchestrated()
}

// workflows counts those that a query finds.
func (s *site) workflows(query string) int64 {
	s.Helper()
	answer, err := s.client.Temporal().CountWorkflow(s.Context(), &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: s.stack.Namespace, Query: query,
	})
	require.NoError(s, err)
	return answer.GetCount()
}

// orchestrated waits until these are the configs that have jobs.
func (s *site) orchestrated(configs ...string) {
	s.Helper()
	want := []string{}
	for _, config := range configs {
		want = append(want, reconcile.OrchestratorID(config))
	}
	slices.Sort(want)
	stacktest.WaitFor(s, fmt.Sprintf("the jobs of %d configs", len(configs)), func() (bool, error) {
		found, err := s.jobs.Find(s.Context(), job.Filter{Provider: job.ProviderIntegration})
		ids := []string{}
		for _, f := range found {
			ids = append(ids, f.ID)
		}
		return slices.Equal(ids, want), err
	})
}

// TestAReconcileThatIsKilledIsCompleted kills the worker while configs come and while
// they go, at a random number of changes.
func TestAReconcileThatIsKilledIsCompleted(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	s := newSite(t)
	const count = 60
	var configs []string
	for n := range count {
		configs = append(configs, fmt.Sprintf("%s%02d", quick, n))
	}
	s.platform.Enable(configs...)
	s.reconcileJobs()
	worker := startWorker(t, s.stack, s.platform.Config, s.ledger)
	s.ledger.WaitFor(t, quick, 1+random.IntN(count/2))
	worker.Kill()
	worker = startWorker(t, s.stack, s.platform.Config, s.ledger)
	s.orchestrated(configs...)
	stacktest.WaitFor(t, "all workflows in the list", func() (bool, error) {
		return s.workflows("WorkflowType = 'ContinuousJob' AND JobProvider = 'integration'") >= count, nil
	})
	require.EqualValues(t, count, s.workflows("WorkflowType = 'ContinuousJob' AND JobProvider = 'integration'"), "none was started twice")

	gone, kept := configs[:count/2], configs[count/2:]
	s.platform.Disable(gone...)
	least := int64(1 + random.IntN(len(gone)/2))
	stacktest.WaitFor(t, fmt.Sprintf("%d jobs to end", least), func() (bool, error) {
		return s.workflows("WorkflowType = 'ContinuousJob' AND JobProvider = 'integration' AND ExecutionStatus = 'Completed'") >= least, nil
	})
	worker.Kill()
	startWorker(t, s.stack, s.platform.Config, s.ledger)
	s.orchestrated(kept...)
	for _, config := range gone {
		s.waitForCondition(config, reconcile.ReasonDisabled)
		require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, s.ended(reconcile.OrchestratorID(config)), config)
	}
	// The worker that was killed may not have told the platform of all.
	stacktest.WaitFor(t, "nothing to do", func() (bool, error) { return len(s.once(true)) == 0, nil })
	stacktest.WaitFor(t, "the record of what is applied", func() (bool, error) {
		applied, err := schedules.New(s.client).Applied(t.Context(), job.ProviderIntegration)
		return len(applied.Jobs) == len(kept), err
	})
}
