package exports_test

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/activities/exports"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/cadence"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/schedules"
)

// steady writes n rows of one field, ten minutes apart, without those that are left out.
func (d *desk) steady(measurement string, n int, without func(i int) bool) {
	d.Helper()
	var lines strings.Builder
	for i := range n {
		if without == nil || !without(i) {
			lines.WriteString(line(measurement, d.spec.Start.Add(time.Duration(i)*10*time.Minute), fmt.Sprintf("v=%d", i)))
		}
	}
	d.write(d.database, lines.String())
}

// TestManifestAndLinks: what is in the manifest, and that whoever has the link reads all of
// the export, without keys of the store.
func TestManifestAndLinks(t *testing.T) {
	t.Parallel()
	d := newDesk(t, stacktest.Start(t))
	id := d.station(d.organization, "ridge", d.database)
	d.put(&platformv1.Resource{Resource: &platformv1.Resource_Datastream{Datastream: d.datastream(id, "station_ridge_source_tenmin", "v", "")}})
	d.put(&platformv1.Resource{Resource: &platformv1.Resource_Datastream{Datastream: d.datastream(id, "station_ridge_source_hour", "v", "v = v * 0.1")}})
	d.steady("station_ridge_source_tenmin", 3000, func(i int) bool { return i == 5 || i >= 1000 && i < 1144 })
	d.steady("station_ridge_source_hour", 3, nil)
	d.spec.Stations, d.spec.Licence = []string{"ridge"}, "CC-BY-4.0"
	report, m := d.export()
	require.Equal(t, "dendra.export/1", m.Format)
	require.Equal(t, []string{"CC-BY-4.0", d.organization, "o" + d.organization}, []string{m.Licence, m.OrganizationID, m.Question.Organization})
	require.Len(t, m.Series, 2)
	tenmin := m.Series[1]
	require.Equal(t, []string{"tenmin", "ridge", d.database}, []string{tenmin.Table, tenmin.Station.Slug, tenmin.Database})
	require.Equal(t, []exports.Column{{Field: "v", Type: influx.FieldFloat, Units: "DegreeCelsius"}}, tenmin.Columns)
	require.Empty(t, m.Series[0].Columns[0].Units, "they are those of another number")
	require.EqualValues(t, 3000-145, tenmin.Rows)
	require.EqualValues(t, 2, tenmin.Gaps)
	at := func(i int) time.Time { return d.spec.Start.Add(time.Duration(i) * 10 * time.Minute) }
	require.Equal(t, []cadence.Gap{{From: at(999), To: at(1144)}, {From: at(4), To: at(6)}}, tenmin.LongestGaps)
	require.Equal(t, []time.Time{at(0), at(2999)}, []time.Time{tenmin.First, tenmin.Last})
	require.Greater(t, tenmin.Parts, 1)
	require.Equal(t, []string{"time", "v [DegreeCelsius]"}, csvRows(t, d.spec.Compression, d.read(m.Parts[1].Key))[0])
	require.EqualValues(t, 3003-145, report.Rows)
	require.NotContains(t, string(d.read(report.Manifest)), "X-Amz", "it has no link")

	require.WithinDuration(t, time.Now().Add(time.Hour), report.LinkEnds, time.Minute)
	links := strings.Fields(string(get(t, report.Link)))
	require.Len(t, links, 1+len(m.Parts))
	require.Equal(t, d.read(report.Manifest), get(t, links[0]))
	for i, part := range m.Parts {
		require.Equal(t, part.SHA256, objects.Hash(get(t, links[i+1])))
	}
	_, err := fetch(t, strings.Replace(report.Link, "Signature=", "Signature=0", 1))
	require.Error(t, err)
}

