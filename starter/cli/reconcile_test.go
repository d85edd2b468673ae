package cli_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

// startOrchestrators runs a worker whose orchestrators do nothing.
func startOrchestrators(t *testing.T, st *stacktest.Stack) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- workers.Run(ctx, workers.Config{
			Logger:   slog.New(slog.DiscardHandler),
			Temporal: temporalclient.Settings{Address: st.Temporal, Namespace: st.Namespace},
			Types: []job.Type{job.NewType(reconcile.OrchestratorType, job.WorkerBackend, "Does nothing.",
				func(context.Context, job.Run, reconcile.OrchestratorSpec) (job.Result, error) {
					return job.Result{}, nil
				})},
			Worker: job.WorkerBackend,
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
}

// pausedLoop starts a continuous job that is paused.
func pausedLoop(t *testing.T, c *client.Client, id, typeName string, spec any) {
	t.Helper()
	j := job.Job{
		ID: id, Type: typeName, Worker: job.WorkerBackend, Provider: job.ProviderAPI, Spec: job.EncodeJSON(spec),
		Trigger: job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Hour)}}, Options: job.DefaultOptions(job.ModeContinuous),
	}
	j.Options.Paused = true
	require.NoError(t, c.Jobs.StartContinuous(t.Context(), j))
	stacktest.WaitFor(t, id+" in the list", func() (bool, error) {
		found, err := c.Jobs.Find(t.Context(), job.Filter{Type: typeName})
		return len(found) == 1, err
	})
}

// reconcileReport is what reconcile gives with -o json.
type reconcileReport struct {
	DryRun  bool `json:"dry_run"`
	Enabled int  `json:"enabled_configs"`
	Configs []struct {
		Config  string
		Changes []struct {
			Action, Note, Error string
			JobID               string `json:"job_id"`
		}
		Error string
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	startOrchestrators(t, st)
	server, c := reconciletest.New(t), console{address: st.Temporal, namespace: st.Namespace}
	r := c.run(t.Context(), "reconcile")
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: DENDRA_PLATFORM_URL is not set: it is the URL of the Platform API\nstarter: DENDRA_PLATFORM_TOKEN is not set\n", r.stderr)
	c.env = map[string]string{platform.EnvURL: server.URL, platform.EnvToken: server.Token}

	temporal := client.New(st.Dial(t), st.Namespace)
	pausedLoop(t, temporal, "orchestrate_integration.taken", reconcile.OrchestratorType, map[string]string{"config_id": "taken"})
	server.Enable("a", "b", "taken")
	const blocked = "a job of provider api has this id: stop or delete that one first"
	plan := `+ orchestrate_integration.a  config a
+ orchestrate_integration.b  config b
! orchestrate_integration.taken  config taken  ` + blocked + `

Plan for namespace ` + st.Namespace + `: 2 to create, 0 to update, 0 to delete, 1 blocked; 3 configs are enabled.
`
	failed := "starter: config taken: job orchestrate_integration.taken cannot be applied: " + blocked + "\n"
	r = c.run(t.Context(), "reconcile", "--dry-run")
	require.Equal(t, 1, r.code)
	require.Equal(t, plan, r.stdout)
	require.Equal(t, failed, r.stderr)
	require.Nil(t, server.Condition("a", "Scheduled"))

	r = c.run(t.Context(), "reconcile")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stdout, plan+"Reconciled: 2 created, 0 updated, 0 deleted in ")
	require.Contains(t, r.stderr, "created orchestrate_integration.a\n")
	require.Contains(t, r.stderr, failed)

	server.Disable("taken", "b")
	var report reconcileReport
	stacktest.WaitFor(t, "the jobs in lists", func() (bool, error) {
		report = decoded[reconcileReport](t, c, "reconcile", "--dry-run")
		return len(report.Configs) == 2, nil
	})
	require.True(t, report.DryRun)
	require.Equal(t, 1, report.Enabled)
	require.Equal(t, "delete", report.Configs[0].Changes[0].Action)
	require.Equal(t, "orchestrate_integration.b", report.Configs[0].Changes[0].JobID)
	require.Empty(t, report.Configs[1].Changes, "only its condition is to be written")

	require.Contains(t, c.ok(t, "reconcile"), "Reconciled: 0 created, 0 updated, 1 deleted in ")
	nothing := fmt.Sprintf("Plan for namespace %s: 0 to create, 0 to update, 0 to delete, 0 blocked; 1 config is enabled.\n", st.Namespace)
	stacktest.WaitFor(t, "nothing to do", func() (bool, error) { return c.ok(t, "reconcile") == nothing, nil })

	c.env[platform.EnvToken] = "hunter2"
	r = c.run(t.Context(), "reconcile")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "starter: the configs of the platform cannot be read: the Platform API refuses the token: ")
}
