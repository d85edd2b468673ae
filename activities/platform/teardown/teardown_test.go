package teardown_test

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// neighbours have slugs, and ids, that look like those of the organization that goes.
func (s *site) neighbours(id string) (first *organization) {
	s.Helper()
	first = s.plant(id[:23]+"1", "org1", 2)
	s.plant(id[:22]+"00", "org-1", 2)
	s.plant(platformtest.NewID(), "org-1-0", 2)
	s.plant(platformtest.NewID(), "or", 1)
	s.plant(platformtest.NewID(), "raw", 1)
	s.plant(platformtest.NewID(), "unnamed", 1)
	return first
}

// run is the latest run of an organization's teardown, empty if lists show none yet.
func (s *site) run(id string) (*client.RunDetail, error) {
	s.Helper()
	runs, err := s.client.Runs.List(s.Context(), client.RunFilter{Type: teardown.Type})
	for _, run := range runs {
		if strings.HasPrefix(run.JobID, job.ID(teardown.Type, id+"-")) {
			return s.client.Runs.Get(s.Context(), run.RunRef)
		}
	}
	return &client.RunDetail{}, err
}

func (s *site) waitGone(id string) {
	s.Helper()
	stacktest.WaitWithin(s, 2*time.Minute, "organization "+id+" to be gone", func() (bool, error) {
		_, err := s.api.Organizations.GetOrganization(s.Context(), &platformv1.GetOrganizationRequest{Id: id})
		if connect.CodeOf(err) == connect.CodeNotFound {
			return true, nil
		}
		return false, err
	})
	stacktest.WaitFor(s, "the end of the run", func() (bool, error) {
		detail, err := s.run(id)
		return err == nil && detail.Status == client.RunCompleted, err
	})
}

// TestAnOrganizationGoesAndItsNeighboursStay plans a teardown, starts and undoes it, and
// starts it again without a grace period. What records of the organization name and is not
// its own stays.
func TestAnOrganizationGoesAndItsNeighboursStay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := platformtest.NewID()[:22] + "a0"
	neighbour := s.neighbours(id)
	strangers := s.strangers(neighbour)
	s.picture(archive.DefaultBucket, "private/picture.png")
	before := s.everything()
	o := s.plant(id, "org", 3)
	s.covet(o, neighbour, strangers)
	full := s.everything()

	var run struct{ Output teardown.Report }
	s.read(0, &run, "teardown", "plan", "org", "--archive", "delete")
	report := run.Output
	counts := map[string]int64{
		"jobs": 2, "consumers": 1, "raw_messages": 6, "prepared_messages": 3, "quarantine_items": 6 + 2, "bookmarks": 2,
		"variants": 3 + 4 + 4 + 3, "uploads": 3, "databases": 1, "measurements": 3 + 6 + 4, "archived": 12,
	}
	planned := report.Counts()
	require.Positive(t, planned["queues"])
	delete(planned, "queues") // Each that was made: which, is up to the subscriber.
	require.Equal(t, counts, planned)
	variants, databases := report.Stages[2], report.Stages[3]
	require.Len(t, variants.Kept, 4)
	require.Contains(t, variants.Kept, "the logo stays: archive/private/picture.png is no upload: upload buckets are uploads")
	const another = " is not that of a station of the organization alone"
	require.Equal(t, []string{
		"database default/climate stays: its measurement cpu" + another,
		"database default/common stays: it is the database of location common",
		"measurement default/common/station_ridge_source_t0 stays: it names a station of another organization too",
		"database default/empty stays: no load job made it",
		"database default/mixed stays: its measurement cpu" + another,
	}, databases.Kept)
	require.Equal(t, 4, databases.KeptMore)
	s.requireEverything(full)

	jobs := s.owned(o)
	s.starter(0, "teardown", "start", "org", "--grace", "P7D", "--yes")
	s.waitJobs(o, 0)
	require.Regexp(t, `handle_organization_teardown\.`+id+`-\S+, waiting`, s.starter(0, "teardown", "describe", "org"))
	s.starter(0, "teardown", "undo", id)
	require.Equal(t, jobs, s.waitJobs(o, 2), "the same jobs are back")
	stacktest.WaitFor(t, "the end of the job that waited", func() (bool, error) {
		detail, err := s.run(id)
		return err == nil && detail.Status == client.RunCanceled, err
	})
	s.requireEverything(mustHaveEtag(s, full, o))

	s.starter(0, "teardown", "start", id, "--grace", "0", "--delete-archive", "--yes")
	s.waitGone(id)
	s.requireEverything(before)
	require.Contains(t, s.starter(1, "teardown", "describe", "org"), "there is no organization org")
	detail, err := s.run(id)
	require.NoError(t, err)
	for kind, n := range counts {
		if kind != "jobs" { // ReconcileJobs may have been first.
			require.Equal(t, n, detail.Counts[kind], kind)
		}
	}
}

