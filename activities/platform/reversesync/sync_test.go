package reversesync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// TestRelease2TakesAllKinds writes the entities of testdata. Release 2 takes them, and
// gives them back so that nothing is left to write.
func TestRelease2TakesAllKinds(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	for _, name := range []string{"organization", "vocabulary", "site", "thing_type", "station", "datastream"} {
		entity, _ := example(t, kind(t, name))
		r.put(t, entity)
	}
	for _, k := range reversesync.Kinds() {
		report, differences := r.sync(t, k.Name, false)
		require.Equal(t, reversesync.Report{Kind: k.Name, Entities: 1, Created: 1}, report, "%+v", differences)
		entity, want := example(t, k)
		stored, err := r.human.Get(t.Context(), k.Service, entity.GetId())
		require.NoError(t, err)
		for key, value := range want {
			require.EqualValues(t, value, stored[key], "%s.%s", k.Name, key)
		}
		report, _ = r.sync(t, k.Name, false)
		require.Equal(t, reversesync.Report{Kind: k.Name, Entities: 1}, report)
	}
	// Everything that can be taken away is.
	for _, k := range reversesync.Kinds() {
		entity, _ := example(t, k)
		bare := newEntity(k)
		for _, name := range []string{"id", "name", "label", "model", "slug", "scheme_id", "vocabulary_type", "organization_id"} {
			if field := bare.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(name)); field != nil {
				bare.ProtoReflect().Set(field, entity.ProtoReflect().Get(field))
			}
		}
		r.put(t, bare)
		report, differences := r.sync(t, k.Name, false)
		require.Equal(t, reversesync.Report{Kind: k.Name, Entities: 1, Updated: 1}, report, "%+v", differences)
		report, differences = r.sync(t, k.Name, false)
		require.Equal(t, reversesync.Report{Kind: k.Name, Entities: 1}, report, "%+v", differences)
	}
}

