package extract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/internal/ldmp"
	"github.com/dendrascience/dendra-jobs/internal/ldmp/ldmptest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// loggers is a LoggerNet server, a pipeline and the two jobs between them, with a
// clock of its own.
type loggers struct {
	*testing.T
	*ldmptest.Server
	client  *pipeline.Client
	name    string
	address string
	now     atomic.Pointer[time.Time]
	extract job.Type
	prepare job.Type
	spec    extract.CampbellLdmpSpec
	points  extract.PrepareLdmpSpec
}

// newLoggers has two stations of two tables, with six hours of records: 7 and 37
// a station.
func newLoggers(t *testing.T, name string) *loggers {
	t.Helper()
	return newLoggersOn(t, stacktest.Start(t), name)
}

func newLoggersOn(t *testing.T, st *stacktest.Stack, name string) *loggers {
	t.Helper()
	client := st.Pipeline(t)
	l := &loggers{T: t, client: client, name: name}
	l.set(midnight.Add(6 * time.Hour))
	now := func() time.Time { return *l.now.Load() }
	l.Server = ldmptest.New(ldmptest.Options{
		Ledger: true, Now: now, Seed: 3, Stations: ldmptest.Stations(2,
			ldmptest.Table{Name: "Hourly", Interval: time.Hour, Since: midnight},
			ldmptest.Table{Name: "TenMin", Since: midnight}),
	})
	l.listen()
	t.Cleanup(l.Stop)
	l.extract = extract.CampbellScientificLdmp(client, extract.WithNow(now))
	l.prepare = extract.PrepareCampbellScientificLdmp(client)
	l.spec = extract.CampbellLdmpSpec{Server: l.address, Organization: name}
	for i, station := range l.Options().Stations {
		l.spec.Stations = append(l.spec.Stations, extract.LdmpStation{
			Station: station.Name, UTCOffset: pipeline.UTCOffset(fmt.Sprintf("-%02d:00", 8-i)), Tables: []string{"Hourly", "TenMin"},
		})
	}
	l.points = extract.PrepareLdmpSpec{Organization: name, Location: name}
	return l
}

const sixHours = 2 * (7 + 37) // records

func (l *loggers) set(now time.Time) { l.now.Store(&now) }

func (l *loggers) listen() {
	l.Helper()
	address := l.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp4", address)
	require.NoError(l, err)
	l.address = listener.Addr().String()
	l.Start(listener, nil)
}

func (l *loggers) newRun(t job.Type, spec any) *jobtest.Run {
	return jobtest.NewRun(jobtest.NewJob(t, l.name, job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, spec))
}

// iteration is a run of a job that goes on until it is stopped.
type iteration struct {
	*loggers
	run    *jobtest.Run
	done   chan struct{}
	result job.Result
	err    error
}

func (l *loggers) start(t job.Type, spec any) *iteration {
	i := &iteration{loggers: l, run: l.newRun(t, spec), done: make(chan struct{})}
	go func() {
		defer close(i.done)
		i.result, i.err = t.Handle(l.Context(), i.run)
	}()
	l.Cleanup(func() {
		i.run.Stop()
		<-i.done
	})
	return i
}

// end waits for the end of the iteration.
func (i *iteration) end() (job.Result, error) {
	<-i.done
	return i.result, i.err
}

// stop stops the iteration as an operator does.
func (i *iteration) stop() job.Result {
	i.Helper()
	i.run.Stop()
	result, err := i.end()
	require.ErrorIs(i, err, job.ErrStopped)
	return result
}

// acknowledged waits until the server has so many acknowledgements.
func (l *loggers) acknowledged(n int64) {
	l.Helper()
	stacktest.WaitFor(l, fmt.Sprintf("%d acknowledgements", n), func() (bool, error) {
		_, acknowledged := l.Total()
		return acknowledged >= n, nil
	})
}

// extractAll reads until the server has n more acknowledgements.
func (l *loggers) extractAll(n int64) job.Result {
	l.Helper()
	_, before := l.Total()
	i := l.start(l.extract, l.spec)
	l.acknowledged(before + n)
	return i.stop()
}

