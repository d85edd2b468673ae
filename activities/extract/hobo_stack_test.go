package extract_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/extract"
	"github.com/dendrascience/dendra-jobs/internal/hobolink"
	"github.com/dendrascience/dendra-jobs/internal/hobolink/hobolinktest"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/pipeline/pipelinetest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

const (
	logger   = "21234001"
	tokenRef = job.SecretRef("secret://hobolink")
)

var midnight = time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)

// bench is a vendor, a pipeline and a job between them, with a clock of its own.
type bench struct {
	client  *pipeline.Client
	vendor  *hobolinktest.Handler
	jobType job.Type
	spec    extract.HoboTimeFrameSpec
	name    string
	now     atomic.Pointer[time.Time]
}

func newBench(t *testing.T, name string, options hobolinktest.Options) *bench {
	t.Helper()
	st := stacktest.Start(t)
	client := st.Pipeline(t)
	b := &bench{client: client, name: name}
	b.setNow(midnight)
	options.Token = "token-of-" + name // and a rate limit of its own
	options.Now = func() time.Time { return *b.now.Load() }
	options.Loggers = []string{logger, "21234002"}
	b.vendor = hobolinktest.NewHandler(options)
	server := stacktest.Serve(t, b.vendor)
	b.jobType = extract.HoboTimeFrame(client, extract.WithNow(options.Now), extract.WithHTTPClient(&http.Client{}))
	b.spec = extract.HoboTimeFrameSpec{
		BaseURL: server, Token: tokenRef, Organization: name, Location: name,
		Loggers:  []extract.HoboLogger{{Serial: logger, Station: "Blue Oak"}},
		Backfill: job.Duration(24 * time.Hour), Increment: job.Duration(6 * time.Hour),
	}
	return b
}

func (b *bench) setNow(now time.Time) { b.now.Store(&now) }

func (b *bench) newRun(options ...jobtest.Option) *jobtest.Run {
	definition := jobtest.NewJob(b.jobType, b.name, job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(time.Hour)}}, b.spec)
	secrets := jobtest.WithSecrets(map[job.SecretRef]string{tokenRef: b.vendor.Options().Token})
	return jobtest.NewRun(definition, append(options, secrets)...)
}

func (b *bench) run(t *testing.T) (job.Result, error) {
	t.Helper()
	return b.jobType.Handle(t.Context(), b.newRun())
}

// messages lists everything on a subject.
func (b *bench) messages(t *testing.T, stream, subject string) []jetstream.Msg {
	t.Helper()
	return pipelinetest.Messages(t, b.client, stream, subject)
}

func (b *bench) raw(t *testing.T) []jetstream.Msg {
	return b.messages(t, pipeline.StreamRaw, pipeline.RawSubject("live", b.name, "hobolink"))
}

func (b *bench) prepared(t *testing.T) []jetstream.Msg {
	return b.messages(t, pipeline.StreamPrepared, pipeline.PrepSubject("live", b.name))
}

func (b *bench) quarantine(t *testing.T) []jetstream.Msg {
	return b.messages(t, pipeline.StreamQuarantine, "dendra.quarantine.v1.extract.live."+b.name+".hobolink.>")
}

func (b *bench) bookmark(t *testing.T) pipeline.Bookmark {
	t.Helper()
	bookmark, err := b.client.Bookmark(t.Context(), pipeline.BookmarkKey("extract_hobo_time_frame."+b.name, logger))
	require.NoError(t, err)
	return bookmark
}

func classOf(t *testing.T, err error) (class string, final bool) {
	t.Helper()
	failure := jobtest.FailureOf(t, err)
	return failure.Class, failure.Kind.Final()
}

const perDay = 24*12 + 1 // samples of a day at five minutes, both midnights included

func TestMessagesSayWhatTheVendorSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t, "say", hobolinktest.Options{Seed: 11})
	result, err := b.run(t)
	require.NoError(t, err)
	require.Equal(t, map[string]int64{
		"windows": 5, "requests": 5, "observations": 11 * perDay, "raw": perDay, "prepared": perDay,
		"duplicates": 0, "quarantined": 0,
	}, result.Counts)

	ledger := b.vendor.Observations(logger, midnight.Add(-24*time.Hour), midnight)
	raw := b.raw(t)
	require.Len(t, raw, perDay)
	var first pipeline.Message[extract.HoboSample]
	require.NoError(t, json.Unmarshal(raw[0].Data(), &first))
	require.Equal(t, pipeline.Context{
		ImportedAt: midnight, OrgSlug: "say", Source: "hobolink", Station: "Blue Oak", Table: logger,
	}, first.Context)
	require.Equal(t, "2026-03-03 00:00:00Z", first.Payload.Timestamp)
	require.Len(t, first.Payload.Observations, 11)
	want, err := json.Marshal(ledger[0].Row())
	require.NoError(t, err)
	require.Equal(t, string(want), string(first.Payload.Observations[0]), "verbatim")

	b.requirePoints(t, b.prepared(t), ledger)
}

// requirePoints compares prepared messages with what the vendor has measured, value
// by value.
func (b *bench) requirePoints(t *testing.T, prepared []jetstream.Msg, ledger []hobolinktest.Observation) {
	t.Helper()
	require.Len(t, prepared, len(ledger)/11)
	for i, message := range prepared {
		decoded, err := pipeline.DecodePoints(message.Data())
		require.NoError(t, err)
		require.Equal(t, pipeline.PointOptions{Database: b.name, Precision: "ms"}, decoded.Payload.Options)
		require.Equal(t, b.name, decoded.Context.Location)
		point := decoded.Payload.Points[0]
		require.Equal(t, "station_blue_oak_source_21234001", point.Measurement)
		require.Len(t, point.Fields, 11)
		for _, o := range ledger[i*11 : (i+1)*11] {
			require.True(t, o.Time.Equal(point.Time.Time))
			field := pipeline.SafeName(o.MeasurementType + "_" + o.Sensor + "_" + o.DataType + "_" + o.Unit)
			require.Equal(t, o.Value, point.Fields[field])
		}
	}
}

// TestCorrectedValue changes one value in an hour that was read, and changes it back,
// again and again: each time the hour is published, and what the last messages say
// is what the vendor says.
func TestCorrectedValue(t *testing.T) {
	t.Parallel()
	b := newBench(t, "corrected", hobolinktest.Options{})
	_, err := b.run(t)
	require.NoError(t, err)
	ledger := func() []hobolinktest.Observation {
		return b.vendor.Observations(logger, midnight.Add(-24*time.Hour), midnight)
	}
	const at = 11 * 77 // a temperature at 06:25
	was := ledger()[at].Value
	for n, value := range []float64{-40.5, was, -40.5, was, 12} {
		b.vendor.Correct(ledger()[at], value)
		require.Equal(t, value, ledger()[at].Value)
		result, err := b.run(t)
		require.NoError(t, err)
		require.EqualValues(t, 12, result.Counts["raw"], "its hour")
		require.Zero(t, result.Counts["duplicates"])

		const hour = 72 // its first reading
		require.Len(t, b.raw(t), perDay+12*(n+1))
		prepared := b.prepared(t)
		require.Len(t, prepared, perDay+12*(n+1))
		copy(prepared[hour:hour+12], prepared[len(prepared)-12:]) // who loads in order has these
		b.requirePoints(t, prepared[:perDay], ledger())

		result, err = b.run(t)
		require.NoError(t, err)
		require.Zero(t, result.Counts["raw"]+result.Counts["prepared"], "it is published once")
	}
}

