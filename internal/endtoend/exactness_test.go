package endtoend_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// soak is how much of it there is.
type soak struct {
	kills    int
	stations int
	hours    int
}

// readSoak takes what DENDRA_SOAK_KILLS, _STATIONS and _HOURS say.
func readSoak(t *testing.T) soak {
	t.Helper()
	number := func(name string, fallback int) int {
		text := os.Getenv("DENDRA_SOAK_" + name)
		if text == "" {
			return fallback
		}
		n, err := strconv.Atoi(text)
		require.NoError(t, err, "DENDRA_SOAK_%s", name)
		return n
	}
	s := soak{
		kills:    number("KILLS", stacktest.Size(22, 60)), // Every fault of every target once, or more.
		stations: number("STATIONS", stacktest.Size(5, 10)), hours: number("HOURS", stacktest.Size(12, 24)),
	}
	require.Positive(t, s.stations)
	require.Greater(t, s.hours, 1)
	t.Logf("DENDRA_SOAK_KILLS=%d DENDRA_SOAK_STATIONS=%d DENDRA_SOAK_HOURS=%d", s.kills, s.stations, s.hours)
	return s
}

// TestLoggersAreLoadedExactly lets a day of loggers go by while workers, NATS,
// InfluxDB, Temporal, the S3 gateway and the LoggerNet server fail at random, each
// by itself, and compares what is in InfluxDB, in the raw stream and in quarantine
// with the LoggerNet server's ledger, value by value, and the archive with the raw
// stream.
func TestLoggersAreLoadedExactly(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
	s := readSoak(t)
	random := stacktest.Random(t)
	nats := stacktest.StartOwn(t, "--only", "nats")
	database, mirror := stacktest.StartOwn(t, "--only", "influx"), stacktest.StartOwn(t, "--only", "influx")
	st := stacktest.StartOwn(t, "--only", "temporal,s3")
	st.Join(nats, database)
	b := newBench(t, st)
	l := newLoggers(b, "loggers", s.stations, time.Duration(s.hours)*time.Hour, random)
	l.mirrors = append(l.mirrors, mirror)
	holes := l.openHoles(random)
	l.plant(random, 2+s.kills/20)

	c := newChaos(t, random)
	c.addServers("NATS", nats)
	c.addServers("InfluxDB", database)
	c.addServers("its mirror", mirror)
	c.addServers("Temporal with S3", st)
	c.addLoggers(l)
	for i := range 2 {
		c.addWorker(b, "extract", fmt.Sprintf("extract-%d", i))
		c.addWorker(b, "load", fmt.Sprintf("load-%d", i))
	}
	declare(b, l.jobs())

	began := time.Now()
	step := l.to.Sub(l.from) / time.Duration(s.kills+1)
	for i, strike := range c.schedule(s.kills) {
		before := l.acknowledged()
		l.pass(step)
		due := random.Int64N(int64(step/recordInterval)*4*int64(s.stations) + 1)
		c.await(5*time.Second, func() bool { return l.acknowledged()-before > due })
		c.strike(strike)
		if i == s.kills/2 {
			holes.collected.Fill()
			holes.lost.GiveUp()
		}
	}
	l.pass(l.to.Sub(l.from))
	holes.collected.Fill()
	holes.late.Fill()
	holes.lost.GiveUp()
	c.mend()

	l.requireRead(c)
	read := time.Since(began)
	l.requireDrained(c)
	loaded := time.Since(began)
	points := l.requireLoaded()
	raw := l.requireRaw()
	l.requireQuarantine()
	l.requireArchived()
	t.Logf("%d points of %d raw messages read in %s, in both databases and the archive after %s: %.0f/s, through %d failures",
		points, raw, read.Round(time.Millisecond), loaded.Round(time.Millisecond), float64(points)/loaded.Seconds(), s.kills)
}

// holes are records that the LoggerNet server lacks.
type holes struct{ collected, late, lost *ldmptest.Hole }

// openHoles has half an hour missing in some tables.
func (l *loggers) openHoles(random *rand.Rand) holes {
	l.Helper()
	open := func(table string) *ldmptest.Hole {
		station := l.Options().Stations[random.IntN(len(l.Options().Stations))].Name
		from := l.from.Add(time.Duration(random.Int64N(int64(l.to.Sub(l.from)-time.Hour))) + time.Minute)
		hole, err := l.OpenHole(station, table, from, from.Add(30*time.Minute))
		require.NoError(l, err)
		return hole
	}
	return holes{collected: open("OneMin"), late: open("Wind"), lost: open("Soil")}
}

