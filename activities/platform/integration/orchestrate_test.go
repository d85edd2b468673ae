package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
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
	failure := jobtest.FailureOf(t, err)
	require.Equal(t, errclass.NotApplied, failure.Class)
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

// lateJobs are jobs whose list is behind.
type lateJobs struct {
	*jobtest.Jobs
	looks  int    // calls of Find that find none
	missed func() // called at the first look that finds some
}

func (l *lateJobs) Find(ctx context.Context, filter job.Filter) ([]job.Summary, error) {
	if l.looks--; l.looks >= 0 {
		return nil, nil
	}
	l.missed()
	l.missed = func() {}
	return l.Jobs.Find(ctx, filter)
}

// TestJobsThatAreJustBeingMadeAreNotMissed: the jobs of the config itself, and those of another
// config that it is part of.
func TestJobsThatAreJustBeingMadeAreNotMissed(t *testing.T) {
	t.Parallel()
	const station = "5b0f155746a1b867a114e052"
	p := reconciletest.New(t)
	p.PutStation(station, "ridge")
	p.PutType(&platformv1.IntegrationType{Id: "account", Name: "Account", Jobs: []*platformv1.IntegrationJob{p.Job("ExtractTest", map[string]any{"stations": []any{}})}})
	account := variable("account", configVariable)
	account.ConfigTypeId = "account"
	p.PutType(&platformv1.IntegrationType{
		Id: "logger", Name: "Logger", Scope: stationScope, Variables: []*platformv1.Variable{account},
		Jobs: []*platformv1.IntegrationJob{p.Job("ExtractTest", map[string]any{"stations": []any{"${station_slug}"}})},
	})
	p.PutConfig(&platformv1.IntegrationConfig{Id: "all", TypeId: "account", Enabled: true})
	p.PutConfig(&platformv1.IntegrationConfig{Id: "one", TypeId: "logger", StationId: station, Enabled: true, Values: map[string]*platformv1.VariableValue{
		"account": {Value: &platformv1.VariableValue_ConfigId{ConfigId: "all"}},
	}})
	typ, made := integration.Orchestrate(p.Client), jobtest.NewJobs()
	for _, config := range []string{"all", "one"} {
		told := func() string { return p.Condition(config, "Ready").GetReason() }
		var before string
		jobs := &lateJobs{Jobs: made, looks: 4, missed: func() { before = told() }}
		run := jobtest.NewRun(jobtest.NewJob(typ, config, job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}},
			reconcile.OrchestratorSpec{ConfigID: config, CheckEvery: job.Duration(50 * time.Millisecond)}), jobtest.WithJobs(jobs))
		ended := make(chan error)
		go func() {
			_, err := typ.Handle(t.Context(), run)
			ended <- err
		}()
		want := map[string]string{"all": "Running", "one": "PartOfOther"}[config]
		stacktest.WaitFor(t, config+" to be "+want, func() (bool, error) { return told() == want, nil })
		run.Stop()
		require.NoError(t, <-ended)
		require.Empty(t, before, "told too early")
	}
}

// TestTablesOfANewStationAreSought: its config was ready before its first points were there.
func TestTablesOfANewStationAreSought(t *testing.T) {
	t.Parallel()
	const station = "5b0f155746a1b867a114e051"
	p, jobs := reconciletest.New(t), jobtest.NewJobs()
	p.PutStation(station, "ridge")
	p.PutType(&platformv1.IntegrationType{Id: "logger", Name: "Logger", Scope: stationScope, Jobs: []*platformv1.IntegrationJob{p.Job("ExtractTest", nil)}})
	p.PutConfig(&platformv1.IntegrationConfig{Id: "a", TypeId: "logger", StationId: station, Enabled: true})
	typ := integration.Orchestrate(p.Client)
	run := jobtest.NewRun(jobtest.NewJob(typ, "a", job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Second)}},
		reconcile.OrchestratorSpec{ConfigID: "a", CheckEvery: job.Duration(100 * time.Millisecond)}), jobtest.WithJobs(jobs))
	ended := make(chan error)
	go func() {
		_, err := typ.Handle(t.Context(), run)
		ended <- err
	}()
	var last time.Time
	for n := range 3 {
		stacktest.WaitFor(t, fmt.Sprintf("%d requests to discover tables", n+1), func() (bool, error) {
			answer, err := p.Client.Metadata.GetStation(t.Context(), &platformv1.GetStationRequest{Id: station})
			asked := answer.GetStation().GetTableDiscoveryRequestTime()
			if asked == nil || !asked.AsTime().After(last) {
				return false, err
			}
			last = asked.AsTime()
			return true, nil
		})
	}
	run.Stop()
	require.NoError(t, <-ended)
}
