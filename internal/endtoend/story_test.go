package endtoend_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// story is the life of organizations on a system with real workers. Each step waits for
// what follows from it. Faults may happen meanwhile.
type story struct {
	*bench
	chaos    *chaos
	users    *users
	pipeline *pipeline.Client
	vendor   *vendor
	photo    []byte
	// faults are what is still to fail, one for each step that begins.
	faults []strike
	// replaced are texts of the jobs file and what is in their place, in pairs.
	replaced []string
}

func newStory(t *testing.T, st *stacktest.Stack, c *chaos, serials ...string) *story {
	t.Helper()
	b := newBench(t, st)
	nats := st.Pipeline(t)
	return &story{
		bench: b, chaos: c, users: newUsers(b), pipeline: nats,
		replaced: []string{
			`flush_age = "PT10S"`, `flush_age = "PT1S"`,
			"[jobs.live_load_influx_v1.common1.spec]", "[jobs.live_load_influx_v1.common1.spec]\ncreate_databases = [\"own_*\"]",
		},
		vendor: newVendor(t, c.random.Uint64(), serials...), photo: smallPhoto(t, c.random),
	}
}

// callTimeout bounds one look or call: a server may stand still.
const callTimeout = 10 * time.Second

// until waits for a condition. An error means "not yet".
func (s *story) until(what string, cond func(context.Context) (bool, error)) {
	s.Helper()
	var last error
	holds := func() bool {
		ctx, cancel := context.WithTimeout(s.Context(), callTimeout)
		defer cancel()
		var ok bool
		ok, last = cond(ctx)
		return ok && last == nil
	}
	began := time.Now()
	if len(s.faults) > 0 {
		s.chaos.strike(s.faults[0])
		s.faults = s.faults[1:]
	}
	const limit = 4 * time.Minute // an orchestrator that was told nothing looks again within five
	if !s.chaos.await(limit, holds) {
		s.chaos.tell("waited %s for %s; last error: %v", limit, what, last) // At the end of the output, too.
		require.Fail(s, "waited "+limit.String()+" for "+what, "last error: %v", last)
	}
	s.Logf("%s, after %s", what, time.Since(began).Round(10*time.Millisecond))
}

// do has a user do something, again until it succeeds.
func (s *story) do(what string, call func(context.Context) error) {
	s.Helper()
	s.until(what, func(ctx context.Context) (bool, error) { return true, call(ctx) })
}

// command runs bin/starter, again until it succeeds.
func (s *story) command(args ...string) (stdout string) {
	s.Helper()
	s.until("starter "+strings.Join(args, " "), func(context.Context) (bool, error) {
		a := s.starter(append(args, "--timeout", "30s")...)
		stdout = a.stdout
		if a.code != 0 {
			return false, errors.New(a.stderr)
		}
		return true, nil
	})
	return stdout
}

// declare applies the jobs file of make dev, with shorter waits.
func (s *story) declare() {
	s.Helper()
	file := writeFile(s.T, "jobs.toml", readJobs(s.bench, s.replaced...))
	s.command("apply", "--yes", "-f", file)
}

// defineTypes has the integration types of make dev, whose loggers are read every five
// seconds.
func (s *story) defineTypes() {
	s.Helper()
	for _, r := range readSeed(s.T, `"recurEvery": "60s"`, `"recurEvery": "5s"`) {
		if kind := r.GetIntegrationType(); kind != nil {
			s.do("type "+kind.GetId(), func(ctx context.Context) error { return s.users.put(ctx, r) })
		}
	}
}

