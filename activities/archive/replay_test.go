package archive_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/archive"
	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// publishRecords puts records of a data logger on the stream, as an extract does.
func (b *bench) publishRecords(n int) {
	b.Helper()
	subject := pipeline.RawSubject("live", "ucnrs", "csi")
	var messages []pipeline.Outgoing
	for range n {
		b.serial++
		record := ldmp.Record{
			Number: int64(b.serial), Station: "Blue Oak", Table: "TenMin",
			Time:   time.Date(2026, 3, 1, 0, b.serial, 0, 0, time.UTC).Format("2006-01-02T15:04:05"),
			Fields: []ldmp.Field{{Name: "AT_C", Type: "xsd:float", Value: fmt.Sprintf("%d.5", b.serial)}},
		}
		body, err := pipeline.Message[ldmp.Record]{
			Context: pipeline.Context{
				ImportedAt: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC), OrgSlug: "ucnrs", Source: "csi",
				Station: record.Station, Table: record.Table, UTCOffset: "-08:00",
			},
			Payload: record,
		}.Encode()
		require.NoError(b, err)
		messages = append(messages, pipeline.Outgoing{Subject: subject, Body: body, ID: pipeline.ID(subject, string(body))})
	}
	published, err := b.client.Publish(b.Context(), messages)
	require.NoError(b, err)
	require.EqualValues(b, n, published.Stored)
}

// prepareRecords makes points of the data loggers' records in a flow.
func (b *bench) prepareRecords(operation pipeline.Operation) {
	b.Helper()
	b.prepare(extract.PrepareCampbellScientificLdmp(b.client), operation, "csi",
		extract.PrepareLdmpSpec{Organization: "ucnrs", Location: "common1", OperationMode: operation, IterationDuration: prepareIterationDuration})
}

const prepareIterationDuration = job.Duration(300 * time.Millisecond)

// prepare runs iterations until all raw messages of a source in a flow are prepared.
func (b *bench) prepare(jobType job.Type, operation pipeline.Operation, source string, spec any) {
	b.Helper()
	definition := jobtest.NewJob(jobType, string(operation), job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, spec)
	stacktest.WaitFor(b, "the raw messages to be prepared", func() (bool, error) {
		result, err := jobType.Handle(b.Context(), jobtest.NewRun(definition))
		if err != nil {
			return false, err
		}
		require.Zero(b, result.Counts["quarantined"])
		position, err := stacktest.PositionOf(b.Context(), b.client.JetStream(), pipeline.StreamRaw,
			extract.PrepareConsumerName(operation, "ucnrs", source, definition.ID))
		return position.Done(), err
	})
}

// series is where the value of a moment is stored.
type series struct {
	database, measurement string
	millis                int64
}

// points are the points of a flow as a database would have them in the end.
func (b *bench) points(operation pipeline.Operation) map[series]pipeline.Point {
	b.Helper()
	messages, _, err := b.client.Range(b.Context(), pipeline.StreamPrepared, 1, 1<<62, pipeline.Limit{})
	require.NoError(b, err)
	points := map[series]pipeline.Point{}
	for _, m := range messages {
		if m.Subject != pipeline.PrepSubject(operation, "common1") {
			continue
		}
		decoded, err := pipeline.DecodePoints(m.Body)
		require.NoError(b, err)
		require.Equal(b, operation != pipeline.OperationLive, decoded.Context.Replay)
		require.Equal(b, "ms", decoded.Payload.Options.Precision)
		for _, p := range decoded.Payload.Points {
			points[series{decoded.Payload.Options.Database, p.Measurement, p.Time.UnixMilli()}] = p
		}
	}
	return points
}

func (b *bench) replaySpec() archive.ReplaySpec {
	return archive.ReplaySpec{
		Organization: "ucnrs", Source: "csi", Prefix: b.archive.Prefix,
		From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour),
	}
}