func (l *loggers) messages(stream, subject string) []jetstream.Msg {
	return (&bench{client: l.client}).messages(l.T, stream, subject)
}

func (l *loggers) raw() []jetstream.Msg {
	return l.messages(pipeline.StreamRaw, pipeline.RawSubject("live", l.name, "csi"))
}

func (l *loggers) quarantine(stage pipeline.Stage) []jetstream.Msg {
	return l.messages(pipeline.StreamQuarantine, "dendra.quarantine.v1."+string(stage)+".live."+l.name+".csi.>")
}

func (l *loggers) bookmark(source string) pipeline.Bookmark {
	l.Helper()
	bookmark, err := l.client.Bookmark(l.Context(), pipeline.BookmarkKey("extract_campbell_scientific_ldmp."+l.name, source))
	require.NoError(l, err)
	return bookmark
}

// requireState looks where the next connection begins.
func (l *loggers) requireState(bookmark pipeline.Bookmark, clock string, number int64) {
	l.Helper()
	var state struct {
		Time   string `json:"time"`
		Number int64  `json:"record_number"`
		Digest string `json:"digest"`
	}
	require.NoError(l, json.Unmarshal(bookmark.State, &state))
	require.Equal(l, clock, state.Time)
	require.Equal(l, number, state.Number)
	require.NotEmpty(l, state.Digest)
}

// readings are those of all tables, by what identifies a record.
func (l *loggers) readings() map[string]ldmptest.Reading {
	l.Helper()
	all := map[string]ldmptest.Reading{}
	for _, station := range l.Options().Stations {
		for _, table := range station.Tables {
			readings, err := l.Readings(station.Name, table.Name, midnight, midnight.Add(24*time.Hour))
			require.NoError(l, err)
			for _, r := range readings {
				all[keyOf(r.Record())] = r
			}
		}
	}
	return all
}

func keyOf(r ldmp.Record) string { return r.Station + " " + r.Table + " " + r.Time }

// requireRaw compares the raw stream with the server's records: each is there, as
// it was sent, once.
func (l *loggers) requireRaw() {
	l.Helper()
	found := map[string]ldmp.Record{}
	for _, message := range l.raw() {
		var decoded pipeline.Message[ldmp.Record]
		require.NoError(l, json.Unmarshal(message.Data(), &decoded))
		key := keyOf(decoded.Payload)
		require.NotContains(l, found, key)
		found[key] = decoded.Payload
	}
	expected := map[string]ldmp.Record{}
	for key, reading := range l.readings() {
		expected[key] = reading.Record()
	}
	require.Equal(l, expected, found)
}

func TestRecordsBecomeRawMessages(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "records")
	result := l.extractAll(sixHours)
	require.Equal(t, map[string]int64{
		"acknowledged": sixHours, "connections": 1, "duplicates": 0, "raw": sixHours, "records": sixHours,
	}, result.Counts)
	require.Contains(t, result.Message, fmt.Sprintf("%d records of 4 of 4 tables of %s, the latest of 2026-03-04T06:00:00Z", sixHours, l.address))
	l.requireRaw()
	var first pipeline.Message[json.RawMessage]
	require.NoError(t, json.Unmarshal(l.raw()[0].Data(), &first))
	require.Equal(t, pipeline.Context{
		ImportedAt: midnight.Add(6 * time.Hour), OrgSlug: "records", Source: "csi", Station: "stn_0", Table: "Hourly", UTCOffset: "-08:00",
	}, first.Context)
	require.Contains(t, string(first.Payload), `"timeString":"2026-03-03T16:00:00","fields":[{"name":"AT_C_Avg","process":"Avg","type":"xsd:float","units":"°C","value":"`)

	bookmark := l.bookmark("stn_1=TenMin")
	require.True(t, bookmark.Position.Equal(midnight.Add(6*time.Hour)), bookmark.Position)
	l.requireState(bookmark, "2026-03-03T23:00:00", 36)

	// The next iteration begins with the last record of each table, which it knows.
	l.set(midnight.Add(7 * time.Hour))
	result = l.extractAll(4 + 2*(1+6))
	require.EqualValues(t, 4, result.Counts["repeats"])
	require.EqualValues(t, 14, result.Counts["raw"])
	l.requireRaw()
	for _, station := range l.Options().Stations {
		for _, table := range station.Tables {
			account, err := l.Account(station.Name, table.Name)
			require.NoError(t, err)
			require.Empty(t, account.Unacknowledged)
		}
	}
}