// create makes an organization with all that it has, and sees it at work.
func (s *story) create(o *organization) {
	s.Helper()
	for i, r := range o.resources(s.vendor.url) {
		s.do(fmt.Sprintf("resource %d of organization %s", i+1, o.slug), func(ctx context.Context) error { return s.users.put(ctx, r) })
	}
	s.jobsAppear(o)
	s.until("points of "+o.slug+" in InfluxDB", func(ctx context.Context) (bool, error) {
		counts, err := influx.Count(ctx, influx.Config{URL: s.st.Influx, Timeout: callTimeout}, "common1", o.measurement())
		want := s.vendor.measured(o.serial)
		for _, n := range counts {
			if n != want {
				return false, fmt.Errorf("%d points, not %d", n, want)
			}
		}
		return len(counts) == 11, err
	})
	for _, station := range o.further() {
		s.send(o, station)
	}
	s.discover(o)
	s.uploadPhoto(o)
	s.until("pictures of others in quarantine", func(ctx context.Context) (bool, error) {
		refused := map[string]bool{}
		err := s.pipeline.Items(ctx, pipeline.ItemFilter{Stage: pipeline.StageChange, Organization: o.id}, func(item pipeline.Item) error {
			refused[item.Name+" "+item.Class] = true
			return nil
		})
		return refused[o.id+".organization NotAnUpload"] && refused[o.id+".station NotAnUpload"], err
	})
	s.until("metadata of "+o.slug+" in Release 2", func(ctx context.Context) (bool, error) { return true, s.inRelease2(ctx, o) })
}

// send publishes a point of a station, as other programs do, and sees it in the database
// that the record of the station names.
func (s *story) send(o *organization, station *platformv1.Station) {
	s.Helper()
	measurement := measurementOf(station.GetSlug(), "t")
	message := pipeline.Message[pipeline.Points]{Context: pipeline.Context{OrgSlug: o.slug}, Payload: pipeline.Points{
		Options: pipeline.PointOptions{Database: station.GetDatabase(), Precision: "ms"},
		Points:  []pipeline.Point{{Measurement: measurement, Fields: map[string]any{"v": 1}, Time: pipeline.Time{Time: s.vendor.now}}},
	}}
	s.do("a point of station "+station.GetSlug(), func(ctx context.Context) error {
		_, err := s.pipeline.Publish(ctx, []pipeline.Outgoing{{
			Subject: pipeline.PrepSubject(pipeline.OperationLive, "common1"), ID: "point of " + station.GetId(), Body: job.EncodeJSON(message),
		}})
		return err
	})
	s.until("the point of station "+station.GetSlug()+" in InfluxDB", func(ctx context.Context) (bool, error) {
		counts, err := influx.Count(ctx, influx.Config{URL: s.st.Influx, Timeout: callTimeout}, station.GetDatabase(), measurement)
		return counts["v"] == 1, err
	})
}

// inRelease2 is an error if a document of an organization is not its own there.
func (s *story) inRelease2(ctx context.Context, o *organization) error {
	ids := map[string]string{o.id: "organizations", o.site: "places", o.station: "stations"}
	for _, station := range o.further() {
		ids[station.GetId()] = "stations"
	}
	for id, service := range ids {
		document, err := s.users.release2.Get(ctx, service, id)
		if err != nil {
			return err
		}
		if name, _ := document["name"].(string); !strings.HasSuffix(name, " "+o.slug) {
			return fmt.Errorf("document %s has the name %q", id, name)
		}
		if service == "stations" && document["organization_id"] != o.id {
			return fmt.Errorf("document %s is that of organization %v", id, document["organization_id"])
		}
	}
	return nil
}

// discover has the tables of all stations discovered anew, and sees that each has its own.
func (s *story) discover(o *organization) {
	s.Helper()
	measurements := map[string]string{o.station: o.measurement()}
	for _, station := range o.further() {
		measurements[station.GetId()] = measurementOf(station.GetSlug(), "t")
	}
	completed := func(ctx context.Context) (int64, error) {
		queue, err := s.client.Queues.Get(ctx, "tables."+o.id)
		if err != nil {
			return 0, err
		}
		return queue.Completed, nil
	}
	var before int64
	s.do("discoveries of "+o.slug, func(ctx context.Context) (err error) {
		before, err = completed(ctx)
		return err
	})
	for id := range measurements {
		s.do("tables of station "+id+" asked for", func(ctx context.Context) error {
			_, err := s.users.Tables.RequestTableDiscovery(ctx, &platformv1.RequestTableDiscoveryRequest{StationId: id})
			return err
		})
	}
	s.until("tables of "+o.slug+" on the platform", func(ctx context.Context) (bool, error) {
		now, err := completed(ctx)
		if err != nil || now < before+int64(len(measurements)) {
			return false, err
		}
		for id, measurement := range measurements {
			tables, err := s.users.Tables.ListTableInfos(ctx, &platformv1.ListTableInfosRequest{StationId: id})
			found := tables.GetTableInfos()
			if err != nil || len(found) != 1 || found[0].GetMeasurement() != measurement || id == o.station && len(found[0].GetFields()) != 11 {
				return false, err
			}
		}
		return true, nil
	})
}