func (b *bench) replayRun(key string, spec archive.ReplaySpec, options ...jobtest.Option) *jobtest.Run {
	jobType := archive.ReplayArchive(b.client, b.store)
	return jobtest.NewRun(jobtest.NewJob(jobType, key, job.Trigger{Queued: &job.Queued{Queue: "replays"}}, spec), options...)
}

// replay runs a replay to its end, through as many stops as it takes.
func (b *bench) replay(key string, spec archive.ReplaySpec, options ...jobtest.Option) (result job.Result, attempts int) {
	b.Helper()
	jobType := archive.ReplayArchive(b.client, b.store)
	run := b.replayRun(key, spec, options...)
	for attempts = 1; ; attempts++ {
		result, err := jobType.Handle(b.Context(), run)
		if err == nil {
			return result, attempts
		}
		require.ErrorIs(b, err, job.ErrStopped)
		run = run.NextAttempt(options...)
	}
}

// TestReplayMakesTheSamePoints from the archive, stopped again and again.
func TestReplayMakesTheSamePoints(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "replay")
	b.spec.FlushMessages = 700
	b.publishRecords(1300)
	b.publish(10, "live.other.csi", "live.ucnrs.hobolink", "test.ucnrs.csi")
	b.drain()
	b.prepareRecords(pipeline.OperationLive)
	live := b.points(pipeline.OperationLive)
	require.Len(t, live, 1300)

	spec := b.replaySpec()
	result, attempts := b.replay("first", spec, jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) { r.Stop() }))
	require.Greater(t, attempts, 3)
	require.EqualValues(t, 1300, result.Counts["messages"])
	require.Contains(t, result.Message, "1300 messages of dendra.raw.v1.live.ucnrs.csi from 2 objects published again to dendra.raw.v1.bulk.ucnrs.csi; nobody takes them")
	b.prepareRecords(pipeline.OperationBulk)
	require.Equal(t, live, b.points(pipeline.OperationBulk))

	// A second replay is not swallowed, and neither is archived again.
	result, attempts = b.replay("second", spec)
	require.Equal(t, 1, attempts)
	require.EqualValues(t, 1300, result.Counts["messages"])
	require.Zero(t, result.Counts["duplicates"])
	require.NotContains(t, result.Message, "nobody takes them")
	counts := b.drain()
	require.EqualValues(t, 2600, counts["replays"])
	b.requireArchived()
	require.EqualValues(t, 1330, b.audit(true).Incarnations[0].Messages)

	replays := 0
	for _, m := range b.stream() {
		if !pipeline.IsReplay(m.Header) {
			continue
		}
		replays++
		require.Equal(t, "dendra.raw.v1.bulk.ucnrs.csi", m.Subject)
		var message pipeline.Message[json.RawMessage]
		require.NoError(t, json.Unmarshal(m.Body, &message))
		require.True(t, message.Context.Replay)
		require.False(t, message.Context.ReplayedAt.IsZero())
		require.Equal(t, pipeline.UTCOffset("-08:00"), message.Context.UTCOffset)
	}
	require.Equal(t, 2600, replays)
}