// TestChangeTakenBackAfterAFailure lets a run fail in the middle of a window, when it
// has published a change, and the vendor take the change back before the next run.
func TestChangeTakenBackAfterAFailure(t *testing.T) {
	t.Parallel()
	b := newBench(t, "takenback", hobolinktest.Options{MaxResults: 500, RateLimit: 1000}) // halves of windows
	ledger := func() []hobolinktest.Observation {
		return b.vendor.Observations(logger, midnight.Add(-24*time.Hour), midnight)
	}
	_, err := b.run(t)
	require.NoError(t, err)
	was := ledger()[0]
	b.vendor.Correct(was, -40.5)
	requests := 0
	server := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 3 { // the window, its first half, its second half
			b.vendor.FailNext(1, hobolinktest.Failure{Status: http.StatusUnauthorized})
		}
		b.vendor.ServeHTTP(w, r)
	}))
	b.spec.BaseURL = server
	_, err = b.run(t)
	class, _ := classOf(t, err)
	require.Equal(t, errclass.HobolinkToken, class)
	require.Len(t, b.prepared(t), perDay+12)

	b.vendor.Correct(ledger()[0], was.Value)
	_, err = b.run(t)
	require.NoError(t, err)
	prepared := b.prepared(t)
	require.Len(t, prepared, perDay+12+1, "what the failed run has published as it still is, is there")
	prepared[0] = prepared[perDay+12]
	b.requirePoints(t, prepared[:perDay], ledger())
}

func TestRepeatsAndLateData(t *testing.T) {
	t.Parallel()
	b := newBench(t, "late", hobolinktest.Options{})
	_, err := b.run(t)
	require.NoError(t, err)
	before := b.bookmark(t)

	result, err := b.run(t)
	require.NoError(t, err)
	require.Zero(t, result.Counts["raw"]+result.Counts["prepared"], "nothing has changed: %v", result.Counts)
	require.EqualValues(t, 2*perDay, result.Counts["unchanged"])
	require.Len(t, b.raw(t), perDay)
	require.False(t, b.bookmark(t).Position.Before(before.Position))

	// A logger that was out of reach delivers a sample from the day before, and an
	// hour goes by: both are published, and nothing else.
	late := midnight.Add(-20*time.Hour + 90*time.Second)
	b.vendor.AddRow(late, hobolinktest.Observation{
		Logger: logger, Sensor: "212340019-1", Time: late, MeasurementType: "Water Level", DataType: "CURRENT", Unit: "m", Value: 1.25,
	}.Row())
	b.setNow(midnight.Add(time.Hour))
	result, err = b.run(t)
	require.NoError(t, err)
	// Of hours that have grown, what is new is sent.
	require.Len(t, b.raw(t), perDay+12+1)
	require.Len(t, b.prepared(t), perDay+12+1)
	require.EqualValues(t, 2*(12+1), result.Counts["raw"]+result.Counts["prepared"])
	require.Zero(t, result.Counts["duplicates"])
}

func TestBookmarkMovesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, "moves", hobolinktest.Options{})
	b.spec.Overlap = job.Duration(2 * time.Hour)
	b.spec.MaxWindows = 3
	result, err := b.run(t)
	require.NoError(t, err)
	require.Contains(t, result.Message, "; more of 1 logger for the next run")
	require.True(t, b.bookmark(t).Position.Equal(midnight.Add(-6*time.Hour)), b.bookmark(t).Position)
	_, err = b.run(t)
	require.NoError(t, err)
	require.True(t, b.bookmark(t).Position.Equal(midnight.Add(-2*time.Hour)), "two hours are read again")
	b.spec.Overlap = job.Duration(48 * time.Hour)
	_, err = b.run(t)
	require.NoError(t, err)
	require.True(t, b.bookmark(t).Position.Equal(midnight.Add(-2*time.Hour)), "never back")
	require.Len(t, b.raw(t), perDay)
}

func TestTruncatedWindowsAreHalved(t *testing.T) {
	t.Parallel()
	// Six hours have 803 observations, an hour 132, of which an answer holds 50:
	// halving goes down into the hour.
	b := newBench(t, "halved", hobolinktest.Options{MaxResults: 50, RateLimit: 100_000})
	result, err := b.run(t)
	require.NoError(t, err)
	require.Greater(t, result.Counts["requests"], int64(100))
	require.EqualValues(t, 11*perDay, result.Counts["observations"])
	require.Len(t, b.raw(t), perDay)
	b.requirePoints(t, b.prepared(t), b.vendor.Observations(logger, midnight.Add(-24*time.Hour), midnight))
	result, err = b.run(t)
	require.NoError(t, err)
	require.Zero(t, result.Counts["raw"])
}

