package extract_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestRecordsOfBothReleases: Release 2 has numbers for values and no offset; where its
// messages name their storage, the points go there, unless a rule says otherwise.
func TestRecordsOfBothReleases(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "both")
	l.points.Organization = "r3Eval"
	l.points.Rules = []extract.LdmpRule{{UTCOffset: "-08:00"}, {Station: "ruled", Measurement: "m_{table}"}}
	publish := func(body string) {
		_, err := l.client.Publish(t.Context(), []pipeline.Outgoing{{Subject: pipeline.RawSubject("live", "r3Eval", "csi"), Body: []byte(body)}})
		require.NoError(t, err)
	}
	context := func(station, more string) string {
		return `{"context":{"imported_at":"2026-03-04T00:00:00.123Z","org_slug":"r3Eval","station":"` + station + `","table":"TenMin"` + more + `},`
	}
	payload := func(station string) string {
		return `"payload":{"recordNumber":17829,"station":"` + station + `","table":"TenMin","timeString":"2026-03-03T12:00:00","fields":[` +
			`{"name":"AT_C_Avg","process":"Avg","type":"xsd:float","units":"°C","value":6.643},{"name":"AT_C_TMx","process":"TMx","type":"xsd:dateTime","value":2026},` +
			`{"name":"Rain","type":"xsd:float","value":0},{"name":"Note","type":"xsd:string","value":null},{"name":"Flag","type":"xsd:boolean","value":1},` +
			`{"name":"Wind","type":"xsd:float"},{"name":"Big","type":"xsd:float","value":1e21}]}}`
	}
	publish(context("old", "") + payload("old"))
	publish(context("stored", `,"storage_database":"org_5f{station}","storage_table":"station_stored_source_x"`) + payload("stored"))
	publish(context("ruled", `,"storage_database":"org_5f","storage_table":"unused"`) + payload("ruled"))
	publish(context("bad", `,"storage_database":"a/b"`) + payload("bad"))
	publish(context("bad", ``) + `"payload":{"recordNumber":1,"station":"bad","table":"t","timeString":"2026-03-03T12:00:00","fields":[{"name":"v","value":[1]}]}}`)
	body, err := pipeline.Message[ldmp.Record]{
		Context: pipeline.Context{ImportedAt: midnight, OrgSlug: "r3Eval", Source: "csi", Station: "new", Table: "TenMin", UTCOffset: "-08:00"},
		Payload: ldmp.Record{Number: 1, Station: "new", Table: "TenMin", Time: "2026-03-03T12:00:00", Fields: []ldmp.Field{
			{Name: "AT_C_Avg", Type: "xsd:float", Value: "6.643"}, {Name: "AT_C_TMx", Type: "xsd:dateTime", Value: "2026-03-03T11:52:10"},
		}},
	}.Encode()
	require.NoError(t, err)
	publish(string(body))

	result := l.prepareAll()
	require.EqualValues(t, 4, result.Counts["prepared"])
	require.EqualValues(t, 2, result.Counts["quarantined"])
	old := map[string]any{"AT_C_Avg": 6.643, "AT_C_TMx": 2026.0, "Rain": 0.0, "Flag": 1.0, "Big": 1e21}
	at := pipeline.Time{Time: time.Date(2026, 3, 3, 20, 0, 0, 0, time.UTC)}
	type stored struct {
		database string
		point    pipeline.Point
	}
	var got []stored
	for _, message := range l.prepared("live", "both") {
		got = append(got, stored{message.Payload.Options.Database, message.Payload.Points[0]})
	}
	require.Equal(t, []stored{
		{"both", pipeline.Point{Measurement: "station_old_source_tenmin", Fields: old, Time: at}},
		{"org_5f{station}", pipeline.Point{Measurement: "station_stored_source_x", Fields: old, Time: at}},
		{"org_5f", pipeline.Point{Measurement: "m_tenmin", Fields: old, Time: at}},
		{"both", pipeline.Point{Measurement: "station_new_source_tenmin", Time: at, Fields: map[string]any{
			"AT_C_Avg": 6.643, "AT_C_TMx": "2026-03-03T11:52:10",
		}}},
	}, got)
}

// TestABookmarkThatWasSetIsWhereTablesBegin, as after a hand-over from Release 2: the
// bookmark has the moment alone, and each logger's clock an offset of its own.
func TestABookmarkThatWasSetIsWhereTablesBegin(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "handover")
	from := midnight.Add(3 * time.Hour)
	for _, station := range l.Options().Stations {
		for _, table := range station.Tables {
			_, err := l.client.SetBookmark(t.Context(), l.bookmark(station.Name+"="+table.Name), from, "starter bookmarks set")
			require.NoError(t, err)
		}
	}
	want := 0
	for _, reading := range l.readings() {
		if !reading.Time.Before(from) && !reading.Time.After(midnight.Add(6*time.Hour)) {
			want++
		}
	}
	require.Equal(t, 2*(4+19), want)
	l.extractAll(int64(want))
	require.Len(t, l.raw(), want)
	require.Equal(t, midnight.Add(6*time.Hour), l.bookmark(l.Options().Stations[0].Name+"=TenMin").Position)
}

// TestReadingsOfBothReleases: the older API of the vendor, which Release 2 read first,
// named and gave values otherwise.
func TestReadingsOfBothReleases(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	client := st.Pipeline(t)
	b := &bench{client: client}
	publish := func(context, observations string) {
		_, err := client.Publish(t.Context(), []pipeline.Outgoing{{
			Subject: pipeline.RawSubject("bulk", "hoboBoth", "hobolink"),
			Body: []byte(`{"context":{"imported_at":"2021-10-28T00:00:00Z","org_slug":"hoboBoth","station":"Blue Oak","table":"21234001"` + context + `},` +
				`"payload":{"timestamp":"2021-10-27 12:00:00Z","observations":[` + observations + `]}}`),
		}})
		require.NoError(t, err)
	}
	const old = `{"logger_sn":"21234001","sensor_sn":"21234001-1","timestamp":"2021-10-27 12:00:00Z","data_type_id":"1","si_value":12.5,"si_unit":"°C",` +
		`"us_value":54.5,"us_unit":"°F","scaled_value":0,"scaled_unit":null,"sensor_key":"4711","sensor_measurement_type":"Air Temp"}`
	const present = `{"logger_sn":"21234001","sensor_sn":"21234001-1","timestamp":"2021-10-27 12:00:00Z","data_type":"CURRENT","data_type_id":"1",` +
		`"value":12.5,"unit":"°C","sensor_measurement_type":"Air Temp"}`
	publish("", old)
	publish(`,"storage_database":"org_7","storage_table":"oak"`, present)
	counts := b.prepareAll(t, extract.PrepareHoboSpec{Organization: "hoboBoth", Location: "hoboboth"})
	require.EqualValues(t, 2, counts["prepared"])
	points := b.points(t, pipeline.OperationBulk, "hoboboth")
	require.Len(t, points, 2)
	require.Equal(t, "hoboboth", points[0].Payload.Options.Database)
	require.Equal(t, map[string]any{"Air_Temp_21234001_1_si": 12.5}, points[0].Payload.Points[0].Fields)
	require.Equal(t, "org_7", points[1].Payload.Options.Database)
	require.Equal(t, "oak", points[1].Payload.Points[0].Measurement)
	require.Equal(t, map[string]any{"Air_Temp_21234001_1_CURRENT__C": 12.5}, points[1].Payload.Points[0].Fields)
}