// TestReplayOfHoboSamples makes the points anew that the extract published beside
// its raw messages.
func TestReplayOfHoboReadings(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "hobo")
	now := func() time.Time { return time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC) }
	vendor := hobolinktest.NewHandler(hobolinktest.Options{Seed: 9, Now: now, Token: "token-of-" + t.Name()})
	server := stacktest.Serve(t, vendor)
	jobType := extract.HoboTimeFrame(b.client, extract.WithNow(now))
	definition := jobtest.NewJob(jobType, "ucnrs", job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour)}}, extract.HoboTimeFrameSpec{
		BaseURL: server, Token: "secret://hobolink", Organization: "ucnrs", Location: "common1", Database: "weather",
		Backfill: job.Duration(24 * time.Hour),
		Loggers:  []extract.HoboLogger{{Serial: "21234001", Station: "Blue Oak"}, {Serial: "21234002", Station: "Creek", Measurement: "creek"}},
	})
	extractAll := func() {
		run := jobtest.NewRun(definition, jobtest.WithSecrets(map[job.SecretRef]string{"secret://hobolink": vendor.Options().Token}))
		_, err := jobType.Handle(t.Context(), run)
		require.NoError(t, err)
	}
	extractAll()
	vendor.Correct(vendor.Observations("21234002", now().Add(-time.Hour), now())[0], -40.5)
	extractAll()
	b.drain()
	live := b.points(pipeline.OperationLive)
	const readings = 2 * (24*12 + 1)
	require.Len(t, live, readings)

	spec := b.replaySpec()
	spec.Source = "hobolink"
	result, _ := b.replay("hobo", spec)
	const correctedHour = 12 // published again as a whole
	require.EqualValues(t, readings+correctedHour, result.Counts["messages"])
	b.prepare(extract.PrepareHoboTimeFrame(b.client), pipeline.OperationBulk, "hobolink", extract.PrepareHoboSpec{
		Organization: "ucnrs", Location: "common1", Database: "weather", IterationDuration: prepareIterationDuration,
		Loggers: []extract.HoboDestination{{Serial: "21234002", Measurement: "creek"}},
	})
	require.Equal(t, live, b.points(pipeline.OperationBulk))
}

func TestReplayOfATimeRange(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "range")
	b.publishRecords(20)
	b.drain()
	messages := b.stream()
	spec := b.replaySpec()
	spec.From, spec.To = messages[5].Time, messages[15].Time
	spec.OperationMode = pipeline.OperationTest
	result, _ := b.replay("some", spec)
	require.EqualValues(t, 10, result.Counts["messages"])
	spec.From, spec.To = spec.From.AddDate(0, 0, -2), spec.From.AddDate(0, 0, -1)
	result, _ = b.replay("none", spec)
	require.Zero(t, result.Counts["messages"])
	require.Contains(t, result.Message, "nothing published: the archive has no messages of dendra.raw.v1.live.ucnrs.csi from that time; the oldest came at ")

	// An object that is not what was written ends it for good.
	for found, err := range b.archive.Find(t.Context(), archive.Filter{}, "") {
		require.NoError(t, err)
		data, info, err := b.archive.Store.Get(t.Context(), "archive", b.archive.Prefix+found.Key, 1<<20)
		require.NoError(t, err)
		data[len(data)/2] ^= 1
		require.NoError(t, b.overwrite(b.archive.Prefix+found.Key, data, info.SHA256))
	}
	jobType := archive.ReplayArchive(b.client, b.store)
	_, err := jobType.Handle(t.Context(), jobtest.NewRun(jobtest.NewJob(jobType, "damaged", job.Trigger{OneShot: &job.OneShot{}}, b.replaySpec())))
	failure := jobtest.FailureOf(t, err)
	require.Equal(t, errclass.ArchiveDamaged, failure.Class)
	require.True(t, failure.Kind.Final())
	report := b.audit(false)
	require.Empty(t, report.Findings, "its size is right")
	report = b.audit(true)
	require.Len(t, report.Findings, 1)
	require.Equal(t, archive.KindDamaged, report.Findings[0].Kind)
}

// TestReplayOfWhatIsNotThere says what there is.
func TestReplayOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "nothing")
	jobType := archive.ReplayArchive(b.client, b.store)
	replay := func(change func(*archive.ReplaySpec)) string {
		spec := b.replaySpec()
		change(&spec)
		_, err := jobType.Handle(t.Context(), jobtest.NewRun(jobtest.NewJob(jobType, "nothing", job.Trigger{Queued: &job.Queued{Queue: "replays"}}, spec)))
		failure := jobtest.FailureOf(t, err)
		require.Equal(t, errclass.NotArchived, failure.Class)
		require.True(t, failure.Kind.Final())
		return err.Error()
	}
	require.Contains(t, replay(func(*archive.ReplaySpec) {}), "has no messages of source csi of organization ucnrs; it has none at all")

	b.publish(1, "live.ucnrs.csi", "live.ucnrs.hobolink", "live.ucnrs-b.csi", "live.other.csi", "unknown")
	b.drain()
	require.Contains(t, replay(func(s *archive.ReplaySpec) { s.Organization = "ucnr" }),
		"the archive archive/"+b.archive.Prefix+" has no messages of source csi of organization ucnr; it has _ (_), other (csi), ucnrs-b (csi), ucnrs (csi, hobolink)")
	require.Contains(t, replay(func(s *archive.ReplaySpec) { s.Source = "hobo" }), "has no messages of source hobo of organization ucnrs; it has ")

	var sources []string
	for n := range 30 {
		sources = append(sources, fmt.Sprintf("live.ucnrs.s%d", n))
	}
	b.publish(1, sources...)
	b.drain()
	text := replay(func(s *archive.ReplaySpec) { s.Organization = "ucnr" })
	require.Contains(t, text, ", and more")
	require.NotContains(t, text, "s29")
}

// TestReplayKeepsItsOrder: the stream refuses the first message, and not its correction.
func TestReplayKeepsItsOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "order")
	envelope := func(payload string) []byte {
		return fmt.Appendf(nil, `{"context":{"imported_at":"2026-03-04T12:00:00Z"},"payload":%q}`, payload)
	}
	subject := pipeline.RawSubject("live", "ucnrs", "csi")
	// It fits as it is, and not with the mark of a replay.
	tooLarge := envelope(strings.Repeat("x", 1<<20-len(envelope(""))))
	correction := envelope("correction")
	_, err := b.client.Publish(t.Context(), []pipeline.Outgoing{
		{Subject: subject, Body: tooLarge}, {Subject: subject, Body: envelope(strings.Repeat("old", 1000))}, {Subject: subject, Body: correction},
		{Subject: subject, Body: tooLarge},
	})
	require.NoError(t, err)
	b.drain()
	stream, err := b.client.JetStream().Stream(t.Context(), pipeline.StreamRaw)
	require.NoError(t, err)
	limit := func(size int32) {
		config := stream.CachedInfo().Config
		config.MaxMsgSize = size
		_, err = b.client.JetStream().UpdateStream(t.Context(), config)
		require.NoError(t, err)
	}
	limit(2000)
	jobType := archive.ReplayArchive(b.client, b.store)
	run := jobtest.NewRun(jobtest.NewJob(jobType, "order", job.Trigger{Queued: &job.Queued{Queue: "replays"}}, b.replaySpec()))
	_, err = jobType.Handle(t.Context(), run)
	require.Equal(t, errclass.PipelineUnreachable, jobtest.FailureOf(t, err).Class)
	limit(-1)
	result, err := jobType.Handle(t.Context(), run.NextAttempt())
	require.NoError(t, err)
	require.EqualValues(t, 2, result.Counts["messages"])
	require.EqualValues(t, 2, result.Counts["too_large"])
	require.Contains(t, result.Message, "; 2 are too large for the server and stay in the archive alone")
	last, err := stream.GetLastMsgForSubject(t.Context(), pipeline.RawSubject("bulk", "ucnrs", "csi"))
	require.NoError(t, err)
	require.Contains(t, string(last.Data), `"payload":"correction"`)

	// Stopped behind the last message that goes out, it counts the one after it once.
	result, attempts := b.replay("stopped", b.replaySpec(), jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) { r.Stop() }))
	require.Greater(t, attempts, 1)
	require.EqualValues(t, 2, result.Counts["messages"])
	require.EqualValues(t, 2, result.Counts["too_large"])
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "documents")
	b.spec.Layout = archive.LayoutDocuments
	b.publishRecords(3)
	const hobo = `{"context":{"org_slug":"ucnrs","source":"hobolink","station":"Blue Oak","table":"21234001"},` +
		`"payload":{"timestamp":"2026-03-04 12:34:56Z","observations":[{"sensor_sn":"22413849-1","value":1}]}}`
	_, err := b.client.Publish(t.Context(), []pipeline.Outgoing{
		{Subject: "dendra.raw.v1.live.ucnrs.hobolink", Body: []byte(hobo)},
		{Subject: "dendra.raw.v1.live.ucnrs.elsewhere", Body: []byte(`{"context":{},"payload":{}}`)},
	})
	require.NoError(t, err)
	counts := b.drain()
	require.EqualValues(t, 5, counts["messages"])
	require.EqualValues(t, 1, counts["unnamed"])
	messages := b.stream()
	require.Equal(t, []string{
		"documents/ucnrs/csi/blue_oak/tenmin/2026/03/01/00/01_0000000001.json",
		"documents/ucnrs/csi/blue_oak/tenmin/2026/03/01/00/02_0000000002.json",
		"documents/ucnrs/csi/blue_oak/tenmin/2026/03/01/00/03_0000000003.json",
		"documents/ucnrs/hobolink/blue_oak/21234001/2026/03/04/12/34_56_22413849_1.json",
		fmt.Sprintf("documents/unnamed/ucnrs/elsewhere/%d_5.json", messages[4].Time.UnixMilli()),
	}, b.keys())
	data, _, err := b.archive.Store.Get(t.Context(), "archive", b.keys()[3], 10_000)
	require.NoError(t, err)
	require.Equal(t, hobo, string(data))

	_, err = b.iteration()
	require.NoError(t, err)
	require.Len(t, b.keys(), 5)
}

