package changes_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/changes"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1/platformv1connect"
)

// lossy is a change feed in front of another: it drops some changes and doubles others.
type lossy struct {
	feed           platformv1connect.ChangeServiceClient
	dropped, twice float64

	mu     sync.Mutex
	random *rand.Rand
}

func (l *lossy) StreamChanges(ctx context.Context, r *platformv1.StreamChangesRequest, to platformv1connect.ChangeServiceStreamChangesServerStream) error {
	from, err := l.feed.StreamChanges(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	for {
		response, err := from.Receive()
		if err != nil {
			return err
		}
		for range l.times(response) {
			if err := to.Send(response); err != nil {
				return err
			}
		}
	}
}

// times says how often a response is sent. Checkpoints always are.
func (l *lossy) times(response *platformv1.StreamChangesResponse) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch drawn := l.random.Float64(); {
	case response.GetChange() == nil:
		return 1
	case drawn < l.dropped:
		return 0
	case drawn < l.dropped+l.twice:
		return 2
	}
	return 1
}

// inFront puts a lossy feed before that of the site.
func (s *site) inFront(dropped, twice float64) *platform.Client {
	s.Helper()
	seed := rand.Uint64()
	s.Logf("seed of the lossy feed: %d", seed)
	server := connect.NewServer()
	platformv1connect.RegisterChangeServiceHandler(server, &lossy{
		feed: s.api.Changes, dropped: dropped, twice: twice, random: rand.New(rand.NewPCG(seed, 0)),
	})
	mux := http.NewServeMux()
	connecthttp.Mount(mux, server)
	listener := httptest.NewServer(mux)
	s.Cleanup(listener.Close)
	api, err := platform.New(platform.Config{URL: listener.URL, Token: s.platform.Token})
	require.NoError(s, err)
	return api
}

// follower runs iterations of SideEffects one after another, with queues in memory.
type follower struct {
	typ  job.Type
	jobs *jobtest.Jobs
	run  *jobtest.Run
}

func (s *site) follow(api *platform.Client, spec changes.Spec) *follower {
	f := &follower{typ: changes.SideEffects(s.store, api, s.pipeline), jobs: jobtest.NewJobs()}
	j := jobtest.NewJob(f.typ, s.organization.GetId(), job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, changes.SideEffectsSpec{Spec: spec})
	f.run = jobtest.NewRun(j, jobtest.WithJobs(f.jobs))
	return f
}

func (f *follower) iterate(ctx context.Context) (job.Result, error) {
	result, err := f.typ.Handle(ctx, f.run)
	f.run = f.run.NextAttempt()
	return result, err
}

// ids are those of the jobs that were put into queues.
func (f *follower) ids() map[string]int {
	ids := map[string]int{}
	for _, j := range f.jobs.Enqueued() {
		ids[j.ID]++
	}
	return ids
}

var quick = changes.Spec{IterationDuration: job.Duration(500 * time.Millisecond)}

// TestALossyFeed drops three changes of ten, in snapshots too, and doubles one. In the
// end there are the same jobs as of a feed that is whole.
func TestALossyFeed(t *testing.T) {
	t.Parallel()
	s := newSite(t, 20)
	losing, whole := quick, quick
	losing.ResyncEvery = job.Duration(time.Second)
	f := s.follow(s.inFront(0.3, 0.1), losing)
	for n := range 60 {
		if n%3 == 0 {
			s.addPhoto(n % 20)
		}
		s.rename(n % 20)
		if n%20 == 0 {
			_, err := f.iterate(t.Context())
			require.NoError(t, err)
		}
	}
	complete := s.follow(s.api, whole)
	_, err := complete.iterate(t.Context())
	require.NoError(t, err)
	want := slices.Sorted(maps.Keys(complete.ids()))
	require.Len(t, want, 20)
	for iterations := 0; !slices.Equal(want, slices.Sorted(maps.Keys(f.ids()))); iterations++ {
		require.Less(t, iterations, 100)
		_, err := f.iterate(t.Context())
		require.NoError(t, err)
	}
}

// TestThePositionIsKept: an iteration begins where the one before has ended, and one that
// was not saved is done again.
func TestThePositionIsKept(t *testing.T) {
	t.Parallel()
	s := newSite(t, 5)
	f := s.follow(s.api, quick)
	s.addPhoto(0)
	result, err := f.iterate(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"reads": 6, "snapshots": 1}, result.Counts)
	require.Equal(t, "0 changes, 6 resources read, up to date", result.Message)
	require.Len(t, f.ids(), 1)

	s.addPhoto(1)
	s.addPhoto(1)
	before := f.run
	result, err = f.iterate(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"changes": 2}, result.Counts)
	f.run = before // as if the worker had died before its position was saved
	_, err = f.iterate(t.Context())
	require.NoError(t, err)
	ids := f.ids()
	require.Len(t, ids, 3)

	s.cut()
	s.rename(2)
	result, err = f.iterate(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"changes": 1}, result.Counts, "the cut was behind the position")

	s.addPhoto(3)
	s.cut()
	result, err = f.iterate(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"reads": 6, "snapshots": 1, "too_old": 1}, result.Counts)
	require.Len(t, f.ids(), 4, "no job but the new one has another id")
}

// TestAChangeThatCannotBeHandled is in quarantine once, and the feed goes on.
func TestAChangeThatCannotBeHandled(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	s.stations[0].Photos = []*platformv1.Photo{{Object: &platformv1.ObjectReference{Bucket: "no-such-bucket", Key: "x"}}}
	s.putStation(0)
	s.addPhoto(1)
	f := s.follow(s.api, changes.Spec{IterationDuration: quick.IterationDuration, ResyncEvery: job.Duration(time.Second)})
	for snapshots := int64(0); snapshots < 3; {
		result, err := f.iterate(t.Context())
		require.NoError(t, err)
		snapshots += result.Counts["snapshots"]
		require.Equal(t, result.Counts["snapshots"], result.Counts["quarantined"])
	}
	require.Len(t, f.ids(), 1)
	var items []pipeline.Item
	require.NoError(t, s.pipeline.Items(t.Context(), pipeline.ItemFilter{Stage: pipeline.StageChange, Organization: s.organization.GetId()},
		func(item pipeline.Item) error {
			items = append(items, item)
			return nil
		}))
	require.Len(t, items, 1, "every snapshot found it")
	require.Equal(t, s.organization.GetId()+".station", items[0].Name)
	require.Equal(t, objects.ClassBucketMissing, items[0].Class)
	require.Contains(t, items[0].Reason, "the read of station "+s.stations[0].GetId()+": ")
	require.ErrorContains(t, items[0].Replayable(), "looks at the resource again by itself")
}

// TestAPlatformThatIsAway fails the iteration, and the position stays.
func TestAPlatformThatIsAway(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1)
	away, err := platform.New(platform.Config{URL: "http://127.0.0.1:1", Token: "t"})
	require.NoError(t, err)
	for _, c := range []struct {
		api   *platform.Client
		class string
	}{{away, platform.ClassUnreachable}, {nil, platform.ClassNoPlatform}} {
		_, err := s.follow(c.api, quick).iterate(t.Context())
		var failure *job.Failure
		require.ErrorAs(t, err, &failure)
		require.Equal(t, c.class, failure.Class)
	}
	f := s.follow(s.api, quick)
	s.addPhoto(0)
	_, err = f.iterate(t.Context())
	require.NoError(t, err)
	require.Len(t, f.ids(), 1)
}
