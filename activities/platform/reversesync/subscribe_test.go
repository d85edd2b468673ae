package reversesync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

const (
	vocabularyID = "5a8f0000000000000000000a"
	datastreamID = "5a8f0000000000000000000b"
)

// releases are both releases, with servers of the test's own.
type releases struct {
	testing.TB
	stack    *stacktest.Stack
	env      map[string]string
	platform platform.Config
	api      *platform.Client
	pipeline *pipeline.Client
	syncer   *reversesync.Syncer
	human    *release2.Client // somebody who edits documents of Release 2
}

func newReleases(t testing.TB) *releases {
	t.Helper()
	st := stacktest.StartOwn(t, "--only", "nats,platform")
	r := &releases{TB: t, stack: st, env: st.Variables(), platform: platform.Config{URL: st.Platform.URL, Token: st.Platform.Token}}
	for _, line := range st.Env() {
		name, value, _ := strings.Cut(line, "=")
		r.env[name] = value
	}
	var err error
	r.api, err = platform.New(r.platform)
	require.NoError(t, err)
	r.pipeline = st.Pipeline(t)
	r.syncer, err = reversesync.Open(t.Context(), r.getenv, r.pipeline)
	require.NoError(t, err)
	r.human, err = release2.New(release2.Config{URL: st.Release2.URL, Token: st.Release2.Token + ":ada"})
	require.NoError(t, err)
	r.put(&platformv1.Resource{Resource: &platformv1.Resource_Organization{
		Organization: &platformv1.Organization{Id: organizationID, Name: "Erica", Slug: "erica", IsEnabled: true},
	}}, "")
	return r
}

func (r *releases) getenv(name string) string { return r.env[name] }

// put writes a resource as the actor, or as the jobs' own account.
func (r *releases) put(resource *platformv1.Resource, actor string) {
	r.Helper()
	c := r.platform
	if actor != "" {
		c.Token += ":" + actor
	}
	_, err := platformtest.Put(r.Context(), c, resource, "")
	require.NoError(r, err)
}

func stationID(n int) string { return fmt.Sprintf("%024x", n) }

func station(n int, name string) *platformv1.Resource {
	return &platformv1.Resource{Resource: &platformv1.Resource_Station{Station: &platformv1.Station{
		Id: stationID(n), OrganizationId: organizationID, Name: name, Slug: fmt.Sprintf("station-%d", n), IsActive: true, IsEnabled: true,
	}}}
}

// putStations writes stations 1 to n, with names that begin so.
func (r *releases) putStations(n int, name string) {
	r.Helper()
	group, ctx := errgroup.WithContext(r.Context())
	group.SetLimit(8)
	for i := 1; i <= n; i++ {
		group.Go(func() error {
			_, err := platformtest.Put(ctx, r.platform, station(i, fmt.Sprint(name, " ", i)), "")
			return err
		})
	}
	require.NoError(r, group.Wait())
}

// name is that of a document, empty if there is none.
func (r *releases) name(service, id string) string {
	r.Helper()
	d, err := r.human.Get(r.Context(), service, id)
	if errors.Is(err, release2.ErrNotFound) {
		return ""
	}
	require.NoError(r, err)
	name, _ := d["name"].(string)
	return name
}

// edit edits the name of a document, as often as others write it at the same time.
func (r *releases) edit(ctx context.Context, service, id, name string) error {
	for {
		d, err := r.human.Get(ctx, service, id)
		if err != nil {
			return err
		}
		_, err = r.human.Patch(ctx, service, id, d.VersionID(), release2.Patch{Set: map[string]any{"name": name}})
		if !errors.Is(err, release2.ErrNotFound) {
			return err
		}
	}
}

// subscriber runs iterations of the job one after another.
type subscriber struct {
	*releases
	typ job.Type
	run *jobtest.Run
}

func (r *releases) subscribe(spec reversesync.SubscribeSpec) *subscriber {
	s := &subscriber{releases: r, typ: reversesync.Subscribe(r.api, r.pipeline, r.getenv)}
	if spec.IterationDuration == 0 {
		spec.IterationDuration = job.Duration(2 * time.Minute)
	}
	s.run = jobtest.NewRun(jobtest.NewJob(s.typ, "main", job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, spec))
	return s
}

// iterate runs an iteration until it is up to date, and returns its counts.
func (s *subscriber) iterate() map[string]int64 {
	s.Helper()
	s.run = s.run.NextAttempt(jobtest.OnCheckpoint(func(r *jobtest.Run, c jobtest.Checkpoint) {
		if strings.Contains(c.Progress.Message, ", up to date") {
			r.Stop()
		}
	}))
	result, err := s.typ.Handle(s.Context(), s.run)
	require.NoError(s, err)
	require.Contains(s, result.Message, ", up to date")
	return result.Counts
}