// mustHaveEtag is a list with the etag that the organization has now.
func mustHaveEtag(s *site, list []string, o *organization) []string {
	s.Helper()
	answer, err := s.api.Organizations.GetOrganization(s.Context(), &platformv1.GetOrganizationRequest{Id: o.id})
	require.NoError(s, err)
	var with []string
	for _, line := range list {
		if prefix := "organization " + o.id + " "; len(line) > len(prefix) && line[:len(prefix)] == prefix {
			line = prefix + answer.GetOrganization().GetEtag()
		}
		with = append(with, line)
	}
	return with
}

// TestTheSubscriberTearsDown: what the platform is told is enough, and a job that the
// organization owns blocks the teardown until it is gone.
func TestTheSubscriberTearsDown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := platformtest.NewID()
	s.plant(platformtest.NewID(), "org1", 1)
	before := s.everything()
	s.plant(id, "org", 1)
	theirs := job.Job{
		ID: "reconcile_jobs.theirs", Type: "ReconcileJobs", Worker: job.WorkerBackend, Spec: []byte("{}"),
		Trigger: job.Trigger{Continuous: &job.Continuous{Interval: job.Duration(time.Hour)}}, Options: job.DefaultOptions(job.ModeContinuous),
	}
	theirs.Options.Owner.Organization = "org"
	theirs.Options.Paused = true
	only := job.Set{Provider: job.ProviderTOML, Only: []string{theirs.ID}}
	with := only
	with.Jobs = []job.Job{theirs}
	_, err := s.jobs.Apply(t.Context(), with)
	require.NoError(t, err)
	const blocked = "job reconcile_jobs.theirs of provider toml is owned by the organization and would write its data again: remove it first"
	stacktest.WaitFor(t, "the job in the lists", func() (bool, error) {
		found, err := s.jobs.Find(t.Context(), job.Filter{Owner: theirs.Options.Owner, Provider: job.ProviderTOML})
		return len(found) == 1, err
	})
	require.Contains(t, s.starter(2, "teardown", "plan", "org"), "! "+blocked)

	_, err = s.api.Organizations.DeleteOrganization(t.Context(), &platformv1.DeleteOrganizationRequest{Id: id, DeleteArchive: true, GracePeriod: zero})
	require.NoError(t, err)
	stacktest.WaitFor(t, "the teardown to say what blocks it", func() (bool, error) {
		detail, err := s.run(id)
		return err == nil && detail.LastError != "", nil
	})
	require.Contains(t, s.starter(0, "teardown", "describe", "org"), blocked)
	require.Contains(t, s.starter(1, "teardown", "undo", "org"), "does not come back (PURGE_BEGUN)")
	_, err = s.jobs.Apply(t.Context(), only)
	require.NoError(t, err)
	s.waitGone(id)
	s.requireEverything(before)
}

// TestATeardownThatIsKilledGoesOn kills the worker in each stage.
func TestATeardownThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	s := newSite(t)
	id := platformtest.NewID()
	s.plant(platformtest.NewID(), "org1", 2)
	s.plant(platformtest.NewID(), "org_1", 2)
	before := s.everything()
	s.plant(id, "org-1", 60)
	s.starter(0, "teardown", "start", id, "--grace", "0", "--delete-archive", "--yes")
	for _, stage := range teardown.Stages() {
		least := random.Int64N(40)
		stacktest.WaitFor(t, "stage "+stage, func() (bool, error) {
			detail, err := s.run(id)
			if err != nil {
				return false, err
			}
			return at(detail, stage, least) || detail.Status == client.RunCompleted, nil
		})
		s.worker.Kill()
		s.startWorker()
	}
	s.waitGone(id)
	s.requireEverything(before)
}
