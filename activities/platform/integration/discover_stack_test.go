package integration_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration"
	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// observatory is an organization with stations, and a location of two mirrors: two
// databases of one server.
type observatory struct {
	*testing.T
	config   platform.Config
	client   *platform.Client
	influx   influx.Config
	database string
	west     string // the database on the other mirror
	spec     integration.DiscoverSpec
	stations map[string]string // ids by slug
}

func newObservatory(t *testing.T, slugs ...string) *observatory {
	t.Helper()
	st := stacktest.Start(t)
	own := reconciletest.New(t) // All stations of a platform share the mirror west.
	id := platformtest.NewID()
	o := &observatory{
		T: t, config: own.Config, client: own.Client, influx: influx.Config{URL: st.Influx},
		database: "org_" + id, west: "west_" + id, stations: map[string]string{},
	}
	o.spec = integration.DiscoverSpec{OrganizationID: id, Servers: influx.Servers{
		Location: "nowhere", InfluxURL: st.Influx, Mirrors: []influx.Mirror{{Name: "west", InfluxURL: st.Influx, Database: o.west}},
	}}
	o.put(&platformv1.Resource{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{
		Id: id, Name: "Observatory", Slug: "o" + id[:8], IsEnabled: true,
	}}})
	for _, slug := range slugs {
		o.stations[slug] = o.addStation(id, slug, o.database)
	}
	return o
}

func (o *observatory) addStation(organization, slug, database string) (id string) {
	o.Helper()
	id = platformtest.NewID()
	o.put(&platformv1.Resource{Resource: &platformv1.Resource_Station{Station: &platformv1.Station{
		Id: id, OrganizationId: organization, Name: slug, Slug: slug, Database: database,
	}}})
	return id
}

func (o *observatory) put(r *platformv1.Resource) {
	o.Helper()
	_, err := platformtest.Put(o.Context(), o.config, r, "")
	require.NoError(o, err)
}

// addConfig gives a station an integration config, to whose log findings go.
func (o *observatory) addConfig(slug string) string {
	o.Helper()
	id := "log-" + o.stations[slug]
	o.put(&platformv1.Resource{Resource: &platformv1.Resource_IntegrationType{IntegrationType: &platformv1.IntegrationType{
		Id: "type-" + o.stations[slug], Name: "Type", Direction: platformv1.IntegrationDirection_INTEGRATION_DIRECTION_INBOUND,
		Scope: platformv1.IntegrationScope_INTEGRATION_SCOPE_STATION,
	}}})
	o.put(&platformv1.Resource{Resource: &platformv1.Resource_IntegrationConfig{IntegrationConfig: &platformv1.IntegrationConfig{
		Id: id, TypeId: "type-" + o.stations[slug], OrganizationId: o.spec.OrganizationID, StationId: o.stations[slug], Name: "Log",
		OperationMode: platformv1.OperationMode_OPERATION_MODE_LIVE,
	}}})
	return id
}

// write writes lines into both mirrors, or into those named.
func (o *observatory) write(lines string, databases ...string) {
	o.Helper()
	if databases == nil {
		databases = []string{o.database, o.west}
	}
	writer, err := influx.NewWriter(o.influx)
	require.NoError(o, err)
	for _, database := range databases {
		require.NoError(o, writer.CreateDatabase(o.Context(), database))
		require.NoError(o, writer.Write(o.Context(), influx.Target{Database: database, Precision: influx.Seconds}, []byte(lines)))
	}
}

func (o *observatory) query(database, statement string) {
	o.Helper()
	_, err := influx.Query(o.Context(), o.influx, database, statement)
	require.NoError(o, err)
}

// discover runs the job, and gives the counts and the findings.
func (o *observatory) discover() (counts map[string]int64, findings []string) {
	o.Helper()
	typ := integration.DiscoverTables(o.client)
	j := jobtest.NewJob(typ, "main", job.Trigger{Queued: &job.Queued{Queue: "tables"}}, o.spec)
	result, err := typ.Handle(o.Context(), jobtest.NewRun(j, jobtest.WithID(platformtest.NewID())))
	require.NoError(o, err)
	var output struct {
		Findings []string `json:"findings"`
	}
	if result.Output != nil {
		require.NoError(o, json.Unmarshal(result.Output, &output))
	}
	return result.Counts, output.Findings
}