// requireRead waits until the bookmark of every table is at its last record, and
// looks for records that were sent and never acknowledged.
func (l *loggers) requireRead(c *chaos) {
	l.Helper()
	for _, station := range l.Options().Stations {
		for _, table := range station.Tables {
			last := l.history(station.Name, table.Name, l.to, l.to)[0]
			key := pipeline.BookmarkKey("extract_campbell_scientific_ldmp."+l.name, station.Name+"="+table.Name)
			var bookmark pipeline.Bookmark
			var err error
			at := c.await(5*time.Minute, func() bool {
				bookmark, err = l.pipeline.Bookmark(l.Context(), key)
				return err == nil && bookmark.Position.Equal(last.Time)
			})
			require.NoError(l, err, key)
			require.True(l, at, "bookmark %s is at %s, and not at %s", key, bookmark.Position, last.Time)
			require.Contains(l, string(bookmark.State), fmt.Sprintf(`{"time":%q,"record_number":%d,"digest":"`, last.Record().Time, last.Number), key)
		}
	}
	for _, station := range l.Options().Stations {
		for _, table := range station.Tables {
			account, err := l.Account(station.Name, table.Name)
			require.NoError(l, err)
			require.Empty(l, account.Unacknowledged, "%s %s", station.Name, table.Name)
		}
	}
}

// requireDrained waits until every consumer has acknowledged the last message that
// it is given, in the order of the pipeline.
func (l *loggers) requireDrained(c *chaos) {
	l.Helper()
	for _, stream := range []string{pipeline.StreamRaw, pipeline.StreamPrepared} {
		var positions map[string]stacktest.Position
		drained := c.await(5*time.Minute, func() bool {
			var err error
			positions, err = l.positions(stream)
			if err != nil || len(positions) == 0 {
				return false
			}
			for _, p := range positions {
				if !p.Done() {
					return false
				}
			}
			return true
		})
		require.True(l, drained, "consumers of stream %s, and where they should be: %v", stream, positions)
	}
}

// positions tells where each durable consumer of a stream is.
func (l *loggers) positions(name string) (map[string]stacktest.Position, error) {
	stream, err := l.pipeline.JetStream().Stream(l.Context(), name)
	if err != nil {
		return nil, err
	}
	found := map[string]stacktest.Position{}
	list := stream.ListConsumers(l.Context())
	for info := range list.Info() {
		if info.Config.Durable == "" {
			continue
		}
		found[info.Name], err = stacktest.PositionOf(l.Context(), l.pipeline.JetStream(), name, info.Name)
		if err != nil {
			return nil, err
		}
	}
	return found, list.Err()
}

// requireLoaded compares each mirror with the ledger, and gives the number of
// points.
func (l *loggers) requireLoaded() int {
	l.Helper()
	ledger := l.ledger()
	points := 0
	for _, want := range ledger {
		points += len(want)
	}
	for _, url := range l.databases() {
		require.Equal(l, slices.Sorted(maps.Keys(ledger)), slices.Sorted(slices.Values(l.measurements(url))))
		for measurement, want := range ledger {
			require.Empty(l, differences(want, l.stored(url, measurement)), "%s of %s", measurement, url)
		}
	}
	return points
}

// differences lists a few of them.
func differences(want, got rows) []string {
	const most = 10
	var found []string
	tell := func(at int64, format string, args ...any) {
		if len(found) < most {
			found = append(found, time.UnixMilli(at).UTC().Format(time.RFC3339)+": "+fmt.Sprintf(format, args...))
		}
	}
	for _, at := range slices.Sorted(maps.Keys(want)) {
		if stored, ok := got[at]; !ok {
			tell(at, "missing")
		} else if !reflect.DeepEqual(want[at], stored) {
			tell(at, "%v, and not %v", stored, want[at])
		}
	}
	for _, at := range slices.Sorted(maps.Keys(got)) {
		if want[at] == nil {
			tell(at, "%v, which nobody sent", got[at])
		}
	}
	return found
}