// TestDocumentsInOrder: another reader takes one of several messages about the same
// thing, and does not answer.
func TestDocumentsInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t, "--only", "nats,s3"), "documentsinorder")
	b.spec.Layout, b.spec.IterationDuration = archive.LayoutDocuments, job.Duration(time.Hour)
	type iteration struct {
		result job.Result
		err    error
	}
	run, ended := b.newRun(), make(chan iteration, 1)
	go func() {
		result, err := archive.PostToArchive(b.client, b.store).Handle(t.Context(), run)
		ended <- iteration{result, err}
	}()
	var consumer jetstream.Consumer
	stacktest.WaitFor(t, "messages to be waited for", func() (bool, error) {
		var err error
		consumer, err = b.client.JetStream().Consumer(t.Context(), pipeline.StreamRaw, archive.ConsumerName(run.Job().ID, 0))
		return err == nil && consumer.CachedInfo().NumWaiting > 0, nil
	})
	other, err := consumer.Fetch(1, jetstream.FetchMaxWait(30*time.Second))
	require.NoError(t, err)
	last := 0
	publish := func() {
		last++
		_, err := b.client.Publish(t.Context(), []pipeline.Outgoing{{Subject: "dendra.raw.v1.live.o.csi", Body: fmt.Appendf(nil,
			`{"context":{},"payload":{"station":"s","table":"t","timeString":"2026-03-01T00:00:00","recordNumber":7,"value":%d}}`, last)}})
		require.NoError(t, err)
	}
	stacktest.PublishUntilTaken(t, other.Messages(), publish)
	run.Stop()
	first := <-ended
	require.NoError(t, first.err)
	require.NotZero(t, first.result.Counts["rewound"])
	b.last, b.spec.IterationDuration = nil, job.Duration(200*time.Millisecond)
	b.drain()
	require.Len(t, b.keys(), 1)
	data, _, err := b.archive.Store.Get(t.Context(), "archive", b.keys()[0], 10_000)
	require.NoError(t, err)
	require.Contains(t, string(data), fmt.Sprintf(`"value":%d}`, last))
}
