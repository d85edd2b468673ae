package maintenance_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/maintenance"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

func declared(typeName, key, owner string) job.Job {
	trigger := job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour)}}
	j := job.Job{ID: job.ID(typeName, key), Type: typeName, Worker: job.WorkerBackend, Provider: job.ProviderTOML, Spec: json.RawMessage("{}"), Trigger: trigger, Options: job.DefaultOptions(job.ModeRecurring)}
	j.Options.Owner, _ = job.ParseOwner(owner)
	return j
}

// Of three jobs one was paused by a person before: it is silenced, and its pause stays.
func TestAWindowPausesAndSilencesWhatFits(t *testing.T) {
	t.Parallel()
	client := stacktest.StartNamespace(t).Pipeline(t)
	typ := maintenance.Maintenance(client)
	jobs := jobtest.NewJobs(declared("Count", "a", "user:ana"), declared("Count", "b", "user:ana"), declared("Count", "held", "user:ana"),
		declared("Count", "other", "user:bo"), declared("Maintenance", "nightly", "user:ana"))
	jobs.SetState("count.held", true, nil)
	spec := maintenance.Spec{Jobs: []string{"*"}, Owner: declared("Count", "a", "user:ana").Options.Owner, For: job.Duration(time.Hour), Reason: "new disks"}
	run := jobtest.NewRun(jobtest.NewJob(typ, "nightly", job.Trigger{OneShot: &job.OneShot{}}, spec), jobtest.WithJobs(jobs), jobtest.WithID(t.Name()+time.Now().String()))

	broken := errors.New("broken")
	jobs.Fail("count.b", broken)
	_, err := typ.Handle(t.Context(), run)
	require.ErrorIs(t, err, broken)
	jobs.Fail("count.b", nil)
	run = run.NextAttempt()
	result, err := typ.Handle(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"paused": 2, "silenced": 3, "paused_before": 1}, result.Counts)
	end := jobs.PausedUntil("count.a")
	require.InDelta(t, time.Hour.Seconds(), time.Until(end).Seconds(), 60)
	require.Equal(t, end, jobs.PausedUntil("count.b"), "attempts have one end")
	for _, left := range []string{"count.held", "count.other", "maintenance.nightly"} {
		require.Zero(t, jobs.PausedUntil(left), left)
	}
	silences, err := alerts.NewBucket(client).Silences(t.Context(), time.Now())
	require.NoError(t, err)
	ends := map[string]time.Time{}
	for _, s := range silences {
		if s.Creator == "maintenance.nightly" && s.End.Equal(end) {
			require.Equal(t, "maintenance maintenance.nightly: new disks", s.Reason)
			ends[s.Object] = s.End
		}
	}
	require.Equal(t, map[string]time.Time{"count.a": end, "count.b": end, "count.held": end}, ends)
}

func TestSpecsOfWindows(t *testing.T) {
	t.Parallel()
	for want, spec := range map[string]maintenance.Spec{
		"a star stands at the end": {Jobs: []string{"a*b"}},
		"exclude each other":       {Jobs: []string{"*"}, PauseOnly: true, SilenceOnly: true},
	} {
		require.ErrorContains(t, spec.Validate(), want)
	}
	require.NoError(t, (&maintenance.Spec{Jobs: []string{"a", "b.*", "*"}}).Validate())
}