func (d *desk) datastream(station, measurement, field, evaluate string) *platformv1.Datastream {
	d.Helper()
	params, err := structpb.NewStruct(map[string]any{"query": map[string]any{"db": d.database, "fc": measurement, "sc": `"` + field + `" AS x`}})
	require.NoError(d, err)
	return &platformv1.Datastream{
		Id: platformtest.NewID(), OrganizationId: d.organization, StationId: station, Name: field,
		Terms:            map[string]*platformv1.Terms{"dt": {Labels: map[string]string{"Unit": "DegreeCelsius"}}},
		DatapointsConfig: []*platformv1.DatapointsConfig{{Path: "/influx/select", Params: params, Evaluate: evaluate}},
	}
}

func fetch(t *testing.T, link string) ([]byte, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", response.Status)
	}
	return data, nil
}

func get(t *testing.T, link string) []byte {
	t.Helper()
	data, err := fetch(t, link)
	require.NoError(t, err)
	return data
}

// TestAggregates computes each aggregate by itself.
func TestAggregates(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	d := newDesk(t, stacktest.Start(t))
	d.station(d.organization, "ridge", d.database)
	d.spec.Stations = []string{"ridge"}
	l := written(d, random, "station_ridge_source_t", day(2024, 2, 27), 3000, true)
	d.write(d.database, line("station_ridge_source_t", day(2024, 2, 27).Add(-time.Hour), "a_float=1.5", `c_text="x"`))
	l = ledger{measurement: l.measurement, fields: l.fields, times: append([]int64{day(2024, 2, 27).Add(-time.Hour).UnixNano()}, l.times...), rows: append([][]any{rowOf(l.fields)}, l.rows...)}
	if !slices.Contains(l.fields, "a_float") {
		l.fields = slices.Insert(slices.Clone(l.fields), 0, "a_float")
		for i, row := range l.rows {
			l.rows[i] = slices.Insert(slices.Clone(row), 0, any(nil))
		}
		l.rows[0][0] = 1.5
	}
	column := slices.Index(l.fields, "a_float")
	for name, reduce := range map[exports.Aggregate]func(values []float64) float64{
		"min":   slices.Min[[]float64],
		"max":   slices.Max[[]float64],
		"sum":   sum,
		"mean":  func(v []float64) float64 { return sum(v) / float64(len(v)) },
		"count": func(v []float64) float64 { return float64(len(v)) },
	} {
		for _, every := range []time.Duration{time.Hour, 7 * 24 * time.Hour} {
			d.spec.Aggregate, d.spec.Every, d.spec.Fields = name, job.Duration(every), []string{"a_float"}
			d.spec.Start, d.spec.End = day(2023, 11, 2), day(2025, 11, 6) // Thursdays, as 1970 began on one
			d.at.Exports.PointsPerSecond = 1500
			if random.IntN(2) == 0 {
				d.at.Exports.PointsPerSecond = 1 << 40
			}
			want := map[int64][]float64{}
			for i, at := range l.times {
				if v, ok := l.rows[i][column].(float64); ok && at >= d.spec.Start.UnixNano() && at < d.spec.End.UnixNano() {
					want[at-at%int64(every)] = append(want[at-at%int64(every)], v)
				}
			}
			_, m := d.export()
			var times []int64
			for _, part := range m.Parts {
				for _, cells := range csvRows(t, d.spec.Compression, d.read(part.Key))[1:] {
					at, err := time.Parse(time.RFC3339Nano, cells[0])
					require.NoError(t, err)
					times = append(times, at.UnixNano())
					require.InDelta(t, reduce(want[at.UnixNano()]), d.parsed("float", cells[1]), 1e-6*math.Max(1, math.Abs(sum(want[at.UnixNano()]))), "%s of %s at %s", name, every, at)
				}
			}
			require.Equal(t, slices.Sorted(maps.Keys(want)), times)
		}
	}
	d.spec.Aggregate, d.spec.Fields = "count", nil
	_, m := d.export()
	for _, c := range m.Series[0].Columns {
		require.Equal(t, influx.FieldInteger, c.Type)
	}
	d.spec.Aggregate = "mean"
	_, m = d.export()
	require.Contains(t, strings.Join(m.Notes, "\n"), "field c_text of measurement station_ridge_source_t is left out: it is a string, and has no mean")
}

