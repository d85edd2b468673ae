package integration_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/integration"
	"github.com/dendrascience/dendra-jobs/internal/reconcile"
	"github.com/dendrascience/dendra-jobs/internal/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

func TestStateOfAConfigsJobs(t *testing.T) {
	t.Parallel()
	p, jobs := reconciletest.New(t), jobtest.NewJobs()
	p.Enable("a")
	typ := integration.Orchestrate(p.Client)
	newRun := func(config string) *jobtest.Run {
		j := jobtest.NewJob(typ, config, job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}},
			reconcile.OrchestratorSpec{ConfigID: config, CheckEvery: job.Duration(100 * time.Millisecond)})
		return jobtest.NewRun(j, jobtest.WithJobs(jobs))
	}
	reason := func(conditionType string) string { return p.Condition("a", conditionType).GetReason() }
	jobs.Fail("extract_test.a", errors.New("not now"))
	_, err := typ.Handle(t.Context(), newRun("a"))
	var failure *job.Failure
	require.ErrorAs(t, err, &failure)
	require.Equal(t, integration.ClassNotApplied, failure.Class)
	require.Equal(t, "NotApplied", reason("Ready"))
	require.Equal(t, []string{"prepare_test.a"}, jobs.IDs())

	jobs.Fail("extract_test.a", nil)
	run, ended := newRun("a"), make(chan error)
	go func() {
		_, err := typ.Handle(t.Context(), run)
		ended <- err
	}()
	wait := func(conditionType, want string) {
		t.Helper()
		stacktest.WaitFor(t, conditionType+" to be "+want, func() (bool, error) { return reason(conditionType) == want, nil })
	}
	wait("Ready", "Running")
	require.EqualValues(t, 1, p.Get("a").GetStatus().GetObservedVersion())
	jobs.SetState("extract_test.a", true, &job.Failing{Since: time.Now(), Class: "Vendor", Error: "away"})
	wait("Ready", "JobPaused")
	wait("Degraded", "JobFailing")
	jobs.SetState("extract_test.a", false, nil)
	wait("Ready", "Running")
	wait("Degraded", "Working")
	run.Stop()
	require.NoError(t, <-ended)
	require.Equal(t, []string{
		"Job extract_test.a works again.", "Job extract_test.a fails: Vendor: away.", "Job extract_test.a was created.", "Job prepare_test.a was created.",
	}, p.Log("a"))

	// A config that is gone is for ReconcileJobs.
	p.Remove("a")
	run = newRun("a")
	run.Stop()
	_, err = typ.Handle(t.Context(), run)
	require.NoError(t, err)
	require.Len(t, jobs.IDs(), 2)
}
