package extract_test

import (
	"context"
	"encoding/json"
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
)

// restart gives the server another window, and has one table be read.
func (l *loggers) restart(window int) {
	l.Helper()
	options := l.Options()
	options.Window = window
	l.Stop()
	l.Server = ldmptest.New(options)
	l.listen()
	l.Cleanup(l.Server.Stop)
	l.spec.Stations = l.spec.Stations[:1]
	l.spec.Stations[0].Tables = []string{"TenMin"}
}

// last is the record of a time that whoever reads the stream in order ends with.
func (l *loggers) last(of ldmp.Record) (last ldmp.Record) {
	l.Helper()
	for _, message := range l.raw() {
		var decoded pipeline.Message[ldmp.Record]
		require.NoError(l, json.Unmarshal(message.Data(), &decoded))
		if keyOf(decoded.Payload) == keyOf(of) {
			last = decoded.Payload
		}
	}
	return last
}

// TestRecordThatIsRecordedAnew: after a reset a logger may have another record with
// the number and the time of the last one.
func TestRecordThatIsRecordedAnew(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "anew")
	l.restart(1)
	end := midnight.Add(6 * time.Hour)
	readings, err := l.Readings("stn_0", "TenMin", end, end)
	require.NoError(t, err)
	was := readings[0].Record()
	is := was
	is.Fields = []ldmp.Field{{Name: "AT_C_Avg", Type: "xsd:float", Value: "99.25"}}
	l.extractAll(37)
	for n, record := range []ldmp.Record{is, was, is} {
		require.NoError(t, l.Replace("stn_0", "TenMin", end, ldmptest.Encode(record)))
		result := l.extractAll(1)
		if n < 2 { // the third is a repeat of the first, within the stream's window
			require.EqualValues(t, 1, result.Counts["raw"], "%v", result.Counts)
			require.Equal(t, record, l.last(was))
		}
		require.Zero(t, result.Counts["repeats"])
		require.EqualValues(t, 1, l.extractAll(1).Counts["repeats"], "it is published once, %d", n)
	}

	// A bookmark of an earlier version does not say what the record was.
	bookmark := l.bookmark("stn_0=TenMin")
	_, err = l.client.Advance(t.Context(), bookmark, bookmark.Position, map[string]any{"time": was.Time, "record_number": was.Number}, "test")
	require.NoError(t, err)
	result := l.extractAll(1)
	require.EqualValues(t, 1, result.Counts["raw"], "%v", result.Counts)
	require.EqualValues(t, 1, l.extractAll(1).Counts["repeats"])
}

// TestServerThatDiesOfItsFirstRecord is cut off as soon as it was told that the
// record of the bookmark has arrived.
func TestServerThatDiesOfItsFirstRecord(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "dies")
	l.restart(1)
	l.extractAll(37)
	_, seen := l.Total()
	i := l.start(l.extract, l.spec)
	stacktest.WaitFor(t, "the iteration to fail", func() (bool, error) {
		if _, acknowledged := l.Total(); acknowledged > seen {
			seen = acknowledged
			l.Cut()
		}
		select {
		case <-i.done:
			return true, nil
		default:
			return false, nil
		}
	})
	result, err := i.end()
	class, final := classOf(t, err)
	require.Equal(t, errclass.LdmpDisconnected, class)
	require.False(t, final)
	// Were the repeats taken for progress, it would not have failed. A connection that was
	// not made at all is a try as well.
	require.NotZero(t, result.Counts["repeats"])
	require.LessOrEqual(t, result.Counts["connections"], int64(4))
}

// TestCorrectionFollowsWhatWasStoredBehindIt: the stream has taken a record and its
// correction in the wrong order, and drops both when they are read once more.
func TestCorrectionFollowsWhatWasStoredBehindIt(t *testing.T) {
	t.Parallel()
	l := newLoggersOn(t, stacktest.StartOwn(t, "--only", "nats"), "behind")
	l.restart(8)
	at := midnight.Add(350 * time.Minute)
	readings, err := l.Readings("stn_0", "TenMin", at, at)
	require.NoError(t, err)
	original := readings[0].Record()
	correction := original
	correction.Number, correction.Fields = 36, []ldmp.Field{{Name: "AT_C_Avg", Type: "xsd:float", Value: "11.5"}}
	require.NoError(t, l.Replace("stn_0", "TenMin", midnight.Add(6*time.Hour), ldmptest.Encode(correction)))
	l.extractAll(37)
	raw := l.raw()
	require.Len(t, raw, 37)

	js := l.client.JetStream()
	require.NoError(t, js.DeleteStream(t.Context(), pipeline.StreamRaw))
	require.NoError(t, pipeline.Ensure(t.Context(), js, pipeline.StreamSettings{}))
	for _, n := range []int{36, 35} {
		_, err := l.client.Publish(t.Context(), []pipeline.Outgoing{{
			Subject: raw[n].Subject(), ID: raw[n].Headers().Get(jetstream.MsgIDHeader), Body: raw[n].Data(),
		}})
		require.NoError(t, err)
	}
	require.Equal(t, original, l.last(original))
	bucket, err := js.KeyValue(t.Context(), pipeline.BucketBookmarks)
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(t.Context(), pipeline.BookmarkKey("extract_campbell_scientific_ldmp.behind", "stn_0=TenMin")))
	result := l.extractAll(37)
	require.EqualValues(t, 2, result.Counts["duplicates"])
	require.EqualValues(t, 35+1, result.Counts["raw"], "the correction once more")
	require.Equal(t, correction, l.last(original))

	result = l.extractAll(2)
	require.EqualValues(t, 3, result.Counts["duplicates"], "its order is kept, and nothing is added to it: %v", result.Counts)
	require.Len(t, l.raw(), 38)
}

// TestNothingIsSentAfterTheEnd of the right to work, which comes with the first record.
func TestNothingIsSentAfterTheEnd(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "ended")
	l.restart(8)
	l.spec.IterationDuration = job.Duration(2 * time.Second)
	ended := stacktest.EndsWhenAsked(t.Context(), func() bool { sent, _ := l.Total(); return sent > 0 })
	_, err := l.extract.Handle(ended, l.newRun(l.extract, l.spec))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, l.raw())
}

// TestKeysThatMeetInOneName: each of two jobs of an organization prepares everything.
func TestKeysThatMeetInOneName(t *testing.T) {
	t.Parallel()
	l := newLoggers(t, "meet")
	l.extractAll(sixHours)
	for location, key := range map[string]string{"meet1": "meet_west", "meet2": "meet-west", "meet3": "meet.west"} {
		l.name, l.points.Location = key, location
		require.EqualValues(t, sixHours, l.prepareAll().Counts["prepared"], key)
		require.Len(t, l.prepared("live", location), sixHours)
	}
}

func TestPrepareConsumerNames(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for _, key := range []string{"west", "ucnrs_west", "ucnrs-west", "ucnrs.west", "ucnrs..west", "ucnrs-west.1"} {
		name := extract.PrepareConsumerName("live", "ucnrs", "csi", "prepare_campbell_scientific_ldmp."+key)
		require.NotContains(t, names, name, key)
		names[name] = key
		require.Regexp(t, `^prepare-live-ucnrs-csi-[a-z0-9_]+(-[0-9a-f]{8})?$`, name)
	}
	require.Equal(t, "ucnrs_west", names["prepare-live-ucnrs-csi-ucnrs_west"], "as in earlier versions")
}
