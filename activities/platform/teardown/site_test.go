package teardown_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/activities/imports"
	"github.com/dendrascience/dendra-jobs/activities/platform/effects"
	"github.com/dendrascience/dendra-jobs/activities/platform/feed"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// common is the location whose database all organizations share, and west its database on
// another mirror.
const (
	common = "common"
	west   = "west_of_all"
)

// site is servers of a test's own with several organizations.
type site struct {
	*testing.T
	stack    *stacktest.Stack
	config   platform.Config
	api      *platform.Client
	store    *objects.Store
	pipeline *pipeline.Client
	client   *client.Client
	jobs     job.Jobs
	writer   *influx.Writer
	influx   influx.Config
	worker   *stacktest.Process
}

func newSite(t *testing.T) *site {
	t.Helper()
	st := stacktest.StartOwn(t, "--only", "nats,s3,influx,platform")
	st.Join(stacktest.StartNamespace(t))
	s := &site{T: t, stack: st, config: platform.Config{URL: st.Platform.URL, Token: st.Platform.Token}, influx: influx.Config{URL: st.Influx}}
	var err error
	s.api, err = platform.New(s.config)
	require.NoError(t, err)
	s.store = objectstest.Open(t, st.S3)
	s.pipeline = st.Pipeline(t)
	s.client = client.New(st.Dial(t), st.Namespace)
	s.jobs = schedules.NewJobs(s.client)
	s.writer, err = influx.NewWriter(s.influx)
	require.NoError(t, err)
	s.put(&platformv1.Resource{Resource: &platformv1.Resource_IntegrationType{IntegrationType: &platformv1.IntegrationType{
		Id: "hobo", Name: "HOBO", Direction: platformv1.IntegrationDirection_INTEGRATION_DIRECTION_INBOUND,
		Scope: platformv1.IntegrationScope_INTEGRATION_SCOPE_ORGANIZATION,
		Variables: []*platformv1.Variable{
			{Name: "database", Type: platformv1.VariableType_VARIABLE_TYPE_STRING},
		},
		Jobs: []*platformv1.IntegrationJob{{JobType: "PrepareHoboTimeFrame", Trigger: &platformv1.JobTrigger{
			Mode: &platformv1.JobTrigger_OneShot{OneShot: &platformv1.OneShotMode{}},
		}}},
	}}})
	s.startWorker()
	for _, j := range []job.Job{
		jobtest.NewJob(integration.ReconcileJobs(nil), "main", job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, integration.ReconcileSpec{}),
		jobtest.NewJob(effects.SideEffects(nil, nil, nil, places.Places{}), "main", job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, effects.Spec{
			Spec: feed.Spec{IterationDuration: job.Duration(2 * time.Second)}, Tables: common,
		}),
	} {
		j.Options.HeartbeatTimeout = job.Duration(4 * time.Second)
		_, err := s.jobs.Apply(t.Context(), job.Set{Provider: job.ProviderTOML, Only: []string{j.ID}, Jobs: []job.Job{j}})
		require.NoError(t, err)
	}
	return s
}

func (s *site) startWorker() {
	s.Helper()
	path, err := os.Executable()
	require.NoError(s, err)
	at := job.EncodeJSON(places.Places{Locations: []influx.Servers{{
		Location: common, InfluxURL: s.stack.Influx, Mirrors: []influx.Mirror{{Name: "west", InfluxURL: s.stack.Influx, Database: west}},
	}}})
	s.worker = stacktest.StartProgram(s.T, s.stack, stacktest.Program{
		Name: "test worker", Path: path, Args: []string{"--address", s.stack.Temporal, "--namespace", s.stack.Namespace},
		Env: []string{workerVariable + "=1", places.Env + "=" + string(at)},
	})
	s.worker.WaitOutput("serving")
}

func (s *site) put(r *platformv1.Resource) {
	s.Helper()
	_, err := platformtest.Put(s.Context(), s.config, r, "")
	require.NoError(s, err)
}

// organization is one with all that it can have.
type organization struct {
	id, slug, config string
	stations         []*platformv1.Station
}