func TestLapEndsByItself(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "iteration")
	l.spec.IterationDuration = job.Duration(time.Second)
	l.iterations("all records", func(job.Result) bool { return len(l.raw()) == sixHours })
	l.spec.Stations[0].Tables = append(l.spec.Stations[0].Tables, "NoSuch")
	result := l.iterations("the last record of each table again", func(result job.Result) bool { return result.Counts["repeats"] == 4 })
	require.Contains(t, result.Message, "4 records of 0 of 5 tables")
	require.Contains(t, result.Message, "nothing ever of stn_0 NoSuch")
	l.requireRaw()
}

// iterations runs iterations that end by themselves, and without an error, until one is
// enough.
func (l *loggers) iterations(what string, enough func(job.Result) bool) (result job.Result) {
	l.Helper()
	stacktest.WaitFor(l, what, func() (bool, error) {
		var err error
		result, err = l.start(l.extract, l.spec).end()
		require.NoError(l, err, "nothing to say is no failure")
		return enough(result), nil
	})
	return result
}

func TestStartOptions(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "starts")
	spec := l.spec
	spec.Stations = []extract.LdmpStation{{Station: "stn_0", UTCOffset: "-08:00", Tables: []string{"Hourly"}}}
	for n, c := range []struct {
		change func(*extract.CampbellLdmpSpec)
		first  int64
	}{
		{func(*extract.CampbellLdmpSpec) {}, 0},
		{func(s *extract.CampbellLdmpSpec) { s.StartOption = ldmp.StartAtOldest }, 0},
		{func(s *extract.CampbellLdmpSpec) { s.StartOption = ldmp.StartAtNewest }, 6},
		{func(s *extract.CampbellLdmpSpec) {
			s.StartOption, s.Backfill = ldmp.StartRelativeToNewest, job.Duration(2*time.Hour)
		}, 4},
		{func(s *extract.CampbellLdmpSpec) { s.Backfill = job.Duration(3 * time.Hour) }, 3},
		{func(s *extract.CampbellLdmpSpec) { s.Start = midnight.Add(90 * time.Minute) }, 2},
	} {
		s := spec
		s.Organization = fmt.Sprintf("starts%d", n)
		c.change(&s)
		_, before := l.Total()
		i := &iteration{loggers: l, done: make(chan struct{})}
		i.run = jobtest.NewRun(jobtest.NewJob(l.extract, s.Organization, job.Trigger{Continuous: &job.Continuous{Interval: job.MinInterval}}, s))
		go func() {
			defer close(i.done)
			i.result, i.err = l.extract.Handle(t.Context(), i.run)
		}()
		l.acknowledged(before + 7 - c.first)
		i.stop()
		raw := l.messages(pipeline.StreamRaw, pipeline.RawSubject("live", s.Organization, "csi"))
		require.Len(t, raw, int(7-c.first), "case %d", n)
		var first pipeline.Message[ldmp.Record]
		require.NoError(t, json.Unmarshal(raw[0].Data(), &first))
		require.Equal(t, c.first, first.Payload.Number, "case %d", n)
	}
}

func TestConnectionsAreMadeAgain(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "again")
	l.set(midnight)
	i := l.start(l.extract, l.spec)
	l.acknowledged(4)
	require.Equal(t, 1, l.Cut())
	l.set(midnight.Add(2 * time.Hour))
	l.Touch()
	l.acknowledged(2 * (3 + 13))
	l.Stop()
	l.set(midnight.Add(6 * time.Hour))
	l.listen()
	stacktest.WaitFor(t, "all records", func() (bool, error) { return len(l.raw()) == sixHours, nil })
	result := i.stop()
	require.EqualValues(t, 3, result.Counts["connections"])
	l.requireRaw()
}