// TestSubscribe goes through what can happen to an entity.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	r := newReleases(t)
	s := r.subscribe(reversesync.SubscribeSpec{SkipActors: []string{"service:forward-sync"}})
	r.put(station(1, "Ridge"), "")
	require.Equal(t, map[string]int64{"reads": 2, "snapshots": 1, "created": 2}, s.iterate())
	require.Equal(t, "Ridge", r.name("stations", stationID(1)))
	r.put(station(1, "Ridge"), "")
	require.Empty(t, s.iterate(), "nothing changed, and what was written does not come back")

	r.put(station(1, "River"), "user:ada")
	r.put(station(2, "Copied from Release 2"), "service:forward-sync")
	require.Equal(t, map[string]int64{"changes": 2, "updated": 1, "skipped": 1}, s.iterate())
	require.Equal(t, "River", r.name("stations", stationID(1)))
	require.Empty(t, r.name("stations", stationID(2)))

	// An edit in Release 2 is left alone, and recorded.
	require.NoError(t, r.edit(t.Context(), "stations", stationID(1), "Edited"))
	r.put(station(1, "Ocean"), "user:ada")
	require.Equal(t, map[string]int64{"changes": 1, "conflicts": 1}, s.iterate())
	require.Equal(t, "Edited", r.name("stations", stationID(1)))
	conflicts, err := r.syncer.Conflicts(t.Context())
	require.NoError(t, err)
	require.Len(t, conflicts, 1)
	require.Equal(t, stationID(1), conflicts[0].ID)
	r.put(station(1, "Edited"), "user:ada")
	require.Equal(t, map[string]int64{"changes": 1}, s.iterate())
	conflicts, err = r.syncer.Conflicts(t.Context())
	require.NoError(t, err)
	require.Empty(t, conflicts, "both releases have the same value")

	// A deleted entity deletes no document.
	require.NoError(t, platformtest.Delete(t.Context(), r.platform, "station", stationID(1)))
	require.Equal(t, map[string]int64{"changes": 1, "gone": 1}, s.iterate())
	require.Equal(t, "Edited", r.name("stations", stationID(1)))

	// The log is cut while the subscriber is down.
	r.put(station(3, "Missed"), "user:ada")
	r.put(station(4, "Missed"), "user:ada")
	require.NoError(t, platformtest.Trim(t.Context(), r.platform, 0))
	require.Equal(t, map[string]int64{"reads": 4, "snapshots": 1, "too_old": 1, "created": 3}, s.iterate())
	require.Equal(t, "Missed", r.name("stations", stationID(4)))
}

// TestADatastreamBeforeItsTerm: Release 2 refuses a datastream until it has the vocabulary
// of its terms. No change of the datastream is needed then.
func TestADatastreamBeforeItsTerm(t *testing.T) {
	t.Parallel()
	r := newReleases(t)
	s := r.subscribe(reversesync.SubscribeSpec{})
	s.iterate()
	r.put(&platformv1.Resource{Resource: &platformv1.Resource_Datastream{Datastream: &platformv1.Datastream{
		Id: datastreamID, OrganizationId: organizationID, Name: "Air temperature", IsEnabled: true,
		SourceType: platformv1.SourceType_SOURCE_TYPE_SENSOR,
		Terms:      map[string]*platformv1.Terms{"dq": {Labels: map[string]string{"Measurement": "AirTemperature"}}},
	}}}, "user:ada")
	require.Equal(t, map[string]int64{"changes": 1, "conflicts": 1}, s.iterate())
	conflicts, err := r.syncer.Conflicts(t.Context())
	require.NoError(t, err)
	require.Len(t, conflicts, 1)
	require.Equal(t, reversesync.ReasonRefused, conflicts[0].Reason)
	require.Contains(t, conflicts[0].Message, "No vocabulary found for 'dq.Measurement'")

	r.put(&platformv1.Resource{Resource: &platformv1.Resource_Vocabulary{Vocabulary: &platformv1.Vocabulary{
		Id: vocabularyID, SchemeId: "dq", Label: "Measurement", IsEnabled: true,
		VocabularyType: platformv1.VocabularyType_VOCABULARY_TYPE_CLASS, Terms: []*platformv1.VocabularyTerm{{Label: "AirTemperature"}},
	}}}, "user:ada")
	s.iterate() // writes the vocabulary
	require.Equal(t, map[string]int64{"created": 1}, s.iterate())
	require.Equal(t, "Air temperature", r.name("datastreams", datastreamID))
	conflicts, err = r.syncer.Conflicts(t.Context())
	require.NoError(t, err)
	require.Empty(t, conflicts)
}

