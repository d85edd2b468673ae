package cli_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// startOrchestrators runs a worker whose orchestrators do nothing.
func startOrchestrators(t *testing.T, st *stacktest.Stack, more ...job.Type) {
	t.Helper()
	workertest.Start(t, st, append(more, job.NewType(reconcile.OrchestratorType, job.WorkerBackend, "Does nothing.",
		func(context.Context, job.Run, reconcile.OrchestratorSpec) (job.Result, error) {
			return job.Result{}, nil
		}))...)
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

func TestReconcile(t *testing.T) {
	t.Parallel()
	st, server := stacktest.StartNamespace(t), reconciletest.New(t)
	startOrchestrators(t, st, integration.ReconcileJobs(server.Client))
	temporal := client.New(st.Dial(t), st.Namespace)
	c := console{address: st.Temporal, namespace: st.Namespace}
	workertest.WaitListed(t, temporal)
	pausedLoop(t, temporal, "orchestrate_integration.taken", reconcile.OrchestratorType, map[string]string{"config_id": "taken"})
	server.Enable("a", "b", "taken")
	const blocked = "a job of provider api has this id: stop or delete that one first"
	marks := `+ orchestrate_integration.a  config a
+ orchestrate_integration.b  config b
! orchestrate_integration.taken  config taken  ` + blocked + "\n\n"
	r := c.run(t.Context(), "reconcile", "--dry-run")
	require.Equal(t, 1, r.code, r.stderr)
	require.Equal(t, marks+"Plan: 2 to create, 0 to update, 0 to delete, 1 blocked; 3 configs are enabled.\n", r.stdout)
	require.Contains(t, r.stderr, "starter: config taken: ")
	require.Contains(t, r.stderr, blocked)
	require.Nil(t, server.Condition("a", "Scheduled"))

	r = c.run(t.Context(), "reconcile")
	require.Equal(t, 1, r.code, r.stderr)
	require.Contains(t, r.stdout, marks+"Reconciled: 2 created, 0 updated, 0 deleted in ")

	server.Disable("taken", "b")
	stacktest.WaitFor(t, "the jobs in lists", func() (bool, error) {
		var run jobsv1.Run
		err := protojson.Unmarshal([]byte(c.ok(t, "reconcile", "--dry-run", "-o", "json")), &run)
		return len(run.GetOutput().GetStructValue().GetFields()["configs"].GetListValue().GetValues()) == 2, err
	})
	require.Contains(t, c.ok(t, "reconcile"), "Reconciled: 0 created, 0 updated, 1 deleted in ")
	stacktest.WaitFor(t, "nothing to do", func() (bool, error) {
		return c.ok(t, "reconcile", "--dry-run") == "Plan: 0 to create, 0 to update, 0 to delete, 0 blocked; 1 config is enabled.\n", nil
	})
}

// TestReconcileWhileAnotherIsUnderWay: who asks meanwhile is told whose run it is.
func TestReconcileWhileAnotherIsUnderWay(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t) // Nobody takes the run.
	server := api.New(api.Config{Client: client.New(st.Dial(t), st.Namespace), Types: []job.Type{integration.ReconcileJobs(nil)}})
	t.Cleanup(server.Close)
	handler := stacktest.Serve(t, server.Handler())
	c := console{env: map[string]string{"DENDRA_SERVER": handler}}
	spec, err := structpb.NewStruct(map[string]any{"dry_run": true, "allow_empty": false})
	require.NoError(t, err)
	_, err = server.InProcess().Jobs.RunJob(t.Context(), &jobsv1.RunJobRequest{Job: &jobsv1.Job{
		Id: "reconcile_jobs.by-hand", Spec: spec, Mode: &jobsv1.Job_OneShot{OneShot: &jobsv1.OneShot{}}, Options: &jobsv1.JobOptions{Owner: "user:eve"},
	}})
	require.NoError(t, err)

	const note = "A run of job reconcile_jobs.by-hand is under way, asked for by user:eve: no other is started, and the report is that of this run.\n"
	waiting := c
	waiting.until = note
	r := waiting.run(t.Context(), "reconcile", "--dry-run")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, note)
	r = c.run(t.Context(), "reconcile")
	require.Equal(t, 1, r.code)
	require.Equal(t, "starter: a run of job reconcile_jobs.by-hand with another spec is running: wait for its end, or stop it\n", r.stderr)
}