func TestServerThatIsAway(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "away")
	l.Stop()
	_, err := l.start(l.extract, l.spec).end()
	class, final := classOf(t, err)
	require.Equal(t, errclass.LdmpUnreachable, class)
	require.False(t, final)
	require.ErrorContains(t, err, l.address)
}

func TestHolesAreWaitedFor(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "holes")
	hole, err := l.OpenHole("stn_0", "TenMin", midnight.Add(time.Hour), midnight.Add(2*time.Hour))
	require.NoError(t, err)
	lost, err := l.OpenHole("stn_1", "Hourly", midnight.Add(time.Hour), midnight.Add(3*time.Hour))
	require.NoError(t, err)
	const before = 7 + 6 + 1 + 37
	l.spec.IterationDuration = job.Duration(time.Second)
	l.iterations("all but what is behind the holes", func(job.Result) bool { return len(l.raw()) == before })
	require.True(t, l.bookmark("stn_0=TenMin").Position.Equal(midnight.Add(50*time.Minute)))
	require.True(t, l.bookmark("stn_0=Hourly").Position.Equal(midnight.Add(6*time.Hour)), "the other tables go on")

	hole.Fill()
	lost.GiveUp()
	l.iterations("the rest", func(job.Result) bool { return len(l.raw()) >= sixHours-2 })
	l.requireRaw()
}

func TestBadFramesAreAcknowledgedAndKept(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "badframes")
	malformed := ldmptest.Malformed()
	names := slices.Sorted(maps.Keys(malformed))
	for i, name := range names {
		require.NoError(t, l.Replace("stn_0", "TenMin", midnight.Add(time.Duration(i)*20*time.Minute), malformed[name]))
	}
	foreign := ldmptest.Encode(ldmp.Record{Number: 1, Station: "stn_9", Table: "TenMin", Time: "2026-03-04T00:00:00"})
	require.NoError(t, l.Replace("stn_1", "Hourly", midnight.Add(time.Hour), foreign))
	i := l.start(l.extract, l.spec)
	// Acknowledgements do not tell: after another connection some are of repeats.
	stacktest.WaitFor(t, "all records", func() (bool, error) {
		return len(l.raw()) == sixHours-len(names)-1 && len(l.quarantine(pipeline.StageExtract)) == len(names)+1, nil
	})
	result := i.stop()
	require.EqualValues(t, len(names)+1, result.Counts["quarantined"], "%v", result.Counts)
	require.EqualValues(t, sixHours-len(names)-1, result.Counts["raw"], "%v", result.Counts)
	l.requireRaw()

	kept := map[string]string{}
	for _, message := range l.quarantine(pipeline.StageExtract) {
		header := message.Headers()
		kept[string(message.Data())] = header.Get(pipeline.HeaderClass)
		require.NotEmpty(t, header.Get(pipeline.HeaderReason))
		require.Equal(t, l.address, header.Get(pipeline.HeaderTarget))
	}
	expected := map[string]string{string(foreign): errclass.UnknownTable}
	for _, frame := range malformed {
		expected[string(frame[:min(len(frame), ldmp.MaxFrame)])] = errclass.BadRecord
	}
	require.Equal(t, expected, kept)

	// They come again with a new bookmark, and are kept once.
	l.spec.StartOption = ldmp.StartAtOldest
	bucket, err := l.client.JetStream().KeyValue(t.Context(), pipeline.BucketBookmarks)
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(t.Context(), pipeline.BookmarkKey("extract_campbell_scientific_ldmp.badframes", "stn_0=TenMin")))
	result = l.extractAll(37 + 3)
	require.Zero(t, result.Counts["quarantined"])
	require.Len(t, l.quarantine(pipeline.StageExtract), len(names)+1)
}