// TestLifeOfADocument goes through what can happen to one document.
func TestLifeOfADocument(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	s := newStation(1)
	stations := kind(t, "station")
	change := func(change func(*platformv1.Station)) {
		change(s)
		r.put(t, s)
	}
	read := func() release2.Document {
		d, err := r.human.Get(t.Context(), "stations", s.GetId())
		require.NoError(t, err)
		return d
	}
	known := func() []reversesync.Known {
		conflicts, err := r.Conflicts(t.Context())
		require.NoError(t, err)
		return conflicts
	}
	one := reversesync.Report{Kind: "station", Entities: 1}
	with := func(change func(*reversesync.Report)) reversesync.Report {
		report := one
		change(&report)
		return report
	}
	created := with(func(r *reversesync.Report) { r.Created = 1 })
	updated := with(func(r *reversesync.Report) { r.Updated = 1 })
	inConflict := with(func(r *reversesync.Report) { r.Conflicts = 1 })

	change(func(*platformv1.Station) {})
	report, _ := r.sync(t, "station", true)
	require.Equal(t, created, report)
	require.Zero(t, r.requests.writes.Load(), "a dry run writes nothing")
	report, _ = r.sync(t, "station", false)
	require.Equal(t, created, report)
	report, _ = r.sync(t, "station", false)
	require.Equal(t, one, report)
	require.EqualValues(t, 1, r.requests.writes.Load(), "nothing changed: nothing written")

	// What Release 3 has no say in is edited, and stays.
	r.edit(t, "stations", s.GetId(), map[string]any{
		"access_levels": map[string]any{"explicit": []any{map[string]any{"level": 3}}}, "involved_parties": []any{map[string]any{"roles": []any{"x"}}},
	})
	change(func(s *platformv1.Station) {
		s.Name, s.AccessLevels = "Renamed", &platformv1.AccessLevels{PublicLevel: platformv1.AccessLevel_ACCESS_LEVEL_GRAPH}
	})
	report, differences := r.sync(t, "station", false)
	require.Equal(t, updated, report, "%+v", differences)
	d := read()
	require.Equal(t, "Renamed", d["name"])
	require.Equal(t, map[string]any{"explicit": []any{map[string]any{"level": 3.0}}, "public_level": 2.0}, d["access_levels"])
	require.NotNil(t, d["involved_parties"])

	// What it has a say in is edited: the whole document is left alone.
	r.edit(t, "stations", s.GetId(), map[string]any{"name": "Edited"})
	change(func(s *platformv1.Station) { s.Description = "Changed" })
	report, _ = r.sync(t, "station", true)
	require.Equal(t, inConflict, report)
	require.Empty(t, known(), "a dry run writes nothing")
	report, differences = r.sync(t, "station", false)
	require.Equal(t, inConflict, report)
	require.Len(t, differences, 1)
	require.Equal(t, []reversesync.FieldDifference{
		{Path: "description", Release2: []byte(`"Measures the weather"`), Release3: []byte(`"Changed"`)},
		{Path: "name", Release2: []byte(`"Edited"`), Release3: []byte(`"Renamed"`), Edited: true},
	}, differences[0].Fields)
	d = read()
	require.Equal(t, []any{"Edited", "Measures the weather"}, []any{d["name"], d["description"]})
	require.Len(t, known(), 1)
	conflict := known()[0]
	require.Equal(t, []any{"station", s.GetId(), reversesync.ReasonEdited, []string{"name"}, d.UpdatedBy(), d.UpdatedAt()},
		[]any{conflict.Kind, conflict.ID, conflict.Reason, conflict.Fields, conflict.EditedBy, conflict.EditedAt})
	r.sync(t, "station", false)
	require.Equal(t, conflict, known()[0], "it is known again")

	// Release 3 takes the edit over: both go on.
	change(func(s *platformv1.Station) { s.Name = "Edited" })
	report, _ = r.sync(t, "station", false)
	require.Equal(t, updated, report)
	require.Empty(t, known())
	require.Equal(t, "Changed", read()["description"])
	change(func(s *platformv1.Station) { s.Name = "Renamed again" })
	report, _ = r.sync(t, "station", false)
	require.Equal(t, updated, report)

	// Or the edit is overwritten.
	r.edit(t, "stations", s.GetId(), map[string]any{"name": "Edited"})
	r.sync(t, "station", false)
	require.Len(t, known(), 1)
	done, err := r.SyncOne(t.Context(), stations, s.GetId(), true)
	require.NoError(t, err)
	require.Equal(t, reversesync.ActionUpdate, done.Action)
	require.Empty(t, known())
	require.Equal(t, "Renamed again", read()["name"])
	report, _ = r.sync(t, "station", false)
	require.Equal(t, one, report)

	// A document that Release 2 refuses is tried again each time.
	change(func(s *platformv1.Station) {
		s.ExternalLinks = []*platformv1.ExternalLink{{Title: "No link", Url: "mailto:x"}}
		s.ThingTypeIds = []string{"not an id"}
	})
	report, differences = r.sync(t, "station", false)
	require.Equal(t, inConflict, report)
	require.Equal(t, reversesync.ReasonRefused, differences[0].Conflict.Reason)
	require.Contains(t, known()[0].Message, "400 Bad Request: Data does not match schema")
	change(func(s *platformv1.Station) { s.ExternalLinks, s.ThingTypeIds = nil, nil })
	report, _ = r.sync(t, "station", false)
	require.Equal(t, one, report)
	require.Empty(t, known())

	// It is deleted in Release 2, and comes back when someone says so.
	r.remove(t, "stations", s.GetId())
	report, differences = r.sync(t, "station", false)
	require.Equal(t, inConflict, report)
	require.Equal(t, reversesync.ReasonDeleted, differences[0].Conflict.Reason)
	done, err = r.SyncOne(t.Context(), stations, s.GetId(), true)
	require.NoError(t, err)
	require.Equal(t, reversesync.ActionCreate, done.Action)
	report, _ = r.sync(t, "station", false)
	require.Equal(t, one, report)

	// It goes from Release 3: the document stays.
	require.NoError(t, platformtest.Delete(t.Context(), r.platform, "station", s.GetId()))
	report, _ = r.sync(t, "station", false)
	require.Equal(t, reversesync.Report{Kind: "station", Gone: 1}, report)
	done, err = r.SyncOne(t.Context(), stations, s.GetId(), false)
	require.NoError(t, err)
	require.Equal(t, reversesync.ActionGone, done.Action)
	require.Equal(t, "Renamed again", read()["name"])
}

