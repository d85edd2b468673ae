package extract_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// prepareAll prepares until nothing is left.
func (l *loggers) prepareAll() job.Result {
	l.Helper()
	i := l.start(l.prepare, l.points)
	name := extract.PrepareConsumerName("live", l.points.Organization, "csi", i.run.Job().ID)
	stacktest.WaitFor(l, "the raw messages to be prepared", func() (bool, error) {
		position, err := stacktest.PositionOf(l.Context(), l.client.JetStream(), pipeline.StreamRaw, name)
		return position.Done(), err
	})
	return i.stopped()
}

// stopped ends an iteration of preparing.
func (i *iteration) stopped() job.Result {
	i.Helper()
	i.run.Stop()
	result, err := i.end()
	require.NoError(i, err)
	return result
}

func (l *loggers) prepared(operation pipeline.Operation, location string) []pipeline.Message[pipeline.Points] {
	l.Helper()
	var all []pipeline.Message[pipeline.Points]
	for _, message := range l.messages(pipeline.StreamPrepared, pipeline.PrepSubject(operation, location)) {
		decoded, err := pipeline.DecodePoints(message.Data())
		require.NoError(l, err)
		require.Len(l, decoded.Payload.Points, 1)
		all = append(all, decoded)
	}
	return all
}

// publish puts records on the raw stream as an extract does.
func (l *loggers) publish(records ...ldmp.Record) {
	l.Helper()
	for _, record := range records {
		body, err := pipeline.Message[ldmp.Record]{
			Context: pipeline.Context{ImportedAt: midnight, OrgSlug: l.name, Source: "csi", Station: record.Station, Table: record.Table, UTCOffset: "-08:00"},
			Payload: record,
		}.Encode()
		require.NoError(l, err)
		l.publishBody(string(body))
	}
}

func (l *loggers) publishBody(body string) {
	l.Helper()
	_, err := l.client.Publish(l.Context(), []pipeline.Outgoing{{Subject: pipeline.RawSubject("live", l.name, "csi"), Body: []byte(body)}})
	require.NoError(l, err)
}

func TestPointsAreWhatWasLogged(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "points")
	l.extractAll(sixHours)
	result := l.prepareAll()
	require.EqualValues(t, sixHours, result.Counts["messages"])
	require.EqualValues(t, sixHours, result.Counts["prepared"])
	require.Zero(t, result.Counts["quarantined"])

	type key struct {
		measurement string
		at          int64
	}
	expected := map[key]map[string]any{}
	for _, r := range l.readings() {
		name := map[string]string{"TenMin": "tenmin", "Hourly": "hourly"}[r.Table]
		expected[key{"station_" + r.Station + "_source_" + name, r.Time.UnixMilli()}] = r.Values
	}
	found := map[key]map[string]any{}
	for _, message := range l.prepared("live", "points") {
		require.Equal(t, pipeline.PointOptions{Database: "points", Precision: "ms"}, message.Payload.Options)
		require.Equal(t, "points", message.Context.Location)
		point := message.Payload.Points[0]
		found[key{point.Measurement, point.Time.UnixMilli()}] = point.Fields
	}
	require.Equal(t, expected, found)

	// A second job prepares all of it too; the same points are there once.
	l.name = "second"
	require.EqualValues(t, sixHours, l.prepareAll().Counts["duplicates"])
}

// TestPreparedInOrder: another reader takes one of the messages, and does not answer.
func TestPreparedInOrder(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "inorder")
	i := l.start(l.prepare, l.points)
	var consumer jetstream.Consumer
	stacktest.WaitFor(t, "messages to be waited for", func() (bool, error) {
		var err error
		consumer, err = l.client.JetStream().Consumer(t.Context(), pipeline.StreamRaw,
			extract.PrepareConsumerName("live", l.points.Organization, "csi", i.run.Job().ID))
		return err == nil && consumer.CachedInfo().NumWaiting > 0, nil
	})
	other, err := consumer.Fetch(1, jetstream.FetchMaxWait(30*time.Second))
	require.NoError(t, err)
	published := 0
	publish := func() {
		l.publish(ldmp.Record{Number: int64(published), Station: "s", Table: "t", Time: "2026-03-03T12:00:00", Fields: []ldmp.Field{
			{Name: "n", Type: "xsd:int", Value: strconv.Itoa(published)},
		}})
		published++
	}
	stacktest.PublishUntilTaken(t, other.Messages(), publish)
	stacktest.WaitFor(t, "the raw messages to be prepared", func() (bool, error) {
		position, err := stacktest.PositionOf(t.Context(), l.client.JetStream(), pipeline.StreamRaw, consumer.CachedInfo().Name)
		return position.Done(), err
	})
	require.NotZero(t, i.stopped().Counts["rewound"])
	prepared := l.prepared("live", "inorder")
	require.Len(t, prepared, published)
	for n, message := range prepared {
		require.Equal(t, map[string]any{"n": float64(n)}, message.Payload.Points[0].Fields)
	}
}

func TestTypesOfFields(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "types")
	l.points.StringFields = []string{"_flag$"}
	field := func(name, kind, value string) ldmp.Field { return ldmp.Field{Name: name, Type: kind, Value: value} }
	l.publish(ldmp.Record{Number: 7, Station: "S 1", Table: "Ten.Min", Time: "2018-12-24T07:00:00.5", Fields: []ldmp.Field{
		field("AT(1)", "xsd:float", " 6.643 "), field("exp", "xs:double", "-1.5E-3"), field("n", "xsd:unsignedInt", "20"),
		field("nan", "xsd:float", "NAN"), field("inf", "xsd:float", "-INF"), field("empty", "xsd:float", ""),
		field("text", "xsd:string", "12 V"), field("when", "xsd:dateTime", "2018-12-24T06:58:10"), field("on", "xsd:boolean", "true"),
		field("qc_flag", "xsd:float", "3"), field("col_11", "", "4.5"), field("col_12", "", "4.5 m"), field("time", "xsd:float", "1"),
		field("bad", "xsd:float", "12abc"), field("hex", "xsd:int", "0x10"), field("maybe", "xsd:boolean", "yes"), field("AT_1_", "xsd:float", "5"),
		field("huge", "xsd:float", "1e999"),
	}})
	l.publish(ldmp.Record{Number: 8, Station: "S 1", Table: "Ten.Min", Time: "2018-12-24T07:10:00", Fields: []ldmp.Field{field("x", "xsd:float", "NaN")}})
	result := l.prepareAll()
	require.EqualValues(t, 1, result.Counts["empty"])
	require.EqualValues(t, 4, result.Counts["missing"])
	prepared := l.prepared("live", "types")
	require.Len(t, prepared, 1)
	require.Equal(t, pipeline.Point{
		Measurement: "station_s_1_source_ten_min", Time: pipeline.Time{Time: time.Date(2018, 12, 24, 15, 0, 0, 5e8, time.UTC)},
		Fields: map[string]any{
			"AT_1_": 6.643, "exp": -0.0015, "n": 20.0, "text": "12 V", "when": "2018-12-24T06:58:10", "on": true,
			"qc_flag": "3", "col_11": 4.5, "col_12": "4.5 m", "time_": 1.0,
		},
	}, prepared[0].Payload.Points[0])

	kept := l.quarantine(pipeline.StagePrepare)
	require.Len(t, kept, 1, "the whole record, once")
	require.Equal(t, errclass.BadValue, kept[0].Headers().Get(pipeline.HeaderClass))
	require.Equal(t, `station S 1, table Ten.Min, record 7: field "bad": "12abc" is no number; field "hex": "0x10" is no number; `+
		`field "maybe": "yes" is neither true nor false; fields "AT(1)" and "AT_1_" would both be AT_1_; field "huge": "1e999" is no number`,
		kept[0].Headers().Get(pipeline.HeaderReason))
	require.Equal(t, pipeline.RawSubject("live", "types", "csi"), kept[0].Headers().Get(pipeline.HeaderSubject))
	require.NotEmpty(t, kept[0].Headers().Get(pipeline.HeaderSequence))
	require.True(t, json.Valid(kept[0].Data()))
}

