package reversesync_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// whenWritten calls do after each request that writes a document.
func whenWritten(do func()) func(*http.Request) {
	return func(request *http.Request) {
		if isWrite(request) {
			do()
		}
	}
}

// dies syncs station 1 with a worker that dies right after it has written the document.
func (r *syncSite) dies(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r.requests.seen = whenWritten(cancel)
	_, err := r.SyncOne(ctx, kind(t, "station"), newStation(1).GetId(), false)
	require.ErrorIs(t, err, context.Canceled)
	r.requests.seen = nil
}

// station changes station 1 of Release 3.
func (r *syncSite) station(t *testing.T, change func(*platformv1.Station)) {
	t.Helper()
	r.putStations(t, 1, change)
}

func (r *syncSite) document(t *testing.T) release2.Document {
	t.Helper()
	d, err := r.human.Get(t.Context(), "stations", newStation(1).GetId())
	require.NoError(t, err)
	return d
}

// unmapped is an edit that reverse sync has nothing to do with.
var unmapped = map[string]any{"involved_parties": []any{map[string]any{"roles": []any{"x"}}}}

func named(name string) func(*platformv1.Station) {
	return func(s *platformv1.Station) { s.Name = name }
}

func disabled(s *platformv1.Station) { s.IsEnabled = false }

// TestAnEditThatTakesALostWriteBackIsKept: the record is older than the write, and the
// edit is as before the write.
func TestAnEditThatTakesALostWriteBackIsKept(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	r.station(t, unchanged)
	r.sync(t, "station", false)
	r.station(t, disabled)
	r.dies(t)
	require.Equal(t, false, r.document(t)["is_enabled"])
	r.edit(t, "stations", newStation(1).GetId(), map[string]any{"is_enabled": true})
	report, differences := r.sync(t, "station", false)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: 1, Conflicts: 1}, report)
	require.Equal(t, []string{"is_enabled"}, differences[0].Conflict.Fields)
	require.Equal(t, true, r.document(t)["is_enabled"])
	r.sync(t, "station", false)
	require.Equal(t, true, r.document(t)["is_enabled"], "also of a conflict that is known")
}

// TestAWriteWhoseRecordIsLost is followed by an edit of another field: the values that
// were written are still known.
func TestAWriteWhoseRecordIsLost(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	r.station(t, unchanged)
	r.sync(t, "station", false)
	r.station(t, named("Written"))
	r.dies(t)
	r.edit(t, "stations", newStation(1).GetId(), unmapped)
	r.station(t, named("Last"))
	report, differences := r.sync(t, "station", false)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: 1, Updated: 1}, report, "%+v", differences)
	require.Equal(t, "Last", r.document(t)["name"])
}

// TestACreateWhoseRecordIsLost is followed by changes in both releases.
func TestACreateWhoseRecordIsLost(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	r.station(t, unchanged)
	r.dies(t)
	r.station(t, named("Second"))
	report, differences := r.sync(t, "station", false)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: 1, Updated: 1}, report, "%+v", differences)

	r.remove(t, "stations", newStation(1).GetId())
	report, _ = r.sync(t, "station", false)
	require.Equal(t, 1, report.Conflicts, "it was deleted after it was recorded")
}

// TestAWriteThatWasNotMade leaves the document as it was, and is no edit.
func TestAWriteThatWasNotMade(t *testing.T) {
	t.Parallel()
	for _, created := range []bool{false, true} {
		r := newSyncSite(t)
		r.station(t, unchanged)
		if created {
			r.sync(t, "station", false)
		}
		r.station(t, disabled)
		r.requests.instead = func(request *http.Request) int {
			if isWrite(request) {
				return -1
			}
			return 0
		}
		_, err := r.SyncOne(t.Context(), kind(t, "station"), newStation(1).GetId(), false)
		requireClass(t, err, errclass.Release2Unreachable, false)
		r.requests.instead = nil
		r.station(t, func(s *platformv1.Station) { s.IsEnabled, s.Name = false, "Renamed" })
		report, differences := r.sync(t, "station", false)
		require.Equal(t, 1, report.Created+report.Updated, "%+v", differences)
		require.Equal(t, []any{false, "Renamed"}, []any{r.document(t)["is_enabled"], r.document(t)["name"]})
	}
}

func requireClass(t *testing.T, err error, class string, final bool) {
	t.Helper()
	failure := jobtest.FailureOf(t, err)
	require.Equal(t, []any{class, final}, []any{failure.Class, failure.Kind.Final()}, err.Error())
}

// TestTwoSyncersAndAnEdit: another syncer writes what this one has just read.
func TestTwoSyncersAndAnEdit(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	id := newStation(1).GetId()
	r.station(t, unchanged)
	r.sync(t, "station", false)
	r.edit(t, "stations", id, unmapped)
	r.station(t, named("Second"))
	asked := false
	r.requests.seen = func(request *http.Request) {
		if !asked && request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, id) {
			asked = true
			done, err := r.other.SyncOne(t.Context(), kind(t, "station"), id, false)
			require.NoError(t, err)
			require.Equal(t, reversesync.ActionUpdate, done.Action)
		}
	}
	done, err := r.SyncOne(t.Context(), kind(t, "station"), id, false)
	require.NoError(t, err)
	require.Equal(t, reversesync.ActionNone, done.Action)
	require.True(t, asked)
}

// TestAFullSyncKeepsNewerRecords: another syncer writes after the full sync has read.
func TestAFullSyncKeepsNewerRecords(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	id := newStation(1).GetId()
	r.station(t, unchanged)
	r.sync(t, "station", false)
	// The full sync learns what was written.
	r.station(t, named("Written"))
	r.dies(t)
	r.requests.seen = func(request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/ListStations") {
			r.requests.seen = nil
			r.station(t, named("Newer"))
			_, err := r.other.SyncOne(t.Context(), kind(t, "station"), id, false)
			require.NoError(t, err)
		}
	}
	report, _ := r.sync(t, "station", false)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: 1}, report)
	r.edit(t, "stations", id, unmapped)
	r.station(t, named("Last"))
	report, differences := r.sync(t, "station", false)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: 1, Updated: 1}, report, "%+v", differences)
}

// TestClassesOfOutages: the change feed never puts a change into quarantine for an error
// of one of these classes.
func TestClassesOfOutages(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	id := newStation(1).GetId()
	r.station(t, unchanged)
	r.sync(t, "station", false)
	r.station(t, named("Second"))
	of := func(part string, status int) func(*http.Request) int {
		return func(request *http.Request) int {
			if strings.Contains(request.Method+" "+request.URL.Path, part) {
				return status
			}
			return 0
		}
	}
	// Others write all the time.
	r.requests.instead = func(request *http.Request) int {
		if isWrite(request) {
			r.edit(t, "stations", id, unmapped)
		}
		return 0
	}
	_, err := r.SyncOne(t.Context(), kind(t, "station"), id, false)
	requireClass(t, err, errclass.Release2Contended, false)
	require.ErrorContains(t, err, "station "+id+" was changed by others 5 times while it was compared")
	for _, c := range []struct {
		instead func(*http.Request) int
		class   string
	}{
		{of("GetStation", -1), errclass.PlatformUnreachable},
		{of("GetStation", http.StatusServiceUnavailable), errclass.PlatformUnreachable},
		{of("GetStation", http.StatusInternalServerError), errclass.PlatformUnreachable},
		{of("GetStation", http.StatusNotImplemented), errclass.PlatformUnreachable},
		{of("GetStation", http.StatusUnauthorized), errclass.PlatformRefused},
		{of("GET /", http.StatusBadGateway), errclass.Release2Unreachable},
		{of("PATCH /", http.StatusTooManyRequests), errclass.Release2Unreachable},
	} {
		r.requests.instead = c.instead
		_, err = r.SyncOne(t.Context(), kind(t, "station"), id, false)
		requireClass(t, err, c.class, false)
	}
	// Release 2 never finds what it shows: that would not end.
	r.requests.instead = of("PATCH /", http.StatusNotFound)
	_, err = r.SyncOne(t.Context(), kind(t, "station"), id, false)
	requireClass(t, err, errclass.Release2Refused, true)
	r.requests.instead = nil
	done, err := r.SyncOne(t.Context(), kind(t, "station"), id, false)
	require.NoError(t, err)
	require.Equal(t, reversesync.ActionUpdate, done.Action, "none of it was an edit")
}