// TestAWriteWhoseRecordIsLostIsNoEdit ends a sync between a write and its record.
func TestAWriteWhoseRecordIsLostIsNoEdit(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	r.putStations(t, 1, unchanged)
	r.sync(t, "station", false)
	for _, name := range []string{"Second", "Third"} {
		r.putStations(t, 1, func(s *platformv1.Station) { s.Name = name })
		ctx, cancel := context.WithCancel(t.Context())
		r.requests.seen = whenWritten(cancel)
		_, err := r.SyncOne(ctx, kind(t, "station"), newStation(1).GetId(), false)
		require.ErrorIs(t, err, context.Canceled)
		r.requests.seen = nil
	}
	r.putStations(t, 1, func(s *platformv1.Station) { s.Name = "Last" })
	report, differences := r.sync(t, "station", false)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: 1, Updated: 1}, report)
	require.JSONEq(t, `"Third"`, string(differences[0].Fields[0].Release2))
}

// TestTwoSlugsThatBecomeOne: the document of the second station of an organization is left
// alone and reported, until one of them has another slug.
func TestTwoSlugsThatBecomeOne(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	r.put(t, &platformv1.Organization{Id: fmt.Sprintf("%024x", 7), Name: "Other", Slug: "other", IsEnabled: true})
	for n, slug := range map[int]string{1: "peak-1", 2: "peak_1", 3: "peak-1"} {
		s := newStation(n)
		s.Slug = slug
		if n == 3 {
			s.OrganizationId = fmt.Sprintf("%024x", 7)
		}
		r.put(t, s)
	}
	second, stations := newStation(2), kind(t, "station")
	report, _ := r.sync(t, "station", true)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: 3, Created: 2, Conflicts: 1}, report)
	report, differences := r.sync(t, "station", false)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: 3, Created: 2, Conflicts: 1}, report)
	require.Len(t, differences, 3)
	_, err := r.human.Get(t.Context(), "stations", second.GetId())
	require.ErrorIs(t, err, release2.ErrNotFound)
	conflicts, err := r.Conflicts(t.Context())
	require.NoError(t, err)
	require.Len(t, conflicts, 1)
	require.Equal(t, second.GetId(), conflicts[0].ID)
	require.Equal(t, reversesync.ReasonSlug, conflicts[0].Reason)
	require.Equal(t, `station `+newStation(1).GetId()+` has the slug "peak-1" in Release 2 too`, conflicts[0].Message)

	r.put(t, second) // station-2
	retried := 0
	require.NoError(t, r.RetryRefused(t.Context(), nil, func(d reversesync.Difference) {
		retried++
		require.Equal(t, reversesync.ActionCreate, d.Action)
	}))
	require.Equal(t, 1, retried)
	second.Slug = "peak_1"
	r.put(t, second)
	diff, err := r.SyncOne(t.Context(), stations, second.GetId(), false)
	require.NoError(t, err)
	require.Equal(t, reversesync.ActionConflict, diff.Action)
	d, err := r.human.Get(t.Context(), "stations", second.GetId())
	require.NoError(t, err)
	require.Equal(t, "station-2", d["slug"])
}

// TestFullSyncWithoutChange counts the requests of a sync of 10,000 stations.
func TestFullSyncWithoutChange(t *testing.T) {
	t.Parallel()
	stations := stacktest.Size(1100, 10_000)
	r := newSyncSite(t)
	r.putStations(t, stations, unchanged)
	began := time.Now()
	report, _ := r.sync(t, "station", false)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: stations, Created: stations}, report)
	require.Zero(t, r.requests.unlimited.Load(), "no request may take as long as it likes")
	t.Logf("created %d documents in %s with %d requests", stations, time.Since(began), r.requests.all.Load())
	for range 2 {
		all, writes := r.requests.all.Load(), r.requests.writes.Load()
		began = time.Now()
		report, _ = r.sync(t, "station", false)
		require.Equal(t, reversesync.Report{Kind: "station", Entities: stations}, report)
		require.Equal(t, writes, r.requests.writes.Load(), "nothing changed: nothing written")
		require.LessOrEqual(t, r.requests.all.Load()-all, int64(110))
		t.Logf("nothing changed: %s, %d requests", time.Since(began), r.requests.all.Load()-all)
	}
}