func TestTooDenseSecondIsFinal(t *testing.T) {
	t.Parallel()
	b := newBench(t, "dense", hobolinktest.Options{MaxResults: 5, RateLimit: 100_000})
	_, err := b.run(t)
	_, final := classOf(t, err)
	require.True(t, final)
	require.ErrorContains(t, err, "logger "+logger+" has more at 2026-03-03T00:00:00Z than an answer may hold")
	require.Zero(t, b.bookmark(t).Revision)
}

// TestTooDenseHourIsFinal has a server whose answers each are within the bounds, of
// an hour that is not.
func TestTooDenseHourIsFinal(t *testing.T) {
	t.Parallel()
	b := newBench(t, "densehour", hobolinktest.Options{})
	body := `{"data":[` + strings.Repeat("0,", hobolink.MaxRejected-1) + `0]}`
	requests := 0
	server := stacktest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		for name, value := range map[string]string{"Policy": "100000;w=60", "Remaining": "99999", "Reset": "60"} {
			w.Header().Set("RateLimit-"+name, value)
		}
		start, err := time.Parse(time.DateTime, r.URL.Query().Get("start_date_time"))
		end, err2 := time.Parse(time.DateTime, r.URL.Query().Get("end_date_time"))
		if err != nil || err2 != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if end.Sub(start) > time.Minute {
			_, _ = w.Write([]byte(`{"max_results":true,"data":[]}`))
			return
		}
		_, _ = w.Write([]byte(body))
	}))
	b.spec.BaseURL = server
	_, err := b.run(t)
	_, final := classOf(t, err)
	require.True(t, final)
	require.ErrorContains(t, err, "logger "+logger+" has more in the hour from 2026-03-03T00:00:00Z than 4 answers may hold")
	require.Less(t, requests, 90, "no more than it takes to see that")
	require.Zero(t, b.bookmark(t).Revision)
	require.Empty(t, b.quarantine(t))
}

func TestBadObservationsGoToQuarantine(t *testing.T) {
	t.Parallel()
	b := newBench(t, "bad", hobolinktest.Options{})
	at := midnight.Add(-3 * time.Hour)
	row := hobolinktest.Observation{
		Logger: logger, Sensor: "212340019-1", Time: at, MeasurementType: "Water Level", DataType: "CURRENT", Unit: "m", Value: 1,
	}.Row()
	text, future, badTime, foreign := row, row, row, row
	text.Value = "-"
	future.Timestamp = "2031-01-01 00:00:00Z"
	badTime.Timestamp = "yesterday"
	b.vendor.AddRow(at, text)
	b.vendor.AddRow(at, future)
	b.vendor.AddRow(at, badTime)
	foreign.Logger = "21234002"
	b.vendor.AddRow(at, foreign) // not asked for, and so not answered

	result, err := b.run(t)
	require.NoError(t, err)
	require.EqualValues(t, 3, result.Counts["quarantined"])
	require.Len(t, b.raw(t), perDay, "the good ones are published")
	classes := map[string]int{}
	for _, message := range b.quarantine(t) {
		classes[message.Headers().Get(pipeline.HeaderClass)]++
		require.Contains(t, message.Headers().Get(pipeline.HeaderReason), logger)
		require.True(t, json.Valid(message.Data()))
	}
	require.Equal(t, map[string]int{errclass.BadObservation: 2, errclass.FutureTimestamp: 1}, classes)

	result, err = b.run(t)
	require.NoError(t, err)
	require.Zero(t, result.Counts["quarantined"], "kept once")
	require.Len(t, b.quarantine(t), 3)
}