// requireRaw compares the records in the raw stream with the ledger, and gives the
// number of messages. One may be there twice: sent before a crash and after it.
func (l *loggers) requireRaw() int {
	l.Helper()
	text := func(record ldmp.Record) string {
		encoded, err := json.Marshal(record)
		require.NoError(l, err)
		return string(encoded)
	}
	want := map[string]bool{}
	for _, station := range l.Options().Stations {
		for _, table := range station.Tables {
			readings, err := l.Readings(station.Name, table.Name, l.from, l.to)
			require.NoError(l, err)
			for _, r := range readings {
				want[text(r.Record())] = true
			}
		}
	}
	for _, p := range l.planted {
		if p.record != nil {
			want[text(*p.record)] = true
		}
	}
	messages := l.messages(pipeline.StreamRaw)
	found := map[string]bool{}
	for _, message := range messages {
		var raw pipeline.Message[ldmp.Record]
		require.NoError(l, json.Unmarshal(message.Data(), &raw))
		record := text(raw.Payload)
		require.True(l, want[record], "nobody sent %s", record)
		found[record] = true
	}
	require.Len(l, found, len(want), "records in the raw stream")
	return len(messages)
}

// kept is what is in quarantine.
type kept struct{ stage, class, body string }

// requireQuarantine compares the quarantine with what was planted: all of it is
// there, once, and nothing else.
func (l *loggers) requireQuarantine() {
	l.Helper()
	want, found := map[kept]int{}, map[kept]int{}
	for _, p := range l.planted {
		switch {
		case p.class == "":
		case p.record != nil: // the raw message that holds it
			body, err := json.Marshal(p.record)
			require.NoError(l, err)
			want[kept{string(p.stage), p.class, string(body)}]++
		default: // the frame
			want[kept{string(p.stage), p.class, string(p.frame[:min(len(p.frame), ldmp.MaxFrame)])}]++
		}
	}
	for _, message := range l.messages(pipeline.StreamQuarantine) {
		stage := pipeline.StageExtract
		body := message.Data()
		var raw pipeline.Message[ldmp.Record]
		if json.Unmarshal(body, &raw) == nil {
			stage = pipeline.StagePrepare
			var err error
			body, err = json.Marshal(raw.Payload)
			require.NoError(l, err)
		}
		require.Contains(l, message.Subject(), "."+string(stage)+".live."+l.name+".csi.")
		header := message.Headers()
		require.NotEmpty(l, header.Get(pipeline.HeaderReason))
		require.Equal(l, pipeline.RawSubject(pipeline.OperationLive, l.name, "csi"), header.Get(pipeline.HeaderSubject))
		found[kept{string(stage), header.Get(pipeline.HeaderClass), string(body)}]++
	}
	require.Equal(l, want, found)
}

// requireArchived audits the archive, and compares its lines with the raw stream.
func (l *loggers) requireArchived() {
	l.Helper()
	in := archive.Archive{Store: l.store, Bucket: archive.DefaultBucket}
	report, err := in.Audit(l.Context(), archive.AuditOptions{Deep: true, Stream: l.pipeline})
	require.NoError(l, err)
	require.Empty(l, report.Findings)
	require.Len(l, report.Incarnations, 1)
	incarnation := report.Incarnations[0]
	require.Empty(l, incarnation.Gone)
	require.Zero(l, incarnation.Live.Waiting)

	want := map[uint64]pipeline.Stored{}
	for _, message := range l.messages(pipeline.StreamRaw) {
		stored, err := pipeline.StoredMessage(message)
		require.NoError(l, err)
		want[stored.Sequence] = stored
	}
	require.EqualValues(l, len(want), incarnation.Messages)
	for object, err := range in.Find(l.Context(), archive.Filter{}, "") {
		require.NoError(l, err)
		content, err := in.Read(l.Context(), object.Key)
		require.NoError(l, err)
		for archived, err := range in.Messages(object.Key, content) {
			require.NoError(l, err)
			require.Equal(l, want[archived.Sequence], archived)
			delete(want, archived.Sequence)
		}
	}
	require.Empty(l, want, "messages that the archive has not")
}

// messages reads a stream from its beginning to its end.
func (l *loggers) messages(stream string) []jetstream.Msg {
	l.Helper()
	consumer, err := l.pipeline.JetStream().OrderedConsumer(l.Context(), stream, jetstream.OrderedConsumerConfig{})
	require.NoError(l, err)
	info, err := consumer.Info(l.Context())
	require.NoError(l, err)
	messages := make([]jetstream.Msg, 0, info.NumPending)
	if info.NumPending == 0 {
		return nil
	}
	iterator, err := consumer.Messages()
	require.NoError(l, err)
	defer iterator.Stop()
	for len(messages) < cap(messages) {
		message, err := iterator.Next(jetstream.NextMaxWait(time.Minute))
		require.NoError(l, err)
		messages = append(messages, message)
	}
	return messages
}
