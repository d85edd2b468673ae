package exports_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/exports"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// TestRefusedExports: what is not there, or cannot be written, is named by a sentence.
func TestRefusedExports(t *testing.T) {
	t.Parallel()
	d := newDesk(t, stacktest.Start(t))
	d.station(d.organization, "ridge", d.database)
	d.station(d.organization, "empty", d.database)
	d.station(d.organization, "nowhere", d.database+"_none")
	d.write(d.database, line("station_ridge_source_t", d.spec.Start, "v=1", `text="x"`, "n=9007199254740993i")+line("station_ridge_source_u", d.spec.Start, "w=1"))
	d.spec.Stations = []string{"ridge"}
	good, at := d.spec, d.at
	for name, c := range map[string]struct {
		change func()
		class  string
		part   string
	}{
		"organization": {func() { d.spec.Organization = "other" }, errclass.ExportRefused, "organization other is not on the platform, or is deleted"},
		"station":      {func() { d.spec.Stations = []string{"ridge", "valley"} }, errclass.ExportRefused, `has no station "valley"`},
		"empty":        {func() { d.spec.Stations = []string{"ridge", "empty"} }, errclass.ExportRefused, "station empty has nothing of what is asked for in the databases of location lake"},
		"database":     {func() { d.spec.Stations = []string{"nowhere"} }, errclass.ExportRefused, "mirror default of location lake has no database " + d.database + "_none"},
		"other":        {func() { d.spec.Database = "common1" }, errclass.ExportRefused, "database common1 is not one that has points of station ridge"},
		"table":        {func() { d.spec.Tables = []string{"t", "x"} }, errclass.ExportRefused, `no station of the spec has a table "x" with these fields`},
		"field":        {func() { d.spec.Fields = []string{"v", "x"} }, errclass.ExportRefused, `no table has a field "x" to export`},
		"text": {func() {
			d.spec.Fields, d.spec.Aggregate, d.spec.Every = []string{"text"}, "mean", job.Duration(time.Hour)
		},
			errclass.ExportRefused, "field text of measurement station_ridge_source_t is left out: it is a string, and has no mean"},
		"integer":  {func() { d.spec.Format = exports.FormatNetCDF }, errclass.ExportRefused, "field n has the integer 9007199254740993, and NetCDF-3 has none beyond 2^53"},
		"location": {func() { d.spec.Location = "sea" }, errclass.InvalidSpec, "location sea is not in DENDRA_PLACES of this worker"},
		"mirror":   {func() { d.spec.Mirror = "west" }, errclass.InvalidSpec, "location lake has no mirror west in DENDRA_PLACES of this worker"},
		"bucket":   {func() { d.at.Exports.Bucket = "nothing" }, errclass.BucketMissing, `bucket "nothing" does not exist`},
		"server": {func() { d.at.Locations = []influx.Servers{{Location: "lake", InfluxURL: "http://127.0.0.1:1"}} },
			errclass.InfluxUnreachable, "mirror default of location lake: influx http://127.0.0.1:1: "},
		"password": {func() {
			d.at.Locations = []influx.Servers{{Location: "lake", InfluxURL: d.stack.Influx, Username: "u", Password: "secret://none"}}
		}, errclass.Secret, "none"},
	} {
		d.spec, d.at = good, at
		c.change()
		typ, run := d.newRun(platformtest.NewID())
		_, err := typ.Handle(t.Context(), run)
		require.ErrorContains(t, err, c.part, name)
		require.Equal(t, c.class, jobtest.FailureOf(t, err).Class, name)
	}
}

// TestWhatLiesUnderAKeyOfAPart is looked at: what is no part of this run ends it.
func TestWhatLiesUnderAKeyOfAPart(t *testing.T) {
	t.Parallel()
	d := newDesk(t, stacktest.Start(t))
	d.station(d.organization, "ridge", d.database)
	d.spec.Stations = []string{"ridge"}
	d.steady("station_ridge_source_t", 3000, nil)
	report, m := d.export()
	id := platformtest.NewID()
	typ, run := d.newRun(id, jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) { r.Stop() }))
	result, err := typ.Handle(t.Context(), run)
	require.ErrorIs(t, err, job.ErrStopped)
	stopped, _ := d.report(result)
	require.NotEqual(t, report.Folder, stopped.Folder, "each run has its own")

	first, info, err := d.store.Get(t.Context(), bucket, m.Parts[0].Key, 1<<20)
	require.NoError(t, err)
	for _, metadata := range []map[string]string{nil, {"part": "{}"}, {"part": info.Metadata["part"], "sha256": objects.Hash(nil)}} {
		key := stopped.Folder + "000001-ridge_t.csv"
		_, err := d.store.Put(t.Context(), objects.Object{Bucket: bucket, Key: key, Data: first, ContentType: "text/csv", Metadata: metadata})
		require.NoError(t, err)
		_, again := d.newRun(id)
		_, err = typ.Handle(t.Context(), again)
		jobtest.RequireFailure(t, err, errclass.Conflict, true, key)
	}
}
