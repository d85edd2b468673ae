package exports_test

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities"
	"github.com/dendrascience/dendra-jobs/activities/exports"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/workers"
)

// The test binary is also a worker, so that tests can kill one.
const workerVariable = "DENDRA_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		workers.Main(workers.Program{Worker: job.WorkerBackend, Types: func(env workers.Environment) ([]job.Type, error) {
			store, err := activities.ConnectObjects(env.Getenv)
			if err != nil {
				return nil, err
			}
			api, err := activities.ConnectPlatform(env.Getenv)
			if err != nil {
				return nil, err
			}
			at, err := activities.PlacesFromEnv(env.Getenv)
			return []job.Type{exports.Datastreams(store, api, at)}, err
		}})
	}
	os.Exit(m.Run()) //nolint:forbidigo // The main of the test binary.
}

// bucket is that of exports.
const bucket = "exports"

// desk exports points of an organization of its own, in a database of its own.
type desk struct {
	testing.TB
	stack        *stacktest.Stack
	config       platform.Config
	store        *objects.Store
	at           places.Places
	organization string // id, and slug after "o"
	database     string
	spec         exports.Spec
}

func newDesk(t testing.TB, st *stacktest.Stack) *desk {
	t.Helper()
	id := platformtest.NewID()
	d := &desk{
		TB: t, stack: st, config: platform.Config{URL: st.Platform.URL, Token: st.Platform.Token}, store: objectstest.Open(t, st.S3),
		organization: id, database: "export_" + id,
		at: places.Places{
			Exports:   places.Exports{Bucket: bucket, PointsPerSecond: 100_000_000, MaxPoints: 1 << 40, Quota: places.Quota{Files: 1 << 40, Bytes: 1 << 40}},
			Locations: []influx.Servers{{Location: "lake", InfluxURL: st.Influx}},
		},
	}
	d.put(&platformv1.Resource{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{
		Id: id, Name: "Export", Slug: "o" + id, IsEnabled: true,
	}}})
	writer, err := influx.NewWriter(influx.Config{URL: st.Influx})
	require.NoError(t, err)
	require.NoError(t, writer.CreateDatabase(t.Context(), d.database))
	d.spec = exports.Spec{
		Organization: "o" + id, Location: "lake", Format: exports.FormatCSV, Compression: exports.CompressionNone,
		PartPoints: 1000, LinkLife: job.Duration(time.Hour), Start: day(2024, 1, 1), End: day(2025, 1, 1),
	}
	return d
}

func day(year, month, day int) time.Time {
	return time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
}

func (d *desk) put(r *platformv1.Resource) {
	d.Helper()
	_, err := platformtest.Put(d.Context(), d.config, r, "")
	require.NoError(d, err)
}

// station makes a station of an organization, and gives its id.
func (d *desk) station(organization, slug, database string) string {
	d.Helper()
	altitude := 1000.5
	id := platformtest.NewID()
	d.put(&platformv1.Resource{Resource: &platformv1.Resource_Station{Station: &platformv1.Station{
		Id: id, OrganizationId: organization, Name: "Station " + slug, Slug: slug, Database: database,
		Geo: &platformv1.GeoPoint{Longitude: -123.6, Latitude: 39.7, Altitude: &altitude},
	}}})
	return id
}

// write sends lines of line protocol with times in nanoseconds to InfluxDB itself.
func (d *desk) write(database, lines string) {
	d.Helper()
	request, err := http.NewRequestWithContext(d.Context(), http.MethodPost, d.stack.Influx+"/write?precision=ns&db="+database, strings.NewReader(lines))
	require.NoError(d, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(d, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(d, err)
	require.Equal(d, http.StatusNoContent, response.StatusCode, "%s", text)
}

func (d *desk) newRun(id string, options ...jobtest.Option) (job.Type, *jobtest.Run) {
	d.Helper()
	api, err := platform.New(d.config)
	require.NoError(d, err)
	typ := exports.Datastreams(d.store, api, d.at)
	return typ, jobtest.NewRun(jobtest.NewJob(typ, "test", job.Trigger{OneShot: &job.OneShot{}}, d.spec), append(options, jobtest.WithID(id))...)
}

// export runs the job, and reads the manifest that it has made.
func (d *desk) export() (exports.Report, exports.Manifest) {
	d.Helper()
	typ, run := d.newRun(platformtest.NewID())
	result, err := typ.Handle(d.Context(), run)
	require.NoError(d, err)
	return d.report(result)
}

func (d *desk) report(result job.Result) (report exports.Report, manifest exports.Manifest) {
	d.Helper()
	require.NoError(d, json.Unmarshal(result.Output, &report))
	if report.Manifest != "" {
		require.NoError(d, json.Unmarshal(d.read(report.Manifest), &manifest))
	}
	return report, manifest
}

func (d *desk) read(key string) []byte {
	d.Helper()
	data, _, err := d.store.Get(d.Context(), bucket, key, 1<<30)
	require.NoError(d, err)
	return data
}

// keys are those of an export.
func (d *desk) keys(folder string) (keys []string) {
	d.Helper()
	for info, err := range d.store.List(d.Context(), bucket, folder) {
		require.NoError(d, err)
		keys = append(keys, info.Key)
	}
	return keys
}

// unpack is what a CSV file is before it is compressed.
func unpack(t testing.TB, compression exports.Compression, data []byte) io.Reader {
	t.Helper()
	switch compression {
	case exports.CompressionGzip:
		r, err := gzip.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		return r
	case exports.CompressionZstd:
		r, err := zstd.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		t.Cleanup(r.Close)
		return r
	case exports.CompressionZip:
		archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		require.Len(t, archive.File, 1)
		r, err := archive.File[0].Open()
		require.NoError(t, err)
		return r
	case exports.CompressionNone:
	}
	return bytes.NewReader(data)
}

// csvRows reads a CSV file by encoding/csv. Each row is its cells; the first one is the header.
func csvRows(t testing.TB, compression exports.Compression, data []byte) [][]string {
	t.Helper()
	rows, err := csv.NewReader(unpack(t, compression, data)).ReadAll()
	require.NoError(t, err)
	return rows
}

// line is a point in line protocol.
func line(measurement string, at time.Time, fields ...string) string {
	return fmt.Sprintf("%s %s %d\n", measurement, strings.Join(fields, ","), at.UnixNano())
}

func writeFile(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }
