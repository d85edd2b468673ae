package extract_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// prepareAll runs iterations of a job of the location's name until nothing is left, and
// sums their counts up.
func (b *bench) prepareAll(t *testing.T, spec extract.PrepareHoboSpec) map[string]int64 {
	t.Helper()
	spec.IterationDuration = job.Duration(300 * time.Millisecond)
	operation := spec.OperationMode
	if operation == "" {
		operation = pipeline.OperationBulk
	}
	jobType := extract.PrepareHoboTimeFrame(b.client)
	definition := jobtest.NewJob(jobType, spec.Location, job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, spec)
	counts := map[string]int64{}
	stacktest.WaitFor(t, "the raw messages to be prepared", func() (bool, error) {
		result, err := jobType.Handle(t.Context(), jobtest.NewRun(definition))
		if err != nil {
			return false, err
		}
		for name, n := range result.Counts {
			counts[name] += n
		}
		position, err := stacktest.PositionOf(t.Context(), b.client.JetStream(), pipeline.StreamRaw,
			extract.PrepareConsumerName(operation, spec.Organization, "hobolink", definition.ID))
		return position.Done(), err
	})
	return counts
}

func (b *bench) points(t *testing.T, operation pipeline.Operation, location string) []pipeline.Message[pipeline.Points] {
	t.Helper()
	var all []pipeline.Message[pipeline.Points]
	for _, message := range b.messages(t, pipeline.StreamPrepared, pipeline.PrepSubject(operation, location)) {
		decoded, err := pipeline.DecodePoints(message.Data())
		require.NoError(t, err)
		all = append(all, decoded)
	}
	return all
}

// TestPointsOfRawMessagesAreThoseOfTheExtract of two loggers, one of them with names
// of its own, with a correction and a sample without a value.
func TestPointsOfRawMessagesAreThoseOfTheExtract(t *testing.T) {
	t.Parallel()
	b := newBench(t, "hoboagain", hobolinktest.Options{Seed: 5})
	b.spec.Database = "weather"
	b.spec.Loggers = append(b.spec.Loggers, extract.HoboLogger{Serial: "21234002", Station: "Creek", Table: "Met", Measurement: "creek"})
	late := midnight.Add(-20*time.Hour + 90*time.Second)
	row := hobolinktest.Observation{
		Logger: logger, Sensor: "212340019-1", Time: late, MeasurementType: "Water Level", DataType: "CURRENT", Unit: "m",
	}.Row()
	row.Value = nil
	b.vendor.AddRow(late, row)
	_, err := b.run(t)
	require.NoError(t, err)
	b.vendor.Correct(b.vendor.Observations(logger, midnight.Add(-24*time.Hour), midnight)[11*77], -40.5)
	_, err = b.run(t)
	require.NoError(t, err)
	const points = 2*perDay + 12 // the hour of the correction twice
	published := b.points(t, "live", b.name)
	require.Len(t, published, points)

	// In the extract's own flow every point is a repeat.
	spec := extract.PrepareHoboSpec{
		Organization: b.name, Location: b.name, OperationMode: pipeline.OperationLive, Database: "weather",
		Loggers: []extract.HoboDestination{{Serial: "21234002", Measurement: "creek"}},
	}
	counts := b.prepareAll(t, spec)
	require.EqualValues(t, points+1, counts["messages"])
	require.EqualValues(t, points, counts["duplicates"])
	require.EqualValues(t, 1, counts["empty"])
	require.Zero(t, counts["prepared"]+counts["quarantined"])
	require.Len(t, b.points(t, "live", b.name), points)

	// At another location they are the same, in the same order.
	spec.Location = "hoboagain2"
	counts = b.prepareAll(t, spec)
	require.EqualValues(t, points, counts["prepared"])
	prepared := b.points(t, "live", "hoboagain2")
	for i := range published {
		published[i].Context.Location = "hoboagain2"
	}
	require.Equal(t, published, prepared)
	require.Empty(t, b.quarantine(t))
}

// sample is a raw message as an extract makes it.
func reading(t *testing.T, serial, station string) string {
	t.Helper()
	o := hobolinktest.Observation{
		Logger: serial, Sensor: "1-1", Time: midnight, MeasurementType: "Temperature", DataType: "CURRENT", Unit: "°C", Value: 6.5,
	}
	raw, err := json.Marshal(o.Row())
	require.NoError(t, err)
	body, err := pipeline.Message[extract.HoboSample]{
		Context: pipeline.Context{ImportedAt: midnight, OrgSlug: "o", Source: "hobolink", Station: station, Table: serial},
		Payload: extract.HoboSample{Timestamp: "2026-03-04 00:00:00Z", Observations: []json.RawMessage{raw, raw}},
	}.Encode()
	require.NoError(t, err)
	return string(body)
}