// TestNoEditIsLost edits documents while they are written. Each edit is there in the end,
// and known as a conflict.
func TestNoEditIsLost(t *testing.T) {
	t.Parallel()
	edits := stacktest.Size(200, 1000)
	stations := 2 * edits
	r := newSyncSite(t)
	r.putStations(t, stations, unchanged)
	r.sync(t, "station", false)
	r.putStations(t, stations, func(s *platformv1.Station) { s.Name += " of Release 3" })

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running errgroup.Group
	for range 2 { // as the feed and a full sync at once
		running.Go(func() error {
			for ctx.Err() == nil {
				if _, err := r.Sync(t.Context(), kind(t, "station"), reversesync.Run{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var editing errgroup.Group
	editing.SetLimit(8)
	for n := 1; n <= edits; n++ {
		editing.Go(func() error { return r.editName(t.Context(), newStation(2*n).GetId(), fmt.Sprintf("Edit %d", n)) })
	}
	require.NoError(t, editing.Wait())
	cancel()
	require.NoError(t, running.Wait())

	report, _ := r.sync(t, "station", false)
	require.Equal(t, reversesync.Report{Kind: "station", Entities: stations, Conflicts: edits}, report)
	conflicts, err := r.Conflicts(t.Context())
	require.NoError(t, err)
	require.Len(t, conflicts, edits)
	for n := 1; n <= edits; n++ {
		require.Equal(t, newStation(2*n).GetId(), conflicts[n-1].ID)
		d, err := r.human.Get(t.Context(), "stations", conflicts[n-1].ID)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("Edit %d", n), d["name"])
	}
	d, err := r.human.Get(t.Context(), "stations", newStation(1).GetId())
	require.NoError(t, err)
	require.Equal(t, "Station 1 of Release 3", d["name"])
}

// editName edits the name of a station, as often as others write it at the same time.
func (r *syncSite) editName(ctx context.Context, id, name string) error {
	for {
		d, err := r.human.Get(ctx, "stations", id)
		if err != nil {
			return err
		}
		_, err = r.human.Patch(ctx, "stations", id, d.VersionID(), release2.Patch{Set: map[string]any{"name": name}})
		if !errors.Is(err, release2.ErrNotFound) {
			return err
		}
	}
}

func TestASyncStops(t *testing.T) {
	t.Parallel()
	r := newSyncSite(t)
	r.putStations(t, 10, unchanged)
	stopping := make(chan struct{})
	close(stopping)
	_, err := r.Sync(t.Context(), kind(t, "station"), reversesync.Run{Stopping: stopping})
	require.ErrorIs(t, err, job.ErrStopped)
}

func TestErrorsSayWhatIsAway(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	client := newSyncSite(t).client
	_, err := reversesync.Open(t.Context(), func(name string) string { return env[name] }, client)
	require.ErrorContains(t, err, "reverse sync: DENDRA_PLATFORM_URL is not set: it is the URL of the Platform API; DENDRA_PLATFORM_TOKEN is not set; "+
		"DENDRA_RELEASE2_URL is not set: it is the URL of the metadata API of Release 2; "+
		"DENDRA_RELEASE2_TOKEN is not set: it is the token of the service account of reverse sync")
	env = map[string]string{
		"DENDRA_PLATFORM_URL": "http://127.0.0.1:1", "DENDRA_PLATFORM_TOKEN": "t", "DENDRA_RELEASE2_URL": "http://127.0.0.1:1", "DENDRA_RELEASE2_TOKEN": "t",
	}
	syncer, err := reversesync.Open(t.Context(), func(name string) string { return env[name] }, client)
	require.NoError(t, err)
	_, err = syncer.Sync(t.Context(), kind(t, "station"), reversesync.Run{})
	require.ErrorContains(t, err, "release 2 at http://127.0.0.1:1: GET stations: ")
}