func (s *story) uploadPhoto(o *organization) {
	s.Helper()
	s.do("photo of "+o.slug+" uploaded", func(ctx context.Context) error {
		_, err := s.store.Put(ctx, objects.Object{Bucket: o.upload().GetBucket(), Key: o.upload().GetKey(), Data: s.photo, ContentType: "image/jpeg"})
		return err
	})
	s.do("photo of "+o.slug+" on the platform", func(ctx context.Context) error {
		return s.users.put(ctx, o.stationWith(func(station *platformv1.Station) {
			station.Photos = []*platformv1.Photo{{Object: o.upload()}}
		}))
	})
	s.until("variants of the photo of "+o.slug, func(ctx context.Context) (bool, error) {
		found := map[string]objects.Info{}
		for info, err := range s.store.List(ctx, "media", "photos/"+o.id+"/") {
			if err != nil {
				return false, err
			}
			found[info.Key] = info
		}
		return len(found) == 5 && len(manifests(found)) == 1, nil
	})
}

// jobs are the definitions of the organization's jobs, by id.
func (s *story) jobs(ctx context.Context, o *organization) (map[string]string, error) {
	found := map[string]string{}
	for _, config := range []string{o.account(), o.logger()} {
		for _, provider := range []job.Provider{job.ProviderIntegration, job.IntegrationProvider(config)} {
			jobs, err := schedules.NewJobs(s.client).Find(ctx, job.Filter{Provider: provider})
			if err != nil {
				return nil, err
			}
			for _, j := range jobs {
				if provider != job.ProviderIntegration || j.ID == reconcile.OrchestratorID(config) {
					found[j.ID] = string(job.EncodeJSON(j))
				}
			}
		}
	}
	return found, nil
}

func (s *story) jobsAppear(o *organization) {
	s.Helper()
	s.until("jobs of "+o.slug, func(ctx context.Context) (bool, error) {
		found, err := s.jobs(ctx, o)
		want := []string{o.extractJob(), reconcile.OrchestratorID(o.account()), reconcile.OrchestratorID(o.logger())}
		return slices.Equal(slices.Sorted(maps.Keys(found)), slices.Sorted(slices.Values(want))), err
	})
}

func (s *story) jobsGo(o *organization) {
	s.Helper()
	s.until("end of the jobs of "+o.slug, func(ctx context.Context) (bool, error) {
		found, err := s.jobs(ctx, o)
		return len(found) == 0, err
	})
}

func (s *story) disable(o *organization) {
	s.Helper()
	for _, config := range []string{o.logger(), o.account()} {
		s.do("config "+config+" disabled", func(ctx context.Context) error {
			_, err := s.users.Integrations.DisableIntegrationConfig(ctx, &platformv1.DisableIntegrationConfigRequest{Id: config})
			return err
		})
	}
	s.jobsGo(o)
}

func (s *story) enable(o *organization) {
	s.Helper()
	for _, config := range []string{o.account(), o.logger()} {
		s.do("config "+config+" enabled", func(ctx context.Context) error {
			_, err := s.users.Integrations.EnableIntegrationConfig(ctx, &platformv1.EnableIntegrationConfigRequest{Id: config})
			return err
		})
	}
	s.jobsAppear(o)
}

// planned is the plan of all integrations, and the definitions of the organization's jobs.
type planned struct {
	plan string
	jobs map[string]string
}

