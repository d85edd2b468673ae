package effects_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// site is an organization on a platform of its own, with the store that holds its
// uploads.
type site struct {
	testing.TB
	platform     platform.Config
	api          *platform.Client
	store        *objects.Store
	pipeline     *pipeline.Client
	organization *platformv1.Organization
	stations     []*platformv1.Station
}

func newSite(t testing.TB, stations int) *site {
	t.Helper()
	shared, own := stacktest.Start(t), stacktest.StartOwn(t, "--only", "platform")
	s := &site{TB: t, platform: platform.Config{URL: own.Platform.URL, Token: own.Platform.Token}}
	var err error
	s.api, err = platform.New(s.platform)
	require.NoError(t, err)
	s.store = objectstest.Open(t, shared.S3)
	s.pipeline = shared.Pipeline(t)
	id := platformtest.NewID()
	s.organization = &platformv1.Organization{Id: id, Name: "Site", Slug: "s" + id[:8], IsEnabled: true}
	s.putOrganization()
	for n := range stations {
		s.stations = append(s.stations, &platformv1.Station{Id: platformtest.NewID(), OrganizationId: id, Name: "Station", Slug: fmt.Sprintf("station-%d", n)})
		s.putStation(n)
	}
	return s
}

func (s *site) putOrganization() {
	s.Helper()
	s.put(&platformv1.Resource{Resource: &platformv1.Resource_Organization{Organization: s.organization}})
}

func (s *site) putStation(n int) {
	s.Helper()
	s.put(&platformv1.Resource{Resource: &platformv1.Resource_Station{Station: s.stations[n]}})
}

func (s *site) put(r *platformv1.Resource) {
	s.Helper()
	_, err := platformtest.Put(s.Context(), s.platform, r, "")
	require.NoError(s, err)
}

// upload puts a picture into the store that no other has.
func (s *site) upload() *platformv1.ObjectReference {
	s.Helper()
	return s.picture("uploads", s.organization.GetId()+"/"+platformtest.NewID())
}

func (s *site) picture(bucket, key string) *platformv1.ObjectReference {
	s.Helper()
	objectstest.PutPicture(s, s.store, bucket, key)
	return &platformv1.ObjectReference{Bucket: bucket, Key: key}
}

// variants lists what was made of an upload.
func (s *site) variants(prefix string, upload *platformv1.ObjectReference) (keys []string) {
	s.Helper()
	data, _, err := s.store.Get(s.Context(), upload.GetBucket(), upload.GetKey(), 1<<20)
	require.NoError(s, err)
	for info, err := range s.store.List(s.Context(), "media", prefix+"/"+s.organization.GetId()+"/"+objects.Hash(data)[:32]+"/") {
		require.NoError(s, err)
		keys = append(keys, info.Key)
	}
	return keys
}

// addPhoto gives a station one more photo.
func (s *site) addPhoto(n int) {
	s.Helper()
	s.stations[n].Photos = append(s.stations[n].Photos, &platformv1.Photo{Object: s.upload()})
	s.putStation(n)
}

// rename changes a station in a way that has no effect.
func (s *site) rename(n int) {
	s.Helper()
	s.stations[n].Name += "."
	s.putStation(n)
}

// askForTables asks to discover a station's tables.
func (s *site) askForTables(n int) {
	s.Helper()
	s.stations[n].TableDiscoveryRequestTime = timestamppb.New(time.Now())
	s.putStation(n)
}

// cut drops the whole log of changes.
func (s *site) cut() {
	s.Helper()
	require.NoError(s, platformtest.Trim(s.Context(), s.platform, 0))
}

// startWorker starts a backend worker of a stack that uses the site's platform.
func (s *site) startWorker(st *stacktest.Stack) *stacktest.Process {
	s.Helper()
	w := stacktest.StartProgram(s, st, stacktest.Program{
		Name: "backend", Args: []string{"--health-address", "127.0.0.1:0"},
		Env: []string{
			platform.EnvURL + "=" + s.platform.URL, platform.EnvToken + "=" + s.platform.Token,
			fmt.Sprintf(`%s={"locations":[{"location":"effects","influx_url":%q}]}`, places.Env, st.Influx),
		},
	})
	w.WaitOutput("serving")
	return w
}

// queue is the name of a queue of the organization.
func (s *site) queue(what string) string { return what + "." + s.organization.GetId() }

// completed lists the jobs of the runs in a queue that have completed, each as often as
// it ran.
func (s *site) completed(c *client.Client, queue string) ([]string, error) {
	s.Helper()
	runs, err := c.Runs.List(s.Context(), client.RunFilter{Queue: queue, Mode: job.ModeQueued, Status: client.RunCompleted})
	var ids []string
	for _, run := range runs {
		ids = append(ids, run.JobID)
	}
	slices.Sort(ids)
	return ids, err
}

// waitCompleted waits for so many runs in a queue, of as many jobs.
func (s *site) waitCompleted(c *client.Client, queue string, count int) {
	s.Helper()
	var ids []string
	stacktest.WaitFor(s, fmt.Sprintf("%d runs in queue %s", count, queue), func() (bool, error) {
		var err error
		ids, err = s.completed(c, queue)
		return len(ids) >= count, err
	})
	require.Len(s, ids, count)
	require.Len(s, slices.Compact(slices.Clone(ids)), count, "a job ran twice: %v", ids)
}