// rowOf is a row that has a_float alone, if the fields have it.
func rowOf(fields []string) []any {
	row := make([]any, len(fields))
	if i := slices.Index(fields, "a_float"); i >= 0 {
		row[i] = 1.5
	}
	return row
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}

// TestAnAttemptGoesOnAtTheNextPart ends attempts wherever they are, with and without what
// they have saved: the files are those of an attempt that nothing disturbed.
func TestAnAttemptGoesOnAtTheNextPart(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	d := newDesk(t, stacktest.Start(t))
	d.station(d.organization, "ridge", d.database)
	d.station(d.organization, "peak", d.database)
	d.spec.Stations = []string{"ridge", "peak"}
	d.spec.PartPoints = 500
	want := map[string]ledger{}
	for _, name := range []string{"station_peak_source_a", "station_ridge_source_b", "station_ridge_source_c"} {
		want[name] = written(d, random, name, day(2024, 2, 28), 1000, false)
	}
	d.spec.Start, d.spec.End = day(2024, 1, 1), day(2029, 1, 1)
	id := platformtest.NewID()
	typ, run := d.newRun(id)
	ends := 0
	for ; ; ends++ {
		least := random.IntN(4)
		var running *jobtest.Run
		_, running = d.newRun(id, jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) {
			if least--; least < 0 && ends < 12 {
				r.Stop()
			}
		}))
		var saved map[string]any
		if kept, err := run.SavedCursor(&saved); err == nil && kept && random.IntN(2) == 0 {
			_, running = d.newRun(id, jobtest.WithCursor(saved), jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) {
				if least--; least < 0 && ends < 12 {
					r.Stop()
				}
			}))
		}
		result, err := typ.Handle(t.Context(), running)
		run = running
		if err == nil {
			report, m := d.report(result)
			d.requireFiles(want, report, m)
			break
		}
		require.ErrorIs(t, err, job.ErrStopped)
	}
	require.Greater(t, ends, 3)

	// The same run once more, as after a result that was lost, finds everything.
	_, again := d.newRun(id)
	result, err := typ.Handle(t.Context(), again)
	require.NoError(t, err)
	report, m := d.report(result)
	d.requireFiles(want, report, m)
}

// TestAWorkerThatIsKilledGoesOn kills the process between parts.
func TestAWorkerThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	random := stacktest.Random(t)
	st := stacktest.Start(t)
	d := newDesk(t, st)
	d.station(d.organization, "ridge", d.database)
	d.spec.Stations, d.spec.PartPoints = []string{"ridge"}, 500
	want := map[string]ledger{"station_ridge_source_t": written(d, random, "station_ridge_source_t", day(2024, 2, 28), 3000, false)}
	d.spec.Start, d.spec.End = day(2024, 1, 1), day(2030, 1, 1)
	d.at.Exports.PointsPerSecond = 1000
	st = stacktest.StartNamespace(t)
	jobs := client.New(st.Dial(t), st.Namespace)
	j := jobtest.NewJob(exports.Datastreams(nil, nil, places.Places{}), d.organization, job.Trigger{OneShot: &job.OneShot{}}, d.spec)
	j.Options.HeartbeatTimeout = job.Duration(4 * time.Second)
	worker := d.startWorker(st)
	_, err := schedules.NewJobs(jobs).Apply(t.Context(), job.Set{Provider: job.ProviderTOML, Only: []string{j.ID}, Jobs: []job.Job{j}})
	require.NoError(t, err)
	for range 2 {
		least := len(d.keys(d.organization)) + 1 + random.IntN(2)
		stacktest.WaitFor(t, "another part", func() (bool, error) { return len(d.keys(d.organization)) >= least, nil })
		worker.Kill()
		worker = d.startWorker(st)
	}
	var detail *client.JobDetail
	stacktest.WaitFor(t, "the end of the run", func() (bool, error) {
		detail, err = jobs.Jobs.Get(t.Context(), j.ID)
		return err == nil && len(detail.Runs) > 0 && detail.Runs[0].Status == client.RunCompleted, err
	})
	run, err := jobs.Runs.Get(t.Context(), detail.Runs[0].RunRef)
	require.NoError(t, err)
	report, m := d.report(job.Result{Output: run.Output.Result.Output})
	d.requireFiles(want, report, m)
}