func TestRulesRouteRecords(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "rules")
	l.points.Database, l.points.Measurement = "station_{station}", "source_{table}" // one database a station
	l.points.Rules = []extract.LdmpRule{
		{Station: "trial", OperationMode: "test", Measurement: "{organization}_{station}_{table}"},
		{Table: "Raw", Skip: true},
		{Station: "moved", BeginsAt: midnight, Location: "rules2", Database: "{location}", Measurement: "x_{station}_{table}"},
		{Station: "wrong", UTCOffset: "+01:00", EndsBefore: midnight.Add(-time.Hour), Field: "{name}_{process}_{units}"},
		{OddTimeDatabase: "invalid_records", Station: "odd"},
	}
	at := func(station, table, clock string) ldmp.Record {
		return ldmp.Record{Station: station, Table: table, Time: clock, Fields: []ldmp.Field{{Name: "v", Process: "Avg", Units: "m/s", Type: "xsd:float", Value: "1"}}}
	}
	l.publish(
		at("plain", "T", "2026-03-03T12:00:00"), at("trial", "T", "2026-03-03T12:00:00"), at("plain", "Raw", "2026-03-03T12:00:00"),
		at("moved", "T", "2026-03-03T15:59:59"), at("moved", "T", "2026-03-03T16:00:00"),
		at("wrong", "T", "2026-03-03T14:59:59"), at("wrong", "T", "2026-03-03T15:00:00"),
		at("odd", "T", "2026-03-03T12:00:00"), at("odd", "T", "2026-03-03T12:00:01"),
	)
	result := l.prepareAll()
	require.EqualValues(t, 1, result.Counts["skipped"])

	summary := func(operation pipeline.Operation, location string) (found []string) {
		for _, message := range l.prepared(operation, location) {
			point := message.Payload.Points[0]
			for field := range point.Fields {
				found = append(found, message.Payload.Options.Database+" "+point.Measurement+" "+field+" "+point.Time.UTC().Format("02T15:04:05"))
			}
		}
		return found
	}
	require.Equal(t, []string{
		"station_plain source_t v 03T20:00:00",
		"station_moved source_t v 03T23:59:59",
		"station_wrong source_t v_Avg_m_s 03T13:59:59",
		"station_wrong source_t v 03T23:00:00",
		"station_odd source_t v 03T20:00:00",
		"invalid_records source_t v 03T20:00:01",
	}, summary("live", "rules"))
	require.Equal(t, []string{"station_trial rules_trial_t v 03T20:00:00"}, summary("test", "rules"))
	require.Equal(t, []string{"rules2 x_moved_t v 04T00:00:00"}, summary("live", "rules2"))
}

func TestWhatIsNoRecordGoesToQuarantine(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "norecord")
	bodies := []string{
		`{`, `{"context":{},"payload":{"timestamp":"x","observations":[]}}`,
		`{"context":{"utc_offset":"-08:00"},"payload":{"timeString":"2026-01-01T00:00:00"}}`,
		`{"context":{},"payload":{"timeString":"2026-01-01T00:00:00","station":"s","table":"t","fields":[{"name":"a","value":"1"}]}}`,
		`{"context":{"utc_offset":"-08:00","imported_at":"2026-01-01T00:00:00Z"},"payload":{"timeString":"2026-01-01T00:00:00","station":"s","table":"t"}}`,
		"{\"context\":{\"utc_offset\":\"-08:00\"},\"payload\":{\"timeString\":\"2026-01-01T00:00:00\",\"station\":\"s\",\"table\":\"\xff\",\"fields\":[{\"name\":\"a\",\"value\":\"1\"}]}}",
	}
	for _, body := range bodies {
		l.publishBody(body)
	}
	l.publish(ldmp.Record{Station: "s", Table: "t", Time: "2026-03-03T12:00:00", Fields: []ldmp.Field{{Name: "a", Value: "1"}}})
	result := l.prepareAll()
	require.EqualValues(t, len(bodies), result.Counts["quarantined"])
	require.EqualValues(t, 1, result.Counts["prepared"], "the good one is not held up")
	for i, message := range l.quarantine(pipeline.StagePrepare) {
		class := errclass.BadMessage
		if i == 4 {
			class = errclass.FutureTimestamp
		}
		require.Equal(t, class, message.Headers().Get(pipeline.HeaderClass))
		require.Equal(t, bodies[i], string(message.Data()))
	}
}
