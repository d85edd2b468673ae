package effects_test

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/effects"
	"github.com/dendrascience/dendra-jobs/activities/platform/feed"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// follower runs iterations of SideEffects one after another, with queues in memory.
type follower struct {
	typ  job.Type
	jobs *jobtest.Jobs
	run  *jobtest.Run
}

func (s *site) follow(api *platform.Client, spec feed.Spec) *follower {
	s.Helper()
	at, err := places.FromEnv(func(string) string { return "" })
	require.NoError(s, err)
	f := &follower{typ: effects.SideEffects(s.store, api, s.pipeline, at), jobs: jobtest.NewJobs()}
	spec.IterationDuration = job.Duration(time.Minute)
	j := jobtest.NewJob(f.typ, s.organization.GetId(), job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, effects.Spec{Spec: spec})
	f.run = jobtest.NewRun(j, jobtest.WithJobs(f.jobs))
	return f
}

// iterate runs an iteration until it is up to date.
func (f *follower) iterate(ctx context.Context) (job.Result, error) {
	f.run = f.run.NextAttempt(jobtest.OnCheckpoint(func(r *jobtest.Run, c jobtest.Checkpoint) {
		if strings.Contains(c.Progress.Message, ", up to date") {
			r.Stop()
		}
	}))
	return f.typ.Handle(ctx, f.run)
}

// ids are those of the jobs that were put into queues.
func (f *follower) ids() map[string]int {
	ids := map[string]int{}
	for _, j := range f.jobs.Enqueued() {
		ids[j.ID]++
	}
	return ids
}

// TestALossyFeed drops three changes of ten, and doubles one. In the end there are the
// same jobs as of a feed that is whole: an iteration that has not ended looks at all
// resources again.
func TestALossyFeed(t *testing.T) {
	t.Parallel()
	s := newSite(t, 20)
	require.NoError(t, platformtest.Fault(t.Context(), s.platform, 0.3, 0.1, stacktest.Random(t).Uint64()))
	f := s.follow(s.api, feed.Spec{ResyncEvery: job.Duration(time.Second)})
	var result job.Result
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, failed = f.typ.Handle(t.Context(), f.run)
	}()
	stacktest.WaitFor(t, "the first snapshot", func() (bool, error) {
		return slices.ContainsFunc(f.run.Checkpoints(), func(c jobtest.Checkpoint) bool {
			return strings.HasSuffix(c.Progress.Message, "21 resources read, up to date")
		}), nil
	})
	for n := range 60 {
		if n%3 == 0 {
			s.addPhoto(n % 20)
		}
		s.rename(n % 20)
	}
	whole := s.follow(s.api, feed.Spec{})
	_, err := whole.iterate(t.Context())
	require.NoError(t, err)
	want := slices.Sorted(maps.Keys(whole.ids()))
	require.Len(t, want, 20)
	stacktest.WaitFor(t, "all jobs", func() (bool, error) {
		return slices.Equal(want, slices.Sorted(maps.Keys(f.ids()))), nil
	})
	f.run.Stop()
	<-ended
	require.NoError(t, failed)
	require.Positive(t, result.Counts["snapshots"])
}

