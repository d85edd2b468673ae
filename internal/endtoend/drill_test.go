package endtoend_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// drill is a stack whose servers are saved at several moments, and put together again
// from what was saved at different ones: docs/backup.md.
type drill struct {
	*bench
	loggers  *loggers
	location *location
	random   *rand.Rand
	ports    []string
	workers  []*stacktest.Process
	items    []string // keys of all items that were acknowledged
	photos   map[string][]byte
	ended    map[string]bool // those that had ended when the servers were lost
	began    time.Time       // when the servers were restored
}

// moment is what was saved at one.
type moment struct {
	folder string // a folder for each server, as in a data folder of devstack
	items  int    // that were acknowledged before
	clock  time.Time
}

// Folders of a data folder of devstack.
const (
	ofTemporal = "temporal"
	ofNATS     = "nats"
	ofInflux   = "influx"
	ofS3       = "s3"
)

// TestDrill restores the servers from backups of different moments, has them go on, and
// compares with the ledgers of the vendors and of the caller what was lost and what came
// twice.
func TestDrill(t *testing.T) {
	t.Parallel()
	if !stacktest.Long() {
		t.Skip("runs with DENDRA_TEST_SOAK=1: make drill")
	}
	d := newDrill(t)
	first := d.save()
	d.work()
	second := d.save()
	d.work()
	d.loaded(d.upTo(*d.loggers.now.Load()))
	stacktest.WaitFor(t, "all to be archived", func() (bool, error) {
		positions, err := d.loggers.positions(pipeline.StreamRaw)
		done := err == nil && len(positions) > 0
		for _, p := range positions {
			done = done && p.Done()
		}
		return done, err
	})
	third := d.save()
	d.lose()

	for _, c := range []struct {
		name                 string
		temporal, nats, rest moment
		generation           int // of the archive, which is ahead of NATS
	}{
		{name: "all of one moment", temporal: second, nats: second, rest: second},
		{name: "in the order of the page", temporal: first, nats: second, rest: third, generation: 1},
		{name: "NATS older than Temporal", temporal: second, nats: first, rest: third, generation: 1},
	} {
		d.restored(c.name, map[string]moment{ofTemporal: c.temporal, ofNATS: c.nats, ofInflux: c.rest, ofS3: c.rest}, func() {
			known := d.known()
			d.Logf("%s: Temporal knows %d of %d items", c.name, known, len(d.items))
			require.GreaterOrEqual(t, known, c.temporal.items, "items that were acknowledged before Temporal's backup")
			if c.generation > 0 {
				declare(d.bench, d.jobs(c.generation))
				require.NoError(t, d.loggers.pipeline.JetStream().DeleteConsumer(t.Context(), pipeline.StreamRaw, archive.ConsumerName("post_to_archive.drill", 0)))
			}
			// The caller sends all again, under the same keys.
			d.send(d.items)
			d.loggers.pass(d.loggers.to.Sub(d.loggers.from)) // the rest of their time
			d.everyItemEnded(c.name)
			d.everyReading(c.name)
		})
	}
	d.restored("the archive alone", map[string]moment{ofS3: third}, func() { d.replay(third) })
}

func newDrill(t *testing.T) *drill {
	t.Helper()
	d := &drill{bench: newBench(t, stacktest.StartOwn(t)), random: stacktest.Random(t), ended: map[string]bool{}, photos: map[string][]byte{}}
	var err error
	d.ports, err = d.st.PortFlags()
	require.NoError(t, err)
	d.loggers = newLoggers(d.bench, "drill", 3, 8*time.Hour, d.random)
	d.location = newLocation(d.bench, "hobo", d.random.Uint64())
	d.startWorkers()
	declare(d.bench, d.jobs(0))
	d.work()
	return d
}

// jobs are jobs of all modes: a recurring one, which reads HOBO loggers, and continuous ones.
// Photos are queued, and each fifth is a one-shot.
func (d *drill) jobs(generation int) string {
	loggers := strings.Replace(d.loggers.jobs(), `flush_age = "PT1S"`, fmt.Sprintf(`flush_age = "PT1S", generation = %d`, generation), 1)
	recurring := strings.Replace(d.location.jobs("P2D", "PT12H", 5000), `recur_every = "P1D"`, `recur_every = "PT4S"`, 1)
	return loggers + recurring
}