// TestOneEntityThatFails does not keep the others from being synced.
func TestOneEntityThatFails(t *testing.T) {
	t.Parallel()
	const stations = 60
	r := newSyncSite(t)
	r.putStations(t, stations, unchanged)
	r.sync(t, "station", false)
	bucket, err := r.client.JetStream().KeyValue(t.Context(), pipeline.BucketReverseSync)
	require.NoError(t, err)
	broken := newStation(7).GetId()
	entry, err := bucket.Get(t.Context(), "station."+broken)
	require.NoError(t, err)
	_, err = bucket.Put(t.Context(), "station."+broken, []byte("{"))
	require.NoError(t, err)
	away := newStation(9).GetId()
	r.requests.instead = func(request *http.Request) int {
		if isWrite(request) && strings.HasSuffix(request.URL.Path, away) {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	r.putStations(t, stations, func(s *platformv1.Station) { s.Description = "Changed" })
	report, err := r.Sync(t.Context(), kind(t, "station"), reversesync.Run{})
	requireClass(t, err, errclass.ReverseSyncFailed, false)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: stations, Updated: stations - 2, Failed: 2}, report)
	require.ErrorContains(t, err, "2 of 60 entities failed: ")
	require.ErrorContains(t, err, "station "+away+": release 2 at ")
	require.ErrorContains(t, err, "station."+broken+" of bucket reverse_sync cannot be read")
	_, err = bucket.Put(t.Context(), "station."+broken, entry.Value())
	require.NoError(t, err)
	r.requests.instead = nil
	report, _ = r.sync(t, "station", false)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: stations, Updated: 2}, report)

	// What concerns all ends the run.
	r.putStations(t, stations, func(s *platformv1.Station) { s.Description = "Changed again" })
	for _, c := range []struct {
		status int
		class  string
		final  bool
		most   int64
	}{
		{http.StatusUnauthorized, errclass.Release2Token, true, 8},
		{http.StatusServiceUnavailable, errclass.Release2Unreachable, false, 27},
	} {
		r.requests.instead = func(request *http.Request) int {
			if isWrite(request) {
				return c.status
			}
			return 0
		}
		writes := r.requests.writes.Load()
		_, err = r.Sync(t.Context(), kind(t, "station"), reversesync.Run{})
		requireClass(t, err, c.class, c.final)
		require.LessOrEqual(t, r.requests.writes.Load()-writes, c.most)
	}
}

// TestAWrongURLIsNoDeletion: under another path there is no document at all.
func TestAWrongURLIsNoDeletion(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	r.station(t, unchanged)
	r.sync(t, "station", false)
	r.env[release2.EnvURL] = strings.TrimSuffix(r.env[release2.EnvURL], "/") + "/wrong"
	wrong, err := reversesync.Open(t.Context(), r.getenv, r.client)
	require.NoError(t, err)
	_, err = wrong.SyncOne(t.Context(), kind(t, "station"), newStation(1).GetId(), false)
	requireClass(t, err, errclass.Release2Unreachable, false)
	require.ErrorContains(t, err, "check DENDRA_RELEASE2_URL")
	_, err = wrong.Sync(t.Context(), kind(t, "station"), reversesync.Run{})
	requireClass(t, err, errclass.Release2Unreachable, false)
	conflicts, err := r.Conflicts(t.Context())
	require.NoError(t, err)
	require.Empty(t, conflicts)
	bucket, err := r.client.JetStream().KeyValue(t.Context(), pipeline.BucketReverseSync)
	require.NoError(t, err)
	history, err := bucket.History(t.Context(), "station."+newStation(1).GetId())
	require.NoError(t, err)
	require.Equal(t, jetstream.KeyValuePut, history[0].Operation())
}