func (b *bench) publishRaw(t *testing.T, operation pipeline.Operation, bodies ...string) {
	t.Helper()
	var messages []pipeline.Outgoing
	for _, body := range bodies {
		messages = append(messages, pipeline.Outgoing{Subject: pipeline.RawSubject(operation, b.name, "hobolink"), Body: []byte(body)})
	}
	_, err := b.client.Publish(t.Context(), messages)
	require.NoError(t, err)
}

func TestLoggersGoElsewhere(t *testing.T) {
	t.Parallel()
	b := newBench(t, "hoboroutes", hobolinktest.Options{})
	b.publishRaw(t, "bulk", reading(t, "1", "Ridge"), reading(t, "2", "Ridge"), reading(t, "3", "Ridge"), reading(t, "4", "Ridge"))
	counts := b.prepareAll(t, extract.PrepareHoboSpec{Organization: b.name, Location: b.name, Loggers: []extract.HoboDestination{
		{Serial: "2", Measurement: "m"}, {Serial: "3", Database: "d"}, {Serial: "4", Location: "hoboroutes2"},
	}})
	require.EqualValues(t, 4, counts["prepared"])
	var found []string
	for _, location := range []string{"hoboroutes", "hoboroutes2"} {
		for _, message := range b.points(t, "bulk", location) {
			require.Equal(t, location, message.Context.Location)
			require.Equal(t, "Ridge", message.Context.Station)
			point := message.Payload.Points[0]
			require.Equal(t, map[string]any{"Temperature_1_1_CURRENT__C": 6.5}, point.Fields)
			require.True(t, midnight.Equal(point.Time.Time))
			found = append(found, message.Payload.Options.Database+" "+point.Measurement)
		}
	}
	require.Equal(t, []string{
		"hoboroutes station_ridge_source_1", "hoboroutes m", "d station_ridge_source_3", "hoboroutes2 station_ridge_source_4",
	}, found)
}

func TestWhatIsNoReadingGoesToQuarantine(t *testing.T) {
	t.Parallel()
	b := newBench(t, "noreading", hobolinktest.Options{})
	good := reading(t, "1", "Ridge")
	replaced := func(old, replacement string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, replacement, 1)
	}
	bad := []struct{ body, reason string }{
		{`{`, "unexpected end of JSON input"},
		{`{"context":{"station":"s","table":"t"},"payload":{"recordNumber":1,"station":"s","table":"t"}}`, "it has no observations"},
		{replaced(`"Ridge"`, `""`), "its context names no station or no table"},
		{replaced(`"value":6.5`, `"value":"6.5"`), `observation 1: value "6.5" is not a number that a float64 can hold`},
		{replaced(`"timestamp":"2026-03-04 00:00:00Z"`, `"timestamp":"2026-03-04"`), `observation 1 is of 2026-03-04 00:00:00Z, the message of "2026-03-04"`},
		{replaced(`"logger_sn":"1"`, `"logger_sn":"2"`), "it has observations of loggers 2 and 1"},
		{replaced(`"logger_sn":"1"`, "\"logger_sn\":\"1\xff\""), "it is not UTF-8: byte 0xff at offset"},
	}
	for _, message := range bad {
		b.publishRaw(t, "bulk", message.body)
	}
	b.publishRaw(t, "bulk", good)
	counts := b.prepareAll(t, extract.PrepareHoboSpec{Organization: b.name, Location: b.name})
	require.EqualValues(t, len(bad), counts["quarantined"])
	require.EqualValues(t, 1, counts["prepared"], "the good one is not held up")
	kept := b.messages(t, pipeline.StreamQuarantine, "dendra.quarantine.v1.prepare.bulk.noreading.hobolink.>")
	require.Len(t, kept, len(bad))
	for i, message := range kept {
		require.Equal(t, errclass.BadMessage, message.Headers().Get(pipeline.HeaderClass))
		reason := message.Headers().Get(pipeline.HeaderReason)
		require.True(t, strings.HasPrefix(reason, "not a raw message of a HOBO logger: "+bad[i].reason), reason)
		require.Equal(t, pipeline.RawSubject("bulk", "noreading", "hobolink"), message.Headers().Get(pipeline.HeaderSubject))
		require.Equal(t, bad[i].body, string(message.Data()))
	}
}