func (d *desk) startWorker(st *stacktest.Stack) *stacktest.Process {
	d.Helper()
	path, err := os.Executable()
	require.NoError(d, err)
	w := stacktest.StartProgram(d.TB, st, stacktest.Program{
		Name: "test worker", Path: path, Args: []string{"--address", st.Temporal, "--namespace", st.Namespace},
		Env: []string{
			workerVariable + "=1", places.Env + "=" + string(job.EncodeJSON(d.at)),
			platform.EnvURL + "=" + d.config.URL, platform.EnvToken + "=" + d.config.Token,
		},
	})
	w.WaitOutput("serving")
	return w
}

// TestDryRun counts what an export would have, and leaves nothing behind.
func TestDryRun(t *testing.T) {
	t.Parallel()
	d := newDesk(t, stacktest.Start(t))
	d.station(d.organization, "ridge", d.database)
	d.spec.Stations, d.spec.DryRun = []string{"ridge"}, true
	d.steady("station_ridge_source_tenmin", 144*20, func(i int) bool { return i/144 >= 5 && i/144 < 8 || i/144 == 12 })
	d.spec.End = d.spec.Start.Add(21 * 24 * time.Hour)
	report, _ := d.export()
	require.Equal(t, exports.Totals{Rows: 144 * 16, Values: 144 * 16, Gaps: 3, Bytes: 144 * 16 * 29}, report.Totals)
	at := func(i int) time.Time { return d.spec.Start.Add(time.Duration(i) * 24 * time.Hour) }
	require.Equal(t, []exports.Estimate{{
		Station: "ridge", Table: "tenmin", Measurement: "station_ridge_source_tenmin",
		Columns: []exports.ColumnEstimate{{Column: exports.Column{Field: "v", Type: influx.FieldFloat}, Values: 144 * 16}},
		Rows:    144 * 16, Values: 144 * 16, First: at(0), Last: at(19), Gaps: 3,
		LongestGaps: []cadence.Gap{{From: at(5), To: at(8)}, {From: at(12), To: at(13)}, {From: at(20), To: at(21)}},
	}}, report.Estimates)
	require.Empty(t, d.keys(d.organization))

	d.spec.Aggregate, d.spec.Every = "mean", job.Duration(6*time.Hour)
	report, _ = d.export()
	require.EqualValues(t, 16*4, report.Rows)
}

// TestStrangersDataIsNotExported: whose a measurement is follows from the stations of the
// whole platform, whatever database a station's record or a spec names.
func TestStrangersDataIsNotExported(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	victim, mallory := newDesk(t, st), newDesk(t, st)
	victim.station(victim.organization, "ridge", victim.database)
	victim.station(victim.organization, "peak", victim.database)
	victim.steady("station_ridge_source_t", 3, nil)
	victim.steady("station_peak_source_t", 3, nil)
	mallory.station(mallory.organization, "ridge", mallory.database)
	mallory.station(mallory.organization, "own", victim.database)
	mallory.station(mallory.organization, "peak", victim.database)
	mallory.steady("station_ridge_source_t", 3, nil)
	refused := func(parts ...string) {
		t.Helper()
		typ, run := mallory.newRun(platformtest.NewID())
		_, err := typ.Handle(t.Context(), run)
		jobtest.RequireFailure(t, err, errclass.ExportRefused, true, parts...)
	}
	mallory.spec.Stations, mallory.spec.Database = []string{"ridge"}, victim.database
	refused("database "+victim.database+" is not one that has points of station ridge", "neither its record nor location lake names it")
	mallory.spec.Stations, mallory.spec.Database = []string{"own"}, ""
	refused("station own has nothing of what is asked for")
	mallory.spec.Stations = []string{"peak"}
	refused("station peak has nothing", "measurement station_peak_source_t of database "+victim.database+" is left out: it may be that of several stations")
	mallory.spec.Organization = victim.spec.Organization + "x"
	refused("organization " + victim.spec.Organization + "x is not on the platform")
	require.Empty(t, mallory.keys(mallory.organization))

	victim.spec.Stations = []string{"ridge"}
	report, _ := victim.export()
	require.EqualValues(t, 3, report.Rows)
}