// TestNoEditIsLostByFeedAndFullSync edits half of the documents while the feed and a
// full sync write all of them. Every edit is there in the end, and known as a conflict.
func TestNoEditIsLostByFeedAndFullSync(t *testing.T) {
	t.Parallel()
	edits := stacktest.Size(200, 1000)
	stations := 2 * edits
	r := newReleases(t)
	r.putStations(stations, "Station")
	full := func() reversesync.Report {
		k, _ := reversesync.KindNamed("station")
		report, err := r.syncer.Sync(t.Context(), k, reversesync.Run{})
		require.NoError(t, err)
		return report
	}
	require.Equal(t, stations, full().Created)
	s := r.subscribe(reversesync.SubscribeSpec{})
	s.iterate()

	s.run = s.run.NextAttempt()
	var result job.Result
	var running, syncing, writing errgroup.Group
	running.Go(func() (err error) {
		result, err = s.typ.Handle(t.Context(), s.run)
		return err
	})
	stop := make(chan struct{})
	k, _ := reversesync.KindNamed("station")
	syncing.Go(func() error {
		for {
			select {
			case <-stop:
				return nil
			default:
			}
			if _, err := r.syncer.Sync(t.Context(), k, reversesync.Run{}); err != nil {
				return err
			}
		}
	})
	writing.SetLimit(8)
	for n := 1; n <= stations; n++ {
		writing.Go(func() error {
			_, err := platformtest.Put(t.Context(), r.platform, station(n, fmt.Sprint("Release 3 ", n)), "")
			if err == nil && n%2 == 0 {
				err = r.edit(t.Context(), "stations", stationID(n), fmt.Sprint("Edit ", n))
			}
			return err
		})
	}
	require.NoError(t, writing.Wait())
	close(stop)
	require.NoError(t, syncing.Wait())
	stacktest.WaitFor(t, "the feed to be up to date", func() (bool, error) {
		all := s.run.Checkpoints()
		return len(all) > 0 && strings.HasPrefix(all[len(all)-1].Progress.Message, fmt.Sprint(stations, " changes, 0 resources read, up to date")), nil
	})
	s.run.Stop()
	require.NoError(t, running.Wait())
	t.Log(result.Message)
	require.Zero(t, result.Counts["quarantined"])

	conflicts, err := r.syncer.Conflicts(t.Context())
	require.NoError(t, err)
	known := map[string]bool{}
	for _, c := range conflicts {
		known[c.ID] = true
	}
	for n := 1; n <= stations; n++ {
		want := fmt.Sprint("Release 3 ", n)
		if n%2 == 0 {
			want = fmt.Sprint("Edit ", n)
		}
		require.Equal(t, want, r.name("stations", stationID(n)))
	}
	report := full()
	require.Equal(t, reversesync.Report{Kind: "station", Entities: stations, Conflicts: edits}, report)
	conflicts, err = r.syncer.Conflicts(t.Context())
	require.NoError(t, err)
	require.Len(t, conflicts, edits, "each is reported")
	t.Logf("%d of the edits were found by the feed or a full sync before the last one", len(known))
}

// TestAnEditThroughTheContractAppears has a worker follow the feed.
func TestAnEditThroughTheContractAppears(t *testing.T) {
	t.Parallel()
	r, st := newReleases(t), stacktest.StartNamespace(t)
	c := client.New(st.Dial(t), st.Namespace)
	var env []string
	for name, value := range r.env {
		if strings.HasPrefix(name, "DENDRA_PLATFORM_") || strings.HasPrefix(name, "DENDRA_RELEASE2_") || name == "DENDRA_NATS_URL" {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	stacktest.StartProgram(t, st, stacktest.Program{
		Name: "backend", Args: []string{"--health-address", "127.0.0.1:0"}, Env: env,
	}).WaitOutput("serving")
	j := jobtest.NewJob(reversesync.Subscribe(nil, nil, nil), "main", job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}},
		map[string]any{"iteration_duration": "PT2S"})
	_, err := schedules.NewJobs(c).Apply(t.Context(), job.Set{Provider: job.ProviderTOML, Jobs: []job.Job{j}})
	require.NoError(t, err)
	for n := range 5 {
		name := fmt.Sprint("Name ", n)
		r.put(station(1, name), "user:ada")
		began := time.Now()
		stacktest.WaitFor(t, "the edit in Release 2", func() (bool, error) { return r.name("stations", stationID(1)) == name, nil })
		t.Logf("in Release 2 after %s", time.Since(began).Round(time.Millisecond))
	}
	workertest.WaitLoop(t, c, j.ID, "an iteration that is up to date", func(s *contract.ContinuousState) bool {
		return len(s.Recent) > 0 && strings.Contains(s.Recent[len(s.Recent)-1].Message, "up to date")
	})
}