func (d *drill) startWorkers() {
	d.Helper()
	d.workers = []*stacktest.Process{d.worker("extract", d.location.secret()), d.worker("load"), d.worker("backend")}
}

// work lets two hours of loggers go by, and puts photos in, of which some are done.
func (d *drill) work() {
	d.Helper()
	acknowledged := d.loggers.acknowledged()
	d.loggers.pass(2 * time.Hour)
	var keys []string
	for range 10 {
		keys = append(keys, fmt.Sprintf("photo-%03d", len(d.items)+len(keys)))
	}
	for _, key := range keys {
		d.photos[key] = smallPhoto(d.T, d.random)
	}
	d.send(keys)
	d.items = append(d.items, keys...)
	stacktest.WaitFor(d, "some of the work to be done", func() (bool, error) {
		run, err := d.client.Runs.Get(d.Context(), itemRun(keys[1+d.random.IntN(5)]))
		return err == nil && !run.Ended.IsZero() && d.loggers.acknowledged() > acknowledged, nil
	})
}

// send uploads photos, and puts them into the queue, or each fifth in as a one-shot, under
// their keys.
func (d *drill) send(keys []string) {
	d.Helper()
	for _, key := range keys {
		d.upload(key, d.photos[key])
	}
	var lines strings.Builder
	for n, key := range keys {
		spec := map[string]any{"bucket": "uploads", "key": key}
		if n%5 == 4 {
			text, err := json.Marshal(spec)
			require.NoError(d, err)
			d.ok("run", "--type", "GeneratePhotoVariantsToMinio", "--key", key, "--spec", string(text), "--detach")
			continue
		}
		text, err := json.Marshal(map[string]any{"key": key, "spec": spec})
		require.NoError(d, err)
		lines.Write(append(text, '\n'))
	}
	file := writeFile(d.T, "photos.jsonl", lines.String())
	d.ok("queues", "enqueue", "photos", "--type", "GeneratePhotoVariantsToMinio", "--file", file)
}

func itemRun(key string) client.RunRef {
	return client.RunRef{WorkflowID: "job/generate_photo_variants_to_minio." + key}
}

// save copies the folders of all servers at one moment, as the snapshot of a file system.
func (d *drill) save() moment {
	d.Helper()
	m := moment{folder: filepath.Join(d.TempDir(), "saved"), items: len(d.items), clock: *d.loggers.now.Load()}
	d.st.Signal(d.T, syscall.SIGSTOP)
	defer d.st.Signal(d.T, syscall.SIGCONT)
	require.NoError(d, os.CopyFS(m.folder, os.DirFS(d.st.Data)))
	return m
}

// lose ends everything, as a fire does.
func (d *drill) lose() {
	d.Helper()
	for _, key := range d.items {
		if run, err := d.client.Runs.Get(d.Context(), itemRun(key)); err == nil && !run.Ended.IsZero() {
			d.ended[key] = true
		}
	}
	d.Logf("lost: %d items acknowledged, %d ended", len(d.items), len(d.ended))
	d.end()
}

func (d *drill) end() {
	for _, w := range d.workers {
		w.Kill()
	}
	d.st.Kill()
}

// restored starts new servers on what was saved, and new workers.
func (d *drill) restored(name string, from map[string]moment, then func()) {
	d.Helper()
	folder := filepath.Join(d.TempDir(), "data")
	require.NoError(d, os.MkdirAll(folder, 0o700))
	d.began = time.Now()
	for part, m := range from {
		require.NoError(d, os.CopyFS(filepath.Join(folder, part), os.DirFS(filepath.Join(m.folder, part))))
	}
	fresh := newBench(d.T, stacktest.StartOwn(d.T, append([]string{"--data", folder}, d.ports...)...))
	*d.bench = *fresh
	d.loggers.pipeline, d.location.pipeline = d.st.Pipeline(d), d.st.Pipeline(d)
	d.startWorkers()
	d.Logf("%s: all servers and workers after %s", name, time.Since(d.began).Round(time.Millisecond))
	then()
	d.Logf("%s: done after %s", name, time.Since(d.began).Round(time.Second))
	d.end()
}

// known counts the items that Temporal knows.
func (d *drill) known() (known int) {
	d.Helper()
	waiting, err := d.client.Queues.Peek(d.Context(), "photos", 0, 1000)
	require.NoError(d, err)
	known = len(waiting)
	for _, key := range d.items {
		if _, err := d.client.Runs.Get(d.Context(), itemRun(key)); err == nil {
			known++
		}
	}
	return known
}