// TestObservationTooLargeForAMessage does not hold up the other loggers, nor the
// points of its time.
func TestObservationTooLargeForAMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t, "large", hobolinktest.Options{})
	b.spec.Loggers = append(b.spec.Loggers, extract.HoboLogger{Serial: "21234002", Station: "Creek"})
	at := midnight.Add(-3*time.Hour + 90*time.Second)
	large := hobolinktest.Observation{
		Logger: logger, Sensor: "212340019-1", Time: at, MeasurementType: "Water Level", DataType: "CURRENT", Unit: "m", Value: 1.5,
	}.Row()
	large.DataTypeID = strings.Repeat("1", 2<<20)
	b.vendor.AddRow(at, large)
	result, err := b.run(t)
	require.NoError(t, err)
	require.EqualValues(t, 1, result.Counts["quarantined"])
	require.EqualValues(t, 2*perDay, result.Counts["raw"])
	require.EqualValues(t, 2*perDay+1, result.Counts["prepared"])
	require.Len(t, b.raw(t), 2*perDay)
	require.Len(t, b.prepared(t), 2*perDay+1)
	kept := b.quarantine(t)
	require.Len(t, kept, 1)
	require.Equal(t, errclass.MessageTooLarge, kept[0].Headers().Get(pipeline.HeaderClass))
	require.Contains(t, kept[0].Headers().Get(pipeline.HeaderReason), "logger "+logger+": nats://")
	require.Contains(t, string(kept[0].Data()), `"212340019-1"`)

	result, err = b.run(t)
	require.NoError(t, err)
	require.Zero(t, result.Counts["quarantined"]+result.Counts["raw"]+result.Counts["prepared"])
}

func TestVendorFailures(t *testing.T) {
	t.Parallel()
	b := newBench(t, "fails", hobolinktest.Options{})
	b.vendor.FailNext(1, hobolinktest.Failure{Status: http.StatusUnauthorized})
	_, err := b.run(t)
	class, final := classOf(t, err)
	require.Equal(t, errclass.HobolinkToken, class)
	require.True(t, final)
	require.NotContains(t, err.Error(), b.vendor.Options().Token)
	require.Zero(t, b.bookmark(t).Revision)

	// What passes is tried again by the client, and is not seen here.
	b.vendor.FailNext(1, hobolinktest.Failure{Status: hobolinktest.StatusBusy})
	b.vendor.FailNext(1, hobolinktest.Failure{Status: http.StatusTooManyRequests, RetryAfter: time.Second})
	_, err = b.run(t)
	require.NoError(t, err)
	require.Len(t, b.raw(t), perDay)
}

func TestUnknownLoggerDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, "unknown", hobolinktest.Options{})
	b.spec.Loggers = append([]extract.HoboLogger{{Serial: "999", Station: "gone"}}, b.spec.Loggers...)
	_, err := b.run(t)
	class, final := classOf(t, err)
	require.Equal(t, errclass.HobolinkRequest, class)
	require.True(t, final)
	require.ErrorContains(t, err, "1 of 2 loggers")
	require.ErrorContains(t, err, "VAL-002")
	require.Len(t, b.raw(t), perDay)
}

func TestStopBetweenWindows(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stop", hobolinktest.Options{})
	run := b.newRun(jobtest.OnCheckpoint(func(r *jobtest.Run, _ jobtest.Checkpoint) {
		if len(r.Checkpoints()) == 2 {
			r.Stop()
		}
	}))
	result, err := b.jobType.Handle(t.Context(), run)
	require.ErrorIs(t, err, job.ErrStopped)
	require.EqualValues(t, 2, result.Counts["windows"])
	require.Equal(t, job.Progress{Done: 2, Total: 5, Message: "logger 21234001 up to 2026-03-03T12:00:00Z"}, run.Checkpoints()[1].Progress)

	_, err = b.jobType.Handle(t.Context(), run.NextAttempt(jobtest.WithSecrets(map[job.SecretRef]string{tokenRef: b.vendor.Options().Token})))
	require.NoError(t, err)
	require.Len(t, b.raw(t), perDay)
}

// TestOvertakenRunIsRefused lets a second run move the bookmark while a first one
// is in the middle of its windows.
func TestOvertakenRunIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, "overtaken", hobolinktest.Options{})
	overtaken := false
	run := b.newRun(jobtest.OnCheckpoint(func(*jobtest.Run, jobtest.Checkpoint) {
		if !overtaken {
			overtaken = true
			_, err := b.run(t)
			require.NoError(t, err)
		}
	}))
	_, err := b.jobType.Handle(t.Context(), run)
	class, final := classOf(t, err)
	require.Equal(t, errclass.StaleBookmark, class)
	require.False(t, final)
	require.Len(t, b.raw(t), perDay, "what both published is there once")
}