// TestThePositionIsKept: an iteration begins where the one before has ended, and one that
// was not saved is done again.
func TestThePositionIsKept(t *testing.T) {
	t.Parallel()
	s := newSite(t, 5)
	f := s.follow(s.api, feed.Spec{})
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

// slow are queues that take a job in when the gate is closed.
type slow struct {
	*jobtest.Jobs
	gate chan struct{}
}

func (s slow) Enqueue(ctx context.Context, j job.Job, allowRerun bool) error {
	select {
	case <-s.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.Jobs.Enqueue(ctx, j, allowRerun)
}

// TestHowFarItIsBehind: a subscriber says how old the oldest change is that it has not
// finished. Changes of other resources do not wait for it.
func TestHowFarItIsBehind(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	f := s.follow(s.api, feed.Spec{})
	_, err := f.iterate(t.Context())
	require.NoError(t, err)
	jobs := slow{f.jobs, make(chan struct{})}
	f.run = f.run.NextAttempt(jobtest.WithJobs(jobs))
	s.addPhoto(0)
	s.rename(1)
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, failed = f.typ.Handle(t.Context(), f.run)
	}()
	says := func(pattern string) func() (bool, error) {
		return func() (bool, error) {
			all := f.run.Checkpoints()
			return len(all) > 0 && regexp.MustCompile(pattern).MatchString(all[len(all)-1].Progress.Message), nil
		}
	}
	stacktest.WaitFor(t, "a lag", says(`^2 changes, 0 resources read, [2-9]s behind, \d in hand$`))
	close(jobs.gate)
	stacktest.WaitFor(t, "the end of the lag", says(`^2 changes, 0 resources read, up to date$`))
	f.run.Stop()
	<-ended
	require.NoError(t, failed)
}

// TestAChangeThatCannotBeHandled is in quarantine once, and the feed goes on: pictures of
// others, of other buckets and of none get no variants.
func TestAChangeThatCannotBeHandled(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	id := s.organization.GetId()
	for _, at := range []*platformv1.ObjectReference{
		s.picture("media", "private/"+id+".png"), s.picture("media", id+"/"+platformtest.NewID()), s.picture("uploads", platformtest.NewID()+"/"+id+"/a.png"),
		s.picture("uploads", id+".png"), s.picture("uploads", id+"0/a.png"), {Bucket: "no-such-bucket", Key: id + "/x"},
	} {
		s.stations[0].Photos = append(s.stations[0].Photos, &platformv1.Photo{Object: at})
	}
	s.putStation(0)
	s.addPhoto(1)
	f := s.follow(s.api, feed.Spec{ResyncEvery: job.Duration(time.Second)})
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
	require.Equal(t, errclass.NotAnUpload, items[0].Class)
	require.Contains(t, items[0].Reason, "the read of station "+s.stations[0].GetId()+": media/private/"+id+".png is no upload")
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
	}{{away, errclass.PlatformUnreachable}, {nil, errclass.NoPlatform}} {
		_, err := s.follow(c.api, feed.Spec{}).iterate(t.Context())
		failure := jobtest.FailureOf(t, err)
		require.Equal(t, c.class, failure.Class)
	}
	f := s.follow(s.api, feed.Spec{})
	s.addPhoto(0)
	_, err = f.iterate(t.Context())
	require.NoError(t, err)
	require.Len(t, f.ids(), 1)
}

// TestOneEffectThatFailsKeepsNoOtherBack: a photo that is gone, and a queue that refuses,
// end in quarantine, and the other effects of the change and the feed go on.
func TestOneEffectThatFailsKeepsNoOtherBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2)
	s.stations[0].Photos = []*platformv1.Photo{{Object: &platformv1.ObjectReference{Bucket: "no-such-bucket", Key: "x"}}}
	s.addPhoto(0)
	s.addPhoto(1)
	f := s.follow(s.api, feed.Spec{})
	_, err := f.iterate(t.Context())
	require.NoError(t, err)
	require.Len(t, f.ids(), 2)

	s.addPhoto(1)
	refused := s.follow(s.api, feed.Spec{})
	refused.jobs.Refuse(s.queue("images"))
	_, err = refused.iterate(t.Context())
	require.NoError(t, err, "the iteration does not fail")
	var classes []string
	require.NoError(t, s.pipeline.Items(t.Context(), pipeline.ItemFilter{Stage: pipeline.StageChange, Organization: s.organization.GetId()},
		func(item pipeline.Item) error {
			classes = append(classes, item.Class)
			return nil
		}))
	require.Contains(t, classes, errclass.QueueRefused)
	require.Contains(t, classes, errclass.NotAnUpload)
}
