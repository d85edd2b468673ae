package imports_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/activities/imports"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/cadence"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/loggerfiles/loggerfilestest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// compareDesk previews files of an organization whose points are in a database of its own.
type compareDesk struct {
	*desk
	writer  *influx.Writer
	prepare extract.PrepareLdmpSpec
	lines   []byte // not written yet
}

const measurement = "station_angelo_source_tenmin"

func newCompareDesk(t *testing.T, organization string) *compareDesk {
	t.Helper()
	st := stacktest.Start(t)
	d := &compareDesk{desk: newDesk(t, st, organization)}
	d.jobType = imports.File(d.client, d.store, places.Places{
		UploadBuckets: []string{"uploads"}, Exports: places.Exports{PointsPerSecond: 100_000_000},
		Locations: []influx.Servers{{Location: "lake", InfluxURL: st.Influx}},
	})
	d.spec.DryRun = true
	d.prepare = extract.PrepareLdmpSpec{Organization: organization, Location: "lake", OperationMode: pipeline.OperationBulk, Database: "import_" + organization}
	var err error
	d.writer, err = influx.NewWriter(influx.Config{URL: st.Influx})
	require.NoError(t, err)
	return d
}

// point has a point stored, with the next write.
func (d *compareDesk) point(at time.Time, fields map[string]any) {
	d.Helper()
	var err error
	d.lines, err = influx.AppendPoint(d.lines, influx.Point{Measurement: measurement, Fields: fields, Time: at}, influx.Milliseconds)
	require.NoError(d, err)
}

func (d *compareDesk) write() {
	d.Helper()
	require.NoError(d, d.writer.CreateDatabase(d.Context(), d.prepare.Database))
	require.NoError(d, d.writer.Write(d.Context(), influx.Target{Database: d.prepare.Database, Precision: influx.Milliseconds}, d.lines))
	d.lines = nil
}

// prepareJob is the job that would prepare the messages.
func (d *compareDesk) prepareJob(key string) job.Job {
	return jobtest.NewJob(extract.PrepareCampbellScientificLdmp(nil), key, job.Trigger{Continuous: &job.Continuous{}}, d.prepare)
}

func (d *compareDesk) preview(jobs ...job.Job) (job.Result, imports.Report) {
	d.Helper()
	result, err := d.jobType.Handle(d.Context(), d.newRun("preview", jobtest.WithJobs(jobtest.NewJobs(jobs...))))
	require.NoError(d, err)
	return result, d.report(result)
}

// TestComparesWithWhatIsStored tells what of a file is new, differs, and fills gaps.
func TestComparesWithWhatIsStored(t *testing.T) {
	t.Parallel()
	d := newCompareDesk(t, "compare")
	table := tenMinutes(100)
	d.upload("a.dat", table.TOA5())
	at := func(i int) time.Time { return midnight.Add(8*time.Hour + time.Duration(i)*10*time.Minute) }
	for i := range 50 {
		fields := map[string]any{"AT_C_Avg": float64(i) / 10, "Note": "ok"}
		switch {
		case i == 10:
			fields["AT_C_Avg"] = 17.25
		case i == 11:
			delete(fields, "Note")
		case i == 12:
			fields["Note"] = `"so"`
		case i >= 40 && i < 45:
			continue
		}
		d.point(at(i), fields)
	}
	d.point(at(200), map[string]any{"AT_C_Avg": 1.5})
	d.write()

	other := d.prepareJob("other")
	other.Spec = job.EncodeJSON(extract.PrepareLdmpSpec{Organization: "another", Location: "lake", OperationMode: pipeline.OperationBulk})
	live := d.prepareJob("live")
	live.Spec = job.EncodeJSON(extract.PrepareLdmpSpec{Organization: "compare", Location: "lake"})
	result, report := d.preview(d.prepareJob("bulk"), other, live)
	require.Equal(t, []imports.ComparisonReport{{
		Job: job.ID("PrepareCampbellScientificLdmp", "bulk"), Rows: 100,
		Measurements: []imports.MeasurementReport{{
			Location: "lake", Database: "import_compare", Measurement: measurement,
			Points: 100, New: 55, Extended: 1, Equal: 42, Different: 2,
			Differences: []imports.Difference{
				{Time: at(10), Field: "AT_C_Avg", Stored: "17.25", File: "1"},
				{Time: at(12), Field: "Note", Stored: `"\"so\""`, File: `"ok"`},
			},
			Overlap: &imports.Overlap{First: at(0), Last: at(49)},
			Gaps:    2,
			LongestGaps: []imports.FilledGap{
				{Gap: cadence.Gap{From: at(49), To: at(200)}, Points: 50},
				{Gap: cadence.Gap{From: at(39), To: at(45)}, Points: 5},
			},
		}},
	}}, report.Compared)
	require.Empty(t, report.Notes)
	require.Contains(t, result.Message, "as points of job prepare_campbell_scientific_ldmp.bulk: 55 new, 42 stored, 1 that add fields, 2 that overwrite values, in 2 gaps; a dry run publishes nothing")
	require.Empty(t, d.raw())
}

// TestComparesAny compares random files with random points, of which a model knows the answer.
func TestComparesAny(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // Not a secret.
	for name, rows := range map[string]int{"few": 300, "many": 11_000} {
		for _, ordered := range []bool{true, false} {
			d := newCompareDesk(t, fmt.Sprintf("any%s%v", name, ordered))
			compareAny(d, random, rows, ordered)
		}
	}
}