// plant makes an organization with so many things of each kind.
func (s *site) plant(id, slug string, count int) *organization {
	s.Helper()
	o := &organization{id: id, slug: slug, config: "c-" + id}
	record := &platformv1.Organization{Id: id, Name: slug, Slug: slug, IsEnabled: true, Logo: s.upload(id, "logo")}
	s.put(&platformv1.Resource{Resource: &platformv1.Resource_Organization{Organization: record}})
	databases := []string{"", "own_" + pipeline.SafeName(slug) + id[20:]}
	for n, database := range databases {
		station := &platformv1.Station{
			Id: platformtest.NewID(), OrganizationId: id, Name: "Station", Slug: fmt.Sprintf("%s-%d", strings.ReplaceAll(slug, "_", "x"), n), Database: database,
			Photos: []*platformv1.Photo{{Object: s.upload(id, fmt.Sprint(n))}},
		}
		o.stations = append(o.stations, station)
		s.put(&platformv1.Resource{Resource: &platformv1.Resource_Station{Station: station}})
	}
	// In the shared database all have a station of this name.
	ridge := &platformv1.Station{Id: platformtest.NewID(), OrganizationId: id, Name: "Ridge", Slug: "ridge"}
	o.stations = append(o.stations, ridge)
	s.put(&platformv1.Resource{Resource: &platformv1.Resource_Station{Station: ridge}})
	s.put(&platformv1.Resource{Resource: &platformv1.Resource_IntegrationConfig{IntegrationConfig: &platformv1.IntegrationConfig{
		Id: o.config, TypeId: "hobo", OrganizationId: id, Name: slug, Enabled: true, OperationMode: platformv1.OperationMode_OPERATION_MODE_LIVE,
	}}})
	s.points(o, count)
	s.messages(o, count)
	s.archived(o, count)
	s.waitJobs(o, 2)
	stacktest.WaitFor(s, "variants of "+slug, func() (bool, error) { return s.manifests(o) == 3, nil })
	for _, queue := range teardown.Queues(id) { // For each upload, and for each station.
		s.waitQueue(queue, 3)
	}
	return o
}

func (s *site) waitQueue(queue string, completed int64) {
	s.Helper()
	stacktest.WaitFor(s, "queue "+queue, func() (bool, error) {
		q, err := s.client.Queues.Get(s.Context(), queue)
		if errors.Is(err, client.ErrNotFound) {
			return false, nil
		}
		return err == nil && q.Completed == completed && q.Status == client.QueueIdle, err
	})
}

// strangers makes databases that are no organization's, or not all of one's: others write
// into them. An organization of look-alike names has more in its own one.
func (s *site) strangers(neighbour *organization) (databases []string) {
	s.Helper()
	own := neighbour.stations[1].GetDatabase()
	databases = []string{"climate", "empty", "mixed", own}
	for _, database := range databases[:2] {
		_, err := influx.Query(s.Context(), s.influx, "", "CREATE DATABASE "+database)
		require.NoError(s, err)
	}
	require.NoError(s, s.writer.CreateDatabase(s.Context(), "mixed")) // as a load does
	s.write("climate", "cpu")
	s.write("mixed", "cpu")
	s.write(own, "station_"+pipeline.SafeName(neighbour.stations[1].GetSlug())+"_source_x_source_y")
	return databases
}

func (s *site) write(database, measurement string) {
	s.Helper()
	line := []byte(measurement + " v=1 1\n")
	require.NoError(s, s.writer.Write(s.Context(), influx.Target{Database: database, Precision: influx.Seconds}, line))
}