func TestRecordOfAWrongClockIsNoPosition(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "clock")
	for n, wrong := range map[int]string{
		0: "2099-01-01T00:00:00", 1: "0000-01-01T00:00:00", 2: "9999-12-31T23:59:59", // the first it has
		35: "1990-01-01T00:00:00", 36: "2098-01-01T00:00:00", // the last
	} {
		mad := ldmp.Record{Number: 4000, Station: "stn_0", Table: "TenMin", Time: wrong}
		require.NoError(t, l.Replace("stn_0", "TenMin", midnight.Add(time.Duration(n)*10*time.Minute), ldmptest.Encode(mad)))
	}
	result := l.extractAll(sixHours)
	require.EqualValues(t, 5, result.Counts["out_of_range"])
	require.Len(t, l.raw(), sixHours, "what the logger says is kept")
	require.True(t, l.bookmark("stn_0=TenMin").Position.Equal(midnight.Add(340*time.Minute)), l.bookmark("stn_0=TenMin").Position)
	l.requireState(l.bookmark("stn_0=TenMin"), "2026-03-03T21:40:00", 34)
}

// TestCorrectionFollowsWhatItCorrects reads a record and its correction again, when
// the stream does not drop repeats any more.
func TestCorrectionFollowsWhatItCorrects(t *testing.T) {
	t.Parallel()
	l := newLoggersOn(t, stacktest.StartOwn(t, "--only", "nats"), "corrected")
	ctx := t.Context()
	stream, err := l.client.JetStream().Stream(ctx, pipeline.StreamRaw)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.Duplicates = 100 * time.Millisecond // the least
	_, err = l.client.JetStream().UpdateStream(ctx, config)
	require.NoError(t, err)

	options := l.Options()
	options.Window = 8 // the correction comes before its original is acknowledged
	l.Stop()
	l.Server = ldmptest.New(options)
	readings, err := l.Readings("stn_0", "TenMin", midnight.Add(350*time.Minute), midnight.Add(350*time.Minute))
	require.NoError(t, err)
	correction := readings[0].Record()
	correction.Number, correction.Fields = 36, []ldmp.Field{{Name: "AT_C_Avg", Type: "xsd:float", Value: "11.5"}}
	require.NoError(t, l.Replace("stn_0", "TenMin", midnight.Add(6*time.Hour), ldmptest.Encode(correction)))
	l.listen()
	t.Cleanup(l.Stop)

	l.spec.Stations = l.spec.Stations[:1]
	l.spec.Stations[0].Tables = []string{"TenMin"}
	l.extractAll(37)
	l.requireState(l.bookmark("stn_0=TenMin"), "2026-03-03T21:50:00", 36)
	before := len(l.raw())
	stacktest.WaitFor(t, "the original and its correction once more", func() (bool, error) {
		l.extractAll(2)
		return len(l.raw()) > before, nil
	})
	var last ldmp.Record
	for _, message := range l.raw() {
		var decoded pipeline.Message[ldmp.Record]
		require.NoError(t, json.Unmarshal(message.Data(), &decoded))
		if keyOf(decoded.Payload) == keyOf(correction) {
			last = decoded.Payload
		}
	}
	require.Equal(t, correction, last)
}