func (s *story) planned(o *organization) (p planned) {
	s.Helper()
	s.until("nothing to reconcile", func(ctx context.Context) (bool, error) {
		var run struct {
			Output json.RawMessage `json:"output"`
		}
		if err := json.Unmarshal([]byte(s.starter("reconcile", "--dry-run", "-o", "json").stdout), &run); err != nil {
			return false, err
		}
		var report struct {
			Configs []json.RawMessage `json:"configs"`
		}
		p.plan = string(run.Output)
		return json.Unmarshal(run.Output, &report) == nil && len(report.Configs) == 0, nil
	})
	s.do("definitions of the jobs of "+o.slug, func(ctx context.Context) (err error) {
		p.jobs, err = s.jobs(ctx, o)
		return err
	})
	return p
}

// tearDown marks an organization as deleted.
func (s *story) tearDown(o *organization, grace time.Duration) {
	s.Helper()
	s.command("teardown", "start", o.slug, "--yes", "--delete-archive", "--grace", job.Duration(grace).String())
	s.jobsGo(o)
}

func (s *story) untilGone(o *organization) {
	s.Helper()
	s.until("end of the record of "+o.slug, func(ctx context.Context) (bool, error) {
		_, err := s.users.Organizations.GetOrganization(ctx, &platformv1.GetOrganizationRequest{Id: o.id})
		if connect.CodeOf(err) == connect.CodeNotFound {
			return true, nil
		}
		return false, err
	})
}

// quiet waits until nothing changes any more, and gives what is there.
func (s *story) quiet() inventory {
	s.Helper()
	var last inventory
	var since time.Time
	s.until("nothing to change any more", func(ctx context.Context) (bool, error) {
		now, err := s.inventory(ctx)
		if err != nil {
			return false, err
		}
		waiting, err := s.waiting(ctx)
		if err != nil {
			return false, err
		}
		if waiting || last == nil || len(last.differences(now)) > 0 {
			last, since = now, time.Now()
		}
		return time.Since(since) > 3*time.Second, nil // Batches of the archive are a second old.
	})
	return last
}