// covet has records of an organization name what is a neighbour's or nobody's: databases,
// a measurement, and objects of all buckets.
func (s *site) covet(o, neighbour *organization, databases []string) {
	s.Helper()
	theirs := func(bucket, prefix string) *platformv1.ObjectReference {
		for info, err := range s.store.List(s.Context(), bucket, prefix) {
			require.NoError(s, err)
			return &platformv1.ObjectReference{Bucket: bucket, Key: info.Key}
		}
		require.Fail(s, "no object", prefix)
		return nil
	}
	stations := []*platformv1.Station{
		{Slug: neighbour.stations[1].GetSlug() + "-source-x", Database: neighbour.stations[1].GetDatabase()},
		{Slug: "front", Photos: []*platformv1.Photo{
			{Object: theirs(archive.DefaultBucket, archive.DataPrefix(neighbour.slug, ""))},
			{Object: theirs("media", places.VariantsPrefix("photos", neighbour.id))},
			neighbour.stations[0].GetPhotos()[0],
		}},
	}
	for n, database := range databases {
		stations = append(stations, &platformv1.Station{Slug: fmt.Sprint("covet-", n), Database: database})
		s.write(database, fmt.Sprintf("station_covet_%d_source_t", n))
	}
	for _, station := range stations {
		station.Id, station.OrganizationId, station.Name = platformtest.NewID(), o.id, "Station"
		s.put(&platformv1.Resource{Resource: &platformv1.Resource_Station{Station: station}})
	}
	answer, err := s.api.Organizations.GetOrganization(s.Context(), &platformv1.GetOrganizationRequest{Id: o.id})
	require.NoError(s, err)
	record := answer.GetOrganization()
	record.Logo = &platformv1.ObjectReference{Bucket: archive.DefaultBucket, Key: "private/picture.png"}
	s.put(&platformv1.Resource{Resource: &platformv1.Resource_Organization{Organization: record}})
	stacktest.WaitFor(s, "changes in quarantine", func() (bool, error) {
		n := 0
		err := s.pipeline.Items(s.Context(), pipeline.ItemFilter{Stage: pipeline.StageChange, Organization: o.id}, func(item pipeline.Item) error {
			if item.Class == errclass.NotAnUpload {
				n++
			}
			return nil
		})
		return n == 2, err
	})
	s.waitQueue(teardown.Queues(o.id)[1], 3+int64(len(stations)))
}

// upload puts a picture into the store that no other has.
func (s *site) upload(organization, name string) *platformv1.ObjectReference {
	s.Helper()
	return s.picture("uploads", organization+"/"+name+".png")
}

func (s *site) picture(bucket, key string) *platformv1.ObjectReference {
	s.Helper()
	objectstest.PutPicture(s, s.store, bucket, key)
	return &platformv1.ObjectReference{Bucket: bucket, Key: key}
}

// manifests counts those of the variants of an organization.
func (s *site) manifests(o *organization) int {
	s.Helper()
	n := 0
	for key := range s.objects() {
		if strings.HasPrefix(key, "media/") && strings.Contains(key, "/"+o.id+"/") && strings.HasSuffix(key, ".json") {
			n++
		}
	}
	return n
}

// points writes measurements of the stations into the databases of both mirrors.
func (s *site) points(o *organization, count int) {
	s.Helper()
	for _, station := range o.stations {
		databases := []string{west}
		if station.GetDatabase() == "" {
			databases = append(databases, common)
		} else {
			databases = append(databases, station.GetDatabase())
		}
		for _, database := range databases {
			require.NoError(s, s.writer.CreateDatabase(s.Context(), database))
			var lines bytes.Buffer
			for n := range count {
				if n > 0 && station.GetSlug() == "ridge" {
					break // All have the same.
				}
				fmt.Fprintf(&lines, "station_%s_source_t%d v=1 1\n", pipeline.SafeName(station.GetSlug()), n)
			}
			require.NoError(s, s.writer.Write(s.Context(), influx.Target{Database: database, Precision: influx.Seconds}, lines.Bytes()))
		}
	}
}