// TestCorrectionIsNotOvertaken reads a record that the stream has forgotten and its
// correction, which it drops as a repeat, and a later one, which is new.
func TestCorrectionIsNotOvertaken(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "notovertaken")
	const at = 350 * time.Minute
	options := l.Options()
	options.Window = 8
	l.Stop()
	l.Server = ldmptest.New(options)
	l.spec.Stations = l.spec.Stations[:1]
	l.spec.Stations[0].Tables = []string{"TenMin"}
	readings, err := l.Readings("stn_0", "TenMin", midnight.Add(at), midnight.Add(at))
	require.NoError(t, err)
	original := readings[0].Record()
	correction := func(number int64, value string) ldmp.Record {
		r := original
		r.Number, r.Fields = number, []ldmp.Field{{Name: "AT_C_Avg", Type: "xsd:float", Value: value}}
		require.NoError(t, l.Replace("stn_0", "TenMin", midnight.Add(time.Duration(number)*10*time.Minute), ldmptest.Encode(r)))
		return r
	}
	first, second := correction(36, "11.5"), correction(37, "12.5")
	// The stream does not know the original: what comes in its place is no record.
	require.NoError(t, l.Replace("stn_0", "TenMin", midnight.Add(at), ldmptest.Malformed()["no XML"]))
	l.listen()
	t.Cleanup(l.Stop)
	l.extractAll(37)
	require.NoError(t, l.Replace("stn_0", "TenMin", midnight.Add(at), ldmptest.Encode(original)))
	l.set(midnight.Add(at + 20*time.Minute))
	result := l.extractAll(3)
	require.EqualValues(t, 1, result.Counts["duplicates"], "%v", result.Counts)

	var order []int64
	for _, message := range l.raw()[35:] {
		var decoded pipeline.Message[ldmp.Record]
		require.NoError(t, json.Unmarshal(message.Data(), &decoded))
		order = append(order, decoded.Payload.Number)
	}
	require.Equal(t, []int64{first.Number, original.Number}, order[:2])
	require.Equal(t, second.Number, order[len(order)-1])
	require.Contains(t, order[2:], first.Number)
}

// TestAcknowledgedIsStored kills NATS in the middle of a backlog: what the server
// was told to have arrived is in the stream that comes back.
func TestAcknowledgedIsStored(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats")
	l := newLoggersOn(t, st, "stored")
	l.set(midnight.Add(30 * 24 * time.Hour))
	l.spec.StartOption = ldmp.StartAtOldest
	i := l.start(l.extract, l.spec)
	l.acknowledged(1 + stacktest.Random(t).Int64N(1000))
	st.Kill()
	_, err := i.end()
	class, final := classOf(t, err)
	require.Equal(t, errclass.PipelineUnreachable, class)
	require.False(t, final)
	_, acknowledged := l.Total()
	t.Logf("%d acknowledged when NATS was gone", acknowledged)
	require.Less(t, acknowledged, int64(2*(721+4321)))

	st.Restart(t)
	stacktest.WaitFor(t, "the test's own connection to be back", func() (bool, error) {
		_, err := l.client.JetStream().Stream(t.Context(), pipeline.StreamRaw)
		return err == nil, nil
	})
	require.GreaterOrEqual(t, int64(len(l.raw())), acknowledged)
	i = l.start(l.extract, l.spec)
	stacktest.WaitFor(t, "the rest of the backlog", func() (bool, error) {
		stream, err := l.client.JetStream().Stream(t.Context(), pipeline.StreamRaw)
		return err == nil && stream.CachedInfo().State.Msgs == 2*(721+4321), err
	})
	i.stop()
}

// TestOvertakenExtractIsRefused has two attempts read the same tables.
func TestOvertakenExtractIsRefused(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "overtaken2")
	first := l.start(l.extract, l.spec)
	l.acknowledged(sixHours)
	stacktest.WaitFor(t, "the bookmarks of the first", func() (bool, error) {
		return l.bookmark("stn_1=TenMin").Position.Equal(midnight.Add(6 * time.Hour)), nil
	})
	l.set(midnight.Add(7 * time.Hour))
	second := l.start(l.extract, l.spec)
	both := []*iteration{first, second}
	var refused *iteration
	stacktest.WaitFor(t, "one of the two to end", func() (bool, error) {
		for _, i := range both {
			select {
			case <-i.done:
				refused = i
			default:
			}
		}
		return refused != nil, nil
	})
	_, err := refused.end()
	class, final := classOf(t, err)
	require.Equal(t, errclass.StaleBookmark, class)
	require.False(t, final)
	stacktest.WaitFor(t, "the other to have read all", func() (bool, error) { return len(l.raw()) >= len(l.readings()), nil })
	l.requireRaw()
}