// tables are the tables of a station as the platform has them.
func (o *observatory) tables(slug string) []string {
	o.Helper()
	answer, err := o.client.Tables.ListTableInfos(o.Context(), &platformv1.ListTableInfosRequest{StationId: o.stations[slug]})
	require.NoError(o, err)
	var tables []string
	for _, table := range answer.GetTableInfos() {
		text := table.GetName() + " in " + table.GetMeasurement() + ":"
		for _, f := range table.GetFields() {
			text += " " + f.GetName() + "=" + strings.ToLower(strings.TrimPrefix(f.GetType().String(), "TABLE_FIELD_TYPE_"))
		}
		require.Equal(o, o.database, table.GetDatabase())
		tables = append(tables, text)
	}
	return tables
}

// logged are the entries in the log of a config, the oldest first.
func (o *observatory) logged(configID string) []string {
	o.Helper()
	answer, err := o.client.Integrations.ListLogEntries(o.Context(), &platformv1.ListLogEntriesRequest{ConfigId: configID})
	require.NoError(o, err)
	var lines []string
	for _, entry := range answer.GetLogEntries() {
		lines = append([]string{strings.TrimPrefix(entry.GetLevel().String(), "LOG_LEVEL_") + " " + entry.GetMessage()}, lines...)
	}
	return lines
}

// TestTablesAreDiscovered: the platform gets what the mirrors have, station by station,
// and nothing is written when nothing has changed.
func TestTablesAreDiscovered(t *testing.T) {
	t.Parallel()
	o := newObservatory(t, "ridge", "ridge-2")
	o.write(`station_ridge_source_tenmin at=1.5,note="x",on=true,n=1i 1
station_ridge_2_source_tenmin at=1.5 1
station_ridge_imported_notes v=1 1
station_other_source_tenmin at=1 1
`)
	counts, findings := o.discover()
	require.Equal(t, []string{"measurements of database " + o.database + " whose station is not certain (1): station_other_source_tenmin"}, findings)
	require.Equal(t, map[string]int64{"stations": 2, "tables": 3, "created": 3, "written": 3, "uncertain": 1}, counts)
	require.Equal(t, []string{
		"imported_notes in station_ridge_imported_notes: v=float",
		"tenmin in station_ridge_source_tenmin: at=float n=integer note=string on=boolean",
	}, o.tables("ridge"))
	require.Equal(t, []string{"tenmin in station_ridge_2_source_tenmin: at=float"}, o.tables("ridge-2"))

	counts, _ = o.discover()
	require.Equal(t, map[string]int64{"stations": 2, "tables": 3, "uncertain": 1}, counts, "nothing has changed, nothing is written")

	o.write("station_ridge_2_source_hour rain=1 1\n")
	o.spec.StationID = o.stations["ridge"]
	counts, _ = o.discover()
	require.Equal(t, map[string]int64{"stations": 1, "tables": 2, "uncertain": 1}, counts, "of another station")
	o.spec.StationID = ""
	counts, _ = o.discover()
	require.EqualValues(t, 1, counts["created"])
}

// TestTablesOfStrangersAreNobodys: an organization gets no table of another one, whatever
// slugs and databases its stations have, nor any that something else writes.
func TestTablesOfStrangersAreNobodys(t *testing.T) {
	t.Parallel()
	o := newObservatory(t, "vridge", "peak-1")
	mallory := platformtest.NewID()
	o.put(&platformv1.Resource{Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{
		Id: mallory, Name: "Mallory", Slug: "mallory", IsEnabled: true,
	}}})
	for _, slug := range []string{"vridge", "peak_1", "own"} {
		o.addStation(mallory, slug, o.database)
	}
	strange := "grafana_" + mallory
	o.addStation(mallory, "m", strange)
	o.write(`station_vridge_source_t v=1 1
station_peak_1_source_t v=1 1
station_own_source_t v=1 1
source_tenmin v=1 1
foo v=1 1
`, o.database)
	o.write("m v=1 1\nsource_x v=1 1\n", strange)
	victim := o.spec.OrganizationID
	o.spec.Mirrors = nil
	counts, findings := o.discover()
	require.Equal(t, map[string]int64{"stations": 2, "tables": 0, "uncertain": 4}, counts, "whose they are is not certain")
	require.Len(t, findings, 1)
	require.Contains(t, findings[0], "not certain (4): foo, source_tenmin, station_peak_1_source_t (stations ")

	o.spec.OrganizationID = mallory
	counts, findings = o.discover()
	require.Equal(t, map[string]int64{"stations": 4, "tables": 1, "created": 1, "written": 1, "uncertain": 6}, counts)
	require.Contains(t, findings[0]+findings[1], "not certain (2): m, source_x")

	// A station of another organization in the same database: none is the only one.
	o.addStation(victim, "neighbour", strange)
	o.query(strange, "DROP MEASUREMENT m")
	counts, _ = o.discover()
	require.Equal(t, map[string]int64{"stations": 4, "tables": 1, "uncertain": 5}, counts)
}