// everyItemEnded waits for all items, and tells how many were done twice.
func (d *drill) everyItemEnded(name string) {
	d.Helper()
	twice := 0
	for _, key := range d.items {
		var run *client.RunDetail
		stacktest.WaitFor(d, "the end of "+key, func() (bool, error) {
			var err error
			run, err = d.client.Runs.Get(d.Context(), itemRun(key))
			return err == nil && !run.Ended.IsZero(), nil
		})
		require.Equal(d, client.RunCompleted, run.Status, run.Error)
		if d.ended[key] && run.Started.After(d.began) {
			twice++
		}
	}
	require.Len(d, manifests(d.listing("photos")), len(d.items), "each photo has its variants")
	d.Logf("%s: %d of %d items ran a second time", name, twice, len(d.ended))
}

// everyReading compares what is stored with what the vendors have.
func (d *drill) everyReading(name string) {
	d.Helper()
	c := newChaos(d.T, d.random)
	d.loggers.requireRead(c)
	d.loggers.requireDrained(c)
	points := d.loggers.requireLoaded()
	messages := d.loggers.messages(pipeline.StreamRaw)
	d.location.requireStored()
	audit := d.starter("archive", "audit", "--deep")
	d.Logf("%s: %d points, %d raw messages; audit of the archive: exit code %d\n%s", name, points, len(messages), audit.code, audit.stdout)
}

// upTo is what the loggers had measured at a moment.
func (d *drill) upTo(clock time.Time) map[string]rows {
	d.Helper()
	want := d.loggers.ledger()
	for _, points := range want {
		maps.DeleteFunc(points, func(at int64, _ map[string]any) bool { return at > clock.UnixMilli() })
	}
	return want
}

// loaded waits until the database has exactly these points of LoggerNet's loggers.
func (d *drill) loaded(want map[string]rows) {
	d.Helper()
	stacktest.WaitWithin(d, 3*time.Minute, "the points of the loggers", func() (bool, error) {
		found, err := influx.Query(d.Context(), influx.Config{URL: d.st.Influx}, d.loggers.name, "SHOW MEASUREMENTS")
		if err != nil || len(found) == 0 || len(found[0].Values) < len(want) {
			return false, nil //nolint:nilerr // The loader makes the database.
		}
		for measurement, points := range want {
			if len(differences(points, d.loggers.stored(d.st.Influx, measurement))) > 0 {
				return false, nil
			}
		}
		return true, nil
	})
}

// replay loads the messages of the archive into empty databases.
func (d *drill) replay(m moment) {
	d.Helper()
	declare(d.bench, fmt.Sprintf(`
[jobs.prepare_campbell_scientific_ldmp.bulk]
continuous = { interval = "PT0.1S" }
spec = { organization = "drill", location = "drill", operation_mode = "bulk" }

[jobs.prepare_hobo_time_frame.bulk]
continuous = { interval = "PT0.1S" }
spec = { organization = "ucnrs", location = "hobo", operation_mode = "bulk", loggers = [
  { serial = %[2]q, measurement = "blue_oak" }, { serial = %[3]q, measurement = "rancho" },
] }

[jobs.live_load_influx_v1.drill-bulk]
continuous = { interval = "PT0.1S" }
spec = { location = "drill", influx_url = %[1]q, operation_mode = "bulk" }

[jobs.live_load_influx_v1.hobo-bulk]
continuous = { interval = "PT0.1S" }
spec = { location = "hobo", influx_url = %[1]q, operation_mode = "bulk" }
`, d.st.Influx, d.location.vendor.Options().Loggers[0], d.location.vendor.Options().Loggers[1]))
	for organization, source := range map[string]string{"drill": "csi", "ucnrs": "hobolink"} {
		d.completed("--type", "ReplayArchive", "--key", organization, "--spec",
			fmt.Sprintf(`{"organization":%q,"source":%q,"from":"2000-01-01T00:00:00Z","to":"2100-01-01T00:00:00Z"}`, organization, source))
	}
	d.loaded(d.upTo(m.clock))
	total := d.location.total()
	stacktest.WaitFor(d, "the readings of HOBO loggers", func() (bool, error) {
		n, err := d.location.allPoints()
		return n == total, err
	})
	d.location.requireStored()
}