// waiting reports whether a message is not yet prepared, loaded or archived.
func (s *story) waiting(ctx context.Context) (bool, error) {
	for _, name := range []string{pipeline.StreamRaw, pipeline.StreamPrepared} {
		stream, err := s.pipeline.JetStream().Stream(ctx, name)
		if err != nil {
			return false, err
		}
		consumers := stream.ListConsumers(ctx)
		for info := range consumers.Info() {
			if info.Config.Durable != "" && info.NumPending+uint64(info.NumAckPending) > 0 {
				return true, nil
			}
		}
		if err := consumers.Err(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// requireInventory waits until the servers hold what they are to hold.
func (s *story) requireInventory(want inventory) {
	s.Helper()
	var differences []string
	s.until("what the servers held before", func(ctx context.Context) (bool, error) {
		now, err := s.inventory(ctx)
		if err != nil {
			return false, err
		}
		found := want.differences(now)
		slices.Sort(found)
		if len(found) > 0 && !slices.Equal(found, differences) {
			s.Logf("differences to what was there before:\n%s", strings.Join(found, "\n"))
		}
		differences = found
		if len(found) > 0 {
			return false, errors.New(strings.Join(found, "; "))
		}
		return true, nil
	})
}

// tell is the story of four organizations with look-alike names. Each has a station in the
// database of the one that comes next, and names its pictures. They come, work, and go, one
// after the other: each step leaves what was there before, and nothing of the one that goes.
func (s *story) tell() {
	s.Helper()
	all := []*organization{
		newOrganization(1, "org1", "north1", "21234002"), newOrganization(2, "org-1", "north-1", "21234003"),
		newOrganization(3, "org-10", "north-10", "21234004"), newOrganization(4, "org", "north", "21234001"),
	}
	s.declare()
	s.defineTypes()
	s.do("a picture that is nobody's", func(ctx context.Context) error {
		_, err := s.store.Put(ctx, objects.Object{Bucket: private().GetBucket(), Key: private().GetKey(), Data: s.photo, ContentType: "image/jpeg"})
		return err
	})
	var before []inventory
	for i, o := range all {
		o.neighbour = all[(i+1)%len(all)]
		before = append(before, s.quiet())
		s.create(o)
	}
	org := all[3]
	s.disable(org)
	s.enable(org)

	planned := s.planned(org)
	require.Len(s, planned.jobs, 3)
	s.tearDown(org, time.Hour)
	s.command("teardown", "undo", org.slug)
	s.jobsAppear(org)
	require.Equal(s, planned, s.planned(org))

	for _, o := range all {
		s.discover(o) // All databases have what they will ever have.
	}
	before[0]["database common1"] = "" // that of the location
	for i, o := range slices.Backward(all) {
		s.tearDown(o, 2*time.Second)
		s.untilGone(o)
		s.requireInventory(before[i])
		for _, o := range all { // Release 2 keeps all.
			s.do("documents of "+o.slug, func(ctx context.Context) error { return s.inRelease2(ctx, o) })
		}
	}
}

// underFaults has every step of the story begin with a fault, of servers and workers, and
// the change feed drop 30 % of the changes and send 10 % twice.
func underFaults(t *testing.T) {
	t.Helper()
	so := readSoak(t)
	c := newChaos(t, stacktest.Random(t))
	nats, database, api := stacktest.StartOwn(t, "--only", "nats"), stacktest.StartOwn(t, "--only", "influx"), stacktest.StartOwn(t, "--only", "platform")
	st := stacktest.StartOwn(t, "--only", "temporal,s3")
	st.Join(nats, database, api)
	s := newStory(t, st, c, "21234001", "21234002", "21234003", "21234004")
	require.NoError(t, platformtest.Fault(t.Context(), s.users.config, 0.3, 0.1, c.random.Uint64()))
	c.addServers("NATS", nats)
	c.addServers("InfluxDB", database)
	c.addServers("Platform API", api)
	c.addServers("Temporal with S3", st)
	secret := "DENDRA_SECRET_VENDOR=owners: *\n\n" + vendorToken
	for _, name := range []string{"backend", "extract", "load"} {
		for i := range 2 {
			c.addWorker(s.bench, name, fmt.Sprintf("%s-%d", name, i), secret)
		}
	}
	s.faults = c.schedule(so.kills)
	// What the feed does not tell is found by looking at everything.
	s.replaced = append(s.replaced, `continuous = { interval = "PT1S" }`, "continuous = { interval = \"PT0.2S\" }\nheartbeat_timeout = \"PT3S\"",
		"[jobs.side_effects_subscribe_to_changes.main.spec]", "[jobs.side_effects_subscribe_to_changes.main.spec]\nresync_every = \"PT5S\"",
		`"Metadata of Release 3 to Release 2"`, "\"Metadata of Release 3 to Release 2\"\nspec = { resync_every = \"PT5S\" }",
		`"Jobs of all integration configs"`, "\"Jobs of all integration configs\"\nspec = { window = \"PT5S\" }")
	began := time.Now()
	s.tell()
	c.mend()
	t.Logf("told in %s, with %d faults left", time.Since(began).Round(time.Second), len(s.faults))
}

// TestAnOrganizationUnderFaults has the same end as without them.
func TestAnOrganizationUnderFaults(t *testing.T) {
	t.Parallel()
	if testing.Short() || !stacktest.Long() && os.Getenv("DENDRA_SOAK_KILLS") == "" {
		t.Skip("make soak runs it")
	}
	underFaults(t)
}

// TestAnOrganizationFromItsFirstStationToItsEnd has an organization made, read, disabled
// and torn down through the platform alone, beside others with similar names.
func TestAnOrganizationFromItsFirstStationToItsEnd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
	c := newChaos(t, stacktest.Random(t))
	s := newStory(t, stacktest.StartOwn(t), c, "21234001", "21234002", "21234003", "21234004")
	for _, name := range []string{"backend", "extract", "load"} {
		s.worker(name, "DENDRA_SECRET_VENDOR=owners: *\n\n"+vendorToken)
	}
	s.tell()
}