// TestBounds: an export that is too large, or one too many.
func TestBounds(t *testing.T) {
	t.Parallel()
	d := newDesk(t, stacktest.Start(t))
	d.station(d.organization, "ridge", d.database)
	d.spec.Stations = []string{"ridge"}
	d.steady("station_ridge_source_t", 1000, nil)
	refused := func(parts ...string) {
		t.Helper()
		typ, run := d.newRun(platformtest.NewID())
		_, err := typ.Handle(t.Context(), run)
		jobtest.RequireFailure(t, err, errclass.ExportRefused, true, parts...)
	}
	d.at.Exports.MaxPoints = 999
	refused("the export has more than 999 values: ask for less, or for an aggregate")
	d.at.Exports.MaxPoints = 1000
	d.export()
	d.at.Exports.Quota.Bytes = 10
	refused("exports of organization "+d.spec.Organization, "and the quota of an organization is 10: wait until some have ended")
}

// TestRemoveExports removes what has ended, and nothing else of the bucket.
func TestRemoveExports(t *testing.T) {
	t.Parallel()
	d := newDesk(t, stacktest.Start(t))
	own := "removed" + d.organization[:8]
	_, err := d.store.MakeBucket(t.Context(), own)
	require.NoError(t, err)
	put := func(key string) {
		_, err := d.store.Put(t.Context(), objects.Object{Bucket: own, Key: key, Data: []byte("x"), ContentType: "text/plain"})
		require.NoError(t, err)
	}
	ended, lasts := d.organization+"/0123456789abcdef-PT0.001S/", d.organization+"/0123456789abcdef-P7D/"
	kept := []string{
		lasts + "000001-a_b.csv", lasts + "manifest.json", "manifest.json", d.organization + "/a.csv",
		ended + "other", ended + "000001-a_b.exe", ended + "x/manifest.json", "x" + ended + "manifest.json", d.organization + "/0123456789abcdef-P8D/manifest.json",
		d.organization + "/0123456789abcdef-PT/links.txt",
	}
	for _, key := range append(slices.Clone(kept), ended+"000001-a_b.csv", ended+"000002-a_b.csv.gz", ended+"000003-a.zip", ended+"links.txt", ended+"manifest.json", ended+"000004-a.nc") {
		put(key)
	}
	typ := exports.Remove(d.store, places.Places{Exports: places.Exports{Bucket: own}})
	count := func(spec exports.RemoveSpec) map[string]int64 {
		run := jobtest.NewRun(jobtest.NewJob(typ, "main", job.Trigger{OneShot: &job.OneShot{}}, spec))
		result, err := typ.Handle(t.Context(), run)
		require.NoError(t, err)
		return result.Counts
	}
	stacktest.WaitFor(t, "the clock to be past the store's second", func() (bool, error) { return count(exports.RemoveSpec{DryRun: true})["objects"] == 6, nil })
	require.Equal(t, map[string]int64{"exports": 1, "objects": 6, "bytes": 6, "kept": 8}, count(exports.RemoveSpec{}))
	var left []string
	for info, err := range d.store.List(t.Context(), own, "") {
		require.NoError(t, err)
		left = append(left, info.Key)
	}
	slices.Sort(kept)
	require.Equal(t, kept, left)
	require.Equal(t, map[string]int64{"exports": 0, "objects": 0, "bytes": 0, "kept": 8}, count(exports.RemoveSpec{}))
}
