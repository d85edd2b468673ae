package effects_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/effects"
	"github.com/dendrascience/dendra-jobs/activities/platform/feed"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

func applySideEffects(t *testing.T, c *client.Client, spec effects.Spec) job.Job {
	t.Helper()
	j := jobtest.NewJob(effects.SideEffects(nil, nil, nil, places.Places{}), "main", job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, spec)
	j.Options.HeartbeatTimeout = job.Duration(4 * time.Second)
	_, err := schedules.NewJobs(c).Apply(t.Context(), job.Set{Provider: job.ProviderTOML, Jobs: []job.Job{j}})
	require.NoError(t, err)
	return j
}

// TestSideEffects: what users do leads to one run each of the jobs that it needs.
func TestSideEffects(t *testing.T) {
	t.Parallel()
	s, st := newSite(t, 3), stacktest.StartNamespace(t)
	c := client.New(st.Dial(t), st.Namespace)
	s.startWorker(st)
	s.organization.Logo = s.upload()
	s.putOrganization()
	s.addPhoto(0)
	writer, err := influx.NewWriter(influx.Config{URL: st.Influx})
	require.NoError(t, err)
	require.NoError(t, writer.CreateDatabase(t.Context(), "effects"))
	j := applySideEffects(t, c, effects.Spec{
		Spec:   feed.Spec{IterationDuration: job.Duration(time.Second)},
		Tables: "effects",
	})
	s.waitCompleted(c, s.queue("images"), 2) // of the snapshot
	s.addPhoto(0)
	s.addPhoto(1)
	s.rename(2)
	s.waitCompleted(c, s.queue("images"), 4)
	s.waitCompleted(c, s.queue("tables"), 3) // The stations are new.

	require.NoError(t, writer.Write(t.Context(), influx.Target{Database: "effects", Precision: influx.Seconds}, []byte("station_station_2_source_tenmin v=1 1\n")))
	s.askForTables(2)
	stacktest.WaitFor(t, "the discovered table", func() (bool, error) {
		answer, err := s.api.Tables.ListTableInfos(t.Context(), &platformv1.ListTableInfosRequest{StationId: s.stations[2].GetId()})
		return len(answer.GetTableInfos()) == 1, err
	})
	s.waitCompleted(c, s.queue("tables"), 4)
	discoveries, err := s.completed(c, s.queue("tables"))
	require.NoError(t, err)
	for n := range s.stations {
		require.Regexp(t, fmt.Sprintf(`discover_and_sync_tables\.[0-9a-f]{12}-station-%d\b`, n), strings.Join(discoveries, " "), "it names its station")
	}
	workertest.WaitLoop(t, c, j.ID, "an iteration that is up to date", func(s *contract.ContinuousState) bool {
		return len(s.Recent) > 0 && strings.HasSuffix(s.Recent[len(s.Recent)-1].Message, "up to date")
	})
	describe := stacktest.StartProcess(t, st, "starter", "jobs", "describe", j.ID)
	require.Zero(t, describe.Wait(), describe.Output())
	require.Regexp(t, `(?m)^\d+ .* \d+ changes, \d+ resources read, up to date$`, describe.Output())
	require.Regexp(t, `(?m)^Totals +.*reads 4, snapshots 1`, describe.Output())
	s.waitCompleted(c, s.queue("images"), 4)
	require.Len(t, s.variants("logos", s.organization.GetLogo()), 3+1, "variants and a manifest")
	for _, station := range s.stations {
		for _, photo := range station.GetPhotos() {
			require.Len(t, s.variants("photos", photo.GetObject()), 4+1)
		}
	}
}

// TestAFeedThatIsCutWhileTheSubscriberIsDown: the worker is killed amid its work, the log
// of changes is dropped, and all effects come, each once, without anybody's help.
func TestAFeedThatIsCutWhileTheSubscriberIsDown(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	const count = 12
	s, st := newSite(t, count), stacktest.StartNamespace(t)
	c := client.New(st.Dial(t), st.Namespace)
	worker := s.startWorker(st)
	j := applySideEffects(t, c, effects.Spec{Spec: feed.Spec{IterationDuration: job.Duration(2 * time.Second)}})
	s.addPhoto(0)
	s.waitCompleted(c, s.queue("images"), 1)
	workertest.WaitLoop(t, c, j.ID, "a saved position", func(s *contract.ContinuousState) bool { return s.Iterations > 0 && s.Cursor != nil })
	for n := range count {
		s.addPhoto(n)
	}
	some := 2 + random.IntN(count)
	stacktest.WaitFor(t, "some of the runs", func() (bool, error) {
		ids, err := s.completed(c, s.queue("images"))
		return len(ids) >= some, err
	})
	worker.Kill()
	for n := range count {
		s.rename(n)
		s.addPhoto(n)
	}
	s.cut()
	s.startWorker(st)
	s.waitCompleted(c, s.queue("images"), 1+2*count)
	workertest.WaitLoop(t, c, j.ID, "the position to be beyond the cut", func(s *contract.ContinuousState) bool { return s.Totals["too_old"] > 0 })
	s.addPhoto(0)
	s.waitCompleted(c, s.queue("images"), 2+2*count)
	detail, err := c.Jobs.Get(t.Context(), j.ID)
	require.NoError(t, err)
	require.EqualValues(t, 1, detail.Continuous.Totals["too_old"], "%v", detail.Continuous.Totals)
}