// messages publishes some of each kind.
func (s *site) messages(o *organization, count int) {
	s.Helper()
	var out []pipeline.Outgoing
	for n := range count {
		body := fmt.Appendf(nil, `{"context":{"org_slug":%q,"source":"hobolink","station":"a","table":"t"},"payload":{"n":%d}}`, o.slug, n)
		out = append(out,
			pipeline.Outgoing{Subject: pipeline.RawSubject(pipeline.OperationLive, o.slug, "hobolink"), ID: o.id + fmt.Sprint("raw", n), Body: body},
			pipeline.Outgoing{Subject: pipeline.RawSubject(pipeline.OperationTest, o.slug, "csi"), ID: o.id + fmt.Sprint("test", n), Body: body},
			pipeline.Outgoing{Subject: pipeline.PrepSubject(pipeline.OperationLive, common), ID: o.id + fmt.Sprint("prep", n), Body: body},
		)
	}
	_, err := s.pipeline.Publish(s.Context(), out)
	require.NoError(s, err)
	load := fmt.Appendf(nil, `{"context":{"org_slug":%q},"payload":{"load":1}}`, o.slug)
	_, err = s.pipeline.Quarantine(s.Context(), []pipeline.Quarantined{
		{Stage: pipeline.StageExtract, Operation: "live", Name: o.slug + ".hobolink", Class: "X", Body: []byte("extract " + o.id)},
		{Stage: pipeline.StageChange, Operation: "live", Name: o.id + ".station", Class: "X", Body: []byte("change " + o.id)},
		{Stage: pipeline.StageLoad, Operation: "live", Name: common, Class: "X", Body: load},
	})
	require.NoError(s, err)
	for _, jobID := range []string{"extract_hobo_time_frame." + o.config, imports.BookmarkJob(o.slug)} {
		mark := pipeline.Bookmark{Key: pipeline.BookmarkKey(jobID, "1")}
		_, err = s.pipeline.Advance(s.Context(), mark, time.Unix(1, 0), nil, "test")
		require.NoError(s, err)
	}
	// Each message is in quarantine when the job has seen it: it is no HOBO message.
	stacktest.WaitFor(s, "prepared messages of "+o.slug, func() (bool, error) {
		n := 0
		err := s.pipeline.Items(s.Context(), pipeline.ItemFilter{Stage: pipeline.StagePrepare, Organization: o.slug}, func(pipeline.Item) error { n++; return nil })
		return n == count, err
	})
}

// archived puts objects of both layouts into the archive.
func (s *site) archived(o *organization, count int) {
	s.Helper()
	for n := range count {
		m := pipeline.Stored{Subject: pipeline.RawSubject(pipeline.OperationLive, o.slug, "csi"), Sequence: uint64(n + 1), Time: time.Unix(1, 0).UTC()}
		m.Body = fmt.Appendf(nil, `{"context":{"org_slug":%q,"source":"csi"},"payload":{"recordNumber":%d,"station":%q,"table":"T","timeString":"2026-01-02 03:04:05"}}`, o.slug, n, o.id)
		document, ok := archive.DocumentKey(m)
		require.True(s, ok)
		m.Body = fmt.Appendf(nil, `{"context":{"org_slug":%q}}`, o.slug)
		unnamed, ok := archive.DocumentKey(m)
		require.False(s, ok)
		hour := fmt.Sprintf("source=hobolink/date=2026-01-02/hour=03/RAW.20260101T000000Z-%020d-%020d.ndjson.zst", n, n)
		batch := archive.DataPrefix(o.slug, "") + strings.TrimPrefix(hour, "source=")
		for _, key := range []string{document, unnamed, batch, "raw/v1/conflicts/" + platformtest.NewID() + "/" + strings.TrimPrefix(batch, "raw/v1/")} {
			data := fmt.Appendf(nil, `{"context":{"org_slug":%q},"n":%d}`, o.slug, n)
			_, err := s.store.Put(s.Context(), objects.Object{Bucket: archive.DefaultBucket, Key: key, Data: data, ContentType: "application/json"})
			require.NoError(s, err)
		}
	}
}

// owned lists the jobs of an organization's config.
func (s *site) owned(o *organization) []job.Summary {
	s.Helper()
	found, err := s.jobs.Find(s.Context(), job.Filter{Provider: job.ProviderIntegration})
	require.NoError(s, err)
	return slices.DeleteFunc(found, func(f job.Summary) bool { return !strings.HasSuffix(f.ID, "."+o.config) })
}

func (s *site) waitJobs(o *organization, count int) []job.Summary {
	s.Helper()
	stacktest.WaitFor(s, fmt.Sprintf("%d jobs of %s", count, o.slug), func() (bool, error) { return len(s.owned(o)) == count, nil })
	return s.owned(o)
}