func compareAny(d *compareDesk, random *rand.Rand, rows int, ordered bool) {
	d.Helper()
	table := tenMinutes(0)
	stored := map[int]map[string]any{} // by minutes
	for range rows {
		if random.IntN(3) > 0 {
			stored[random.IntN(4*rows)] = map[string]any{"AT_C_Avg": float64(random.IntN(2)) / 10}
		}
	}
	at := func(minute int) time.Time { return midnight.Add(8*time.Hour + time.Duration(minute)*time.Minute) }
	var times []int
	for minute, fields := range stored {
		if random.IntN(2) == 0 {
			fields["Note"] = []string{"ok", "no"}[random.IntN(2)]
		}
		times = append(times, minute)
		d.point(at(minute), fields)
	}
	slices.Sort(times)
	d.write()
	var minutes []int
	for range rows {
		minutes = append(minutes, random.IntN(4*rows))
	}
	if ordered {
		slices.Sort(minutes)
	}
	want := imports.MeasurementReport{Points: int64(rows)}
	gaps := map[int]int64{}
	for i, minute := range minutes {
		value := random.IntN(2)
		table.Rows = append(table.Rows, loggerfilestest.Row{
			Shown: midnight.Add(time.Duration(minute) * time.Minute), Number: uint32(i), //nolint:gosec // Small.
			Values: []any{loggerfilestest.FP2{Magnitude: value, Decimals: 1}, "ok"},
		})
		there, is := stored[minute]
		switch {
		case !is:
			want.New++
			if next, _ := slices.BinarySearch(times, minute); next > 0 && next < len(times) {
				gaps[next]++
			}
		case there["AT_C_Avg"] != float64(value)/10, there["Note"] == "no":
			want.Different++
		case there["Note"] == nil:
			want.Extended++
		default:
			want.Equal++
		}
	}
	d.upload("a.dat", table.TOA5())
	_, report := d.preview(d.prepareJob("bulk"))
	got := report.Compared[0].Measurements[0]
	require.Equal(d, []int64{want.Points, want.New, want.Extended, want.Equal, want.Different},
		[]int64{got.Points, got.New, got.Extended, got.Equal, got.Different})
	if !ordered {
		return // A gap is counted again in another part of the file.
	}
	require.EqualValues(d, len(gaps), got.Gaps)
	for _, g := range got.LongestGaps {
		next, _ := slices.BinarySearchFunc(times, g.To, func(minute int, to time.Time) int { return at(minute).Compare(to) })
		require.Equal(d, []any{at(times[next-1]), gaps[next]}, []any{g.From, g.Points})
	}
}

// TestNotCompared says why a preview leaves something out.
func TestNotCompared(t *testing.T) {
	t.Parallel()
	d := newCompareDesk(t, "notcompared")
	d.upload("a.dat", tenMinutes(3).TOA5())
	_, report := d.preview()
	require.Empty(t, report.Compared)
	require.Equal(t, []string{"not compared with what is stored: no prepare job of the flow bulk and of this organization is there"}, report.Notes)

	good := d.prepare
	for name, c := range map[string]struct {
		change func(spec *extract.PrepareLdmpSpec)
		want   imports.ComparisonReport
		note   string
	}{
		"location": {func(s *extract.PrepareLdmpSpec) { s.Location = "elsewhere" }, imports.ComparisonReport{Rows: 3},
			"not compared with what is stored: location elsewhere is not in DENDRA_PLACES of this worker"},
		"flow": {func(s *extract.PrepareLdmpSpec) {
			s.Rules = []extract.LdmpRule{{Table: "TenMin", OperationMode: pipeline.OperationTest}}
		}, imports.ComparisonReport{Rows: 3}, "points of the flow test are not compared"},
		"skip": {func(s *extract.PrepareLdmpSpec) { s.Rules = []extract.LdmpRule{{Skip: true}} }, imports.ComparisonReport{Rows: 3, Empty: 3}, ""},
		"value": {func(*extract.PrepareLdmpSpec) {
			d.spec.Columns = []imports.Column{{Column: "AT_C_Avg"}, {Column: "Note", Type: "number"}}
		}, imports.ComparisonReport{Rows: 3, Refused: 3, FirstRefused: []string{
			`station angelo, table TenMin, record 0: field "Note": "ok" is no number`,
			`station angelo, table TenMin, record 1: field "Note": "ok" is no number`,
			`station angelo, table TenMin, record 2: field "Note": "ok" is no number`,
		}, Measurements: []imports.MeasurementReport{{Location: "lake", Database: good.Database, Measurement: measurement, Points: 3, New: 3}}}, ""},
		"many": {func(s *extract.PrepareLdmpSpec) {
			for i := range 3 {
				s.Rules = append(s.Rules, extract.LdmpRule{BeginsAt: midnight.Add(8*time.Hour + time.Duration(i)*10*time.Minute), Measurement: fmt.Sprint("m", i)})
			}
		}, imports.ComparisonReport{Rows: 3, Measurements: []imports.MeasurementReport{
			{Location: "lake", Database: good.Database, Measurement: "m0", Points: 1, New: 1},
			{Location: "lake", Database: good.Database, Measurement: "m1", Points: 1, New: 1},
			{Location: "lake", Database: good.Database, Measurement: "m2", Points: 1, New: 1},
		}}, ""},
	} {
		d.prepare, d.spec.Columns = good, nil
		c.change(&d.prepare)
		_, report := d.preview(d.prepareJob("bulk"))
		c.want.Job = job.ID("PrepareCampbellScientificLdmp", "bulk")
		require.Equal(t, []imports.ComparisonReport{c.want}, report.Compared, name)
		if c.note == "" {
			require.Empty(t, report.Notes, name)
		} else {
			require.Equal(t, []string{c.note}, report.Notes, name)
		}
	}
}