// TestWhatHasChangedAboutTablesIsTold: once, however often it is discovered.
func TestWhatHasChangedAboutTablesIsTold(t *testing.T) {
	t.Parallel()
	o := newObservatory(t, "ridge")
	o.write("station_ridge_source_tenmin at=1.5,v=1 1\nstation_ridge_source_hour rain=1 1\n")
	o.discover()
	config := o.addConfig("ridge")

	for _, database := range []string{o.database, o.west} {
		o.query(database, "DROP MEASUREMENT station_ridge_source_hour")
		o.query(database, "DROP MEASUREMENT station_ridge_source_tenmin")
	}
	o.write("station_ridge_source_tenmin at=\"cold\",w=1 1\n")
	counts, findings := o.discover()
	require.Equal(t, map[string]int64{"stations": 1, "tables": 1, "changed": 1, "fields_retyped": 1, "gone": 1, "written": 1}, counts)
	changed := "Table tenmin has changed: types changed: at from float to string; fields gone: v; fields added: w."
	gone := "Table hour is gone: measurement station_ridge_source_hour is not there, or is no longer this station's."
	require.Equal(t, []string{"station ridge: " + changed, "station ridge: " + gone}, findings)
	require.Equal(t, []string{"WARN " + changed, "WARN " + gone}, o.logged(config))
	require.Equal(t, []string{
		"hour in station_ridge_source_hour: rain=float", "tenmin in station_ridge_source_tenmin: at=string w=float",
	}, o.tables("ridge"), "what is gone stays with the platform")

	counts, _ = o.discover()
	require.Equal(t, map[string]int64{"stations": 1, "tables": 1, "gone": 1}, counts)
	require.Len(t, o.logged(config), 2)

	o.write("station_ridge_source_tenmin z=1 2\n")
	o.discover()
	require.Equal(t, "INFO Table tenmin has changed: fields added: z.", o.logged(config)[2])
}

// TestMirrorsDisagree: what a mirror lacks, or has otherwise, is told, and the platform
// gets what any of them has.
func TestMirrorsDisagree(t *testing.T) {
	t.Parallel()
	o := newObservatory(t, "ridge")
	config := o.addConfig("ridge")
	o.write("station_ridge_source_tenmin at=1.5 1\nstation_ridge_source_hour rain=1 1\n", o.database)
	counts, findings := o.discover()
	require.EqualValues(t, 2, counts["disputed"])
	require.Equal(t, "station ridge: The mirrors disagree about table hour: mirror west does not have it.", findings[0])

	o.write("station_ridge_source_tenmin at=\"cold\" 1\nstation_ridge_source_hour rain=1 1\n", o.west)
	counts, findings = o.discover()
	require.Equal(t, map[string]int64{"stations": 1, "tables": 2, "disputed": 1}, counts)
	require.Equal(t, []string{"station ridge: The mirrors disagree about table tenmin: field at is float on mirror default, string on mirror west."}, findings)
	require.Equal(t, []string{"hour in station_ridge_source_hour: rain=float", "tenmin in station_ridge_source_tenmin: at=float"}, o.tables("ridge"))
	o.discover()
	require.Len(t, o.logged(config), 3, "two of the first time, one of the second")
}

func TestDiscoveryWithoutADatabase(t *testing.T) {
	t.Parallel()
	o := newObservatory(t, "ridge")
	counts, findings := o.discover()
	require.Equal(t, map[string]int64{"stations": 1, "databases_missing": 1}, counts)
	require.Equal(t, []string{"no mirror has the database " + o.database}, findings)

	o.spec.InfluxURL = "http://127.0.0.1:1"
	typ := integration.DiscoverTables(o.client)
	_, err := typ.Handle(t.Context(), jobtest.NewRun(jobtest.NewJob(typ, "main", job.Trigger{Queued: &job.Queued{Queue: "tables"}}, o.spec)))
	failure := jobtest.FailureOf(t, err)
	require.Equal(t, errclass.InfluxUnreachable, failure.Class)
	require.ErrorContains(t, err, "mirror default of location nowhere: influx http://127.0.0.1:1: ")
}