// objects lists all objects with their ETags.
func (s *site) objects() map[string]string {
	s.Helper()
	found := map[string]string{}
	for _, bucket := range []string{"media", "uploads", archive.DefaultBucket} {
		for info, err := range s.store.List(s.Context(), bucket, "") {
			require.NoError(s, err)
			found[bucket+"/"+info.Key] = info.ETag
		}
	}
	return found
}

// everything lists what is in all stores, in words.
func (s *site) everything() []string {
	s.Helper()
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for key, etag := range s.objects() {
		add("object %s %s", key, etag)
	}
	for _, stream := range []string{pipeline.StreamRaw, pipeline.StreamPrepared, pipeline.StreamQuarantine} {
		require.NoError(s, s.pipeline.Each(s.Context(), stream, ">", func(m pipeline.Stored) error {
			add("message %s %d %s %s", stream, m.Sequence, m.Subject, m.Body)
			return nil
		}))
		states, err := s.pipeline.ConsumerStates(s.Context(), stream)
		require.NoError(s, err)
		for _, c := range states {
			if c.Metadata[pipeline.MetadataJob] != "" { // Others are readers of this list.
				add("consumer %s %s %s", stream, c.Name, c.Subject)
			}
		}
	}
	keys, err := s.pipeline.BookmarkKeys(s.Context())
	require.NoError(s, err)
	for _, key := range keys {
		add("bookmark %s", key)
	}
	databases, err := influx.Databases(s.Context(), s.influx)
	require.NoError(s, err)
	for _, database := range databases {
		if database == "_internal" {
			continue
		}
		add("database %s", database)
		names, err := influx.MeasurementNames(s.Context(), s.influx, database)
		require.NoError(s, err)
		for _, name := range names {
			counts, err := influx.Count(s.Context(), s.influx, database, name)
			require.NoError(s, err)
			add("measurement %s %s %v", database, name, counts)
		}
	}
	found, err := s.jobs.Find(s.Context(), job.Filter{})
	require.NoError(s, err)
	for _, f := range found {
		add("job %s %s %s", f.ID, f.Provider, f.DefinitionHash)
	}
	names, err := s.client.Queues.Names(s.Context())
	require.NoError(s, err)
	for _, name := range names {
		q, err := s.client.Queues.Get(s.Context(), name)
		require.NoError(s, err)
		add("queue %s %d", q.Name, q.Completed)
	}
	organizations, err := s.api.Organizations.ListOrganizations(s.Context(), &platformv1.ListOrganizationsRequest{ShowDeleted: true})
	require.NoError(s, err)
	for _, o := range organizations.GetOrganizations() {
		add("organization %s %s", o.GetId(), o.GetEtag())
	}
	slices.Sort(all)
	return all
}

// requireEverything waits until everything is as it was, and shows what differs.
func (s *site) requireEverything(before []string) {
	s.Helper()
	var missing, left []string
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("missing %q, left %q", missing, left)
		}
	})
	stacktest.WaitWithin(s, 15*time.Second, "the lists to settle", func() (bool, error) { // Temporal's lag by about a second.
		now := s.everything()
		missing, left = nil, nil
		for _, line := range before {
			if !slices.Contains(now, line) {
				missing = append(missing, line)
			}
		}
		for _, line := range now {
			if !slices.Contains(before, line) {
				left = append(left, line)
			}
		}
		return len(missing)+len(left) == 0, nil
	})
}

// starter runs the CLI.
func (s *site) starter(code int, args ...string) string {
	s.Helper()
	var stdout, stderr bytes.Buffer
	program := cli.Program{
		Getenv: s.stack.Getenv,
		Stdin:  strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
	}
	args = append(args, "--address", s.stack.Temporal, "--namespace", s.stack.Namespace)
	require.Equal(s, code, program.Execute(s.Context(), args), "%s\n%s", stdout.String(), stderr.String())
	if slices.Contains(args, "json") {
		return stdout.String()
	}
	return stdout.String() + stderr.String()
}

// read runs the CLI and decodes what it prints.
func (s *site) read(code int, into any, args ...string) {
	s.Helper()
	require.NoError(s, json.Unmarshal([]byte(s.starter(code, append(args, "-o", "json")...)), into))
}
