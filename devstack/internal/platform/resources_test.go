package platform_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	reference "github.com/dendrascience/dendra-jobs/devstack/internal/platform"
	"github.com/dendrascience/dendra-jobs/devstack/internal/platform/store"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

func TestListsHavePages(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	a.put(t, organization(1))
	a.put(t, organization(2))
	for n := range 250 {
		a.put(t, station(100+n, 1+n%2))
	}
	var found []string
	request := &platformv1.ListStationsRequest{OrganizationId: id(1), PageSize: 100}
	for pages := 1; ; pages++ {
		page, err := a.Metadata.ListStations(t.Context(), request)
		require.NoError(t, err)
		for _, s := range page.GetStations() {
			require.Equal(t, id(1), s.GetOrganizationId())
			found = append(found, s.GetId())
		}
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
			require.Equal(t, 2, pages)
			break
		}
		require.Len(t, page.GetStations(), 100)
		_, err = a.Metadata.ListStations(t.Context(), &platformv1.ListStationsRequest{PageToken: request.GetPageToken()})
		require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), "a token is for one list")
	}
	require.Len(t, found, 125)
	require.IsIncreasing(t, found)

	page, err := a.Metadata.ListStations(t.Context(), &platformv1.ListStationsRequest{})
	require.NoError(t, err)
	require.Len(t, page.GetStations(), 100, "the size of a page that names none")

	twin := station(2, 2)
	twin.GetStation().Slug = "station_101"
	a.put(t, twin)
	for of, want := range map[string][]string{id(101): {id(2), id(101)}, id(2): {id(2), id(101)}, id(110): {id(110)}, id(7): nil} {
		page, err = a.Metadata.ListStations(t.Context(), &platformv1.ListStationsRequest{LikeStationId: of})
		require.NoError(t, err)
		var like []string
		for _, s := range page.GetStations() {
			like = append(like, s.GetId())
		}
		require.Equal(t, want, like, "a slug that is the same apart from - and _")
	}
	_, err = a.Metadata.GetStation(t.Context(), &platformv1.GetStationRequest{Id: id(7)})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

func TestCallsNeedATokenAndAValidRequest(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	for _, token := range []string{"another", a.Token + "x", a.Token + ":"} {
		c, err := platform.New(platform.Config{URL: a.URL, Token: token})
		require.NoError(t, err)
		_, err = c.Metadata.ListSites(t.Context(), &platformv1.ListSitesRequest{})
		require.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(err))
		_, err = platformtest.Put(t.Context(), platform.Config{URL: a.URL, Token: token}, organization(1), "")
		requireStatus(t, http.StatusUnauthorized, err)
	}
	_, err := a.Metadata.ListSites(t.Context(), &platformv1.ListSitesRequest{PageSize: -1})
	require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	require.ErrorContains(t, err, "page_size")
}

func TestAnEtagComparesAndSets(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	old := store.Etag(a.put(t, organization(1)))
	changed := organization(1)
	changed.GetOrganization().Name = "Changed"
	stored, err := platformtest.Put(t.Context(), a.Config, changed, old)
	require.NoError(t, err)
	require.NotEqual(t, old, store.Etag(stored))

	_, err = platformtest.Put(t.Context(), a.Config, organization(1), old)
	requireStatus(t, http.StatusPreconditionFailed, err)
	_, err = a.Organizations.DeleteOrganization(t.Context(), &platformv1.DeleteOrganizationRequest{Id: id(1), Etag: old})
	requireReason(t, err, connect.CodeAborted, platformv1.ErrorReason_ERROR_REASON_ETAG_MISMATCH)
	_, err = a.Organizations.DeleteOrganization(t.Context(), &platformv1.DeleteOrganizationRequest{Id: id(1), Etag: store.Etag(stored)})
	require.NoError(t, err)
}

func TestWhatIsNotValidIsNotStored(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	wrong := organization(1)
	wrong.GetOrganization().Slug = "No Slug"
	for status, r := range map[int]*platformv1.Resource{
		http.StatusBadRequest: wrong,
		http.StatusNotFound:   station(2, 9),
	} {
		_, err := platformtest.Put(t.Context(), a.Config, r, "")
		requireStatus(t, status, err)
	}
	requireStatus(t, http.StatusBadRequest, platformtest.Delete(t.Context(), a.Config, "organization", id(1)))
	requireStatus(t, http.StatusBadRequest, platformtest.Delete(t.Context(), a.Config, "photo", id(1)))
	changes, _ := a.stream(t, snapshot()).checkpoint(t)
	require.Empty(t, changes)
}

// A change is stored if its entry in the log is, and only then.
func TestAChangeAndItsEntryAreOneTransaction(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Options{File: filepath.Join(t.TempDir(), "platform.db")})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	before, err := s.Head(t.Context())
	require.NoError(t, err)

	failed := errors.New("failed after the write")
	require.ErrorIs(t, s.Update(t.Context(), "test", func(tx *store.Tx) error {
		if _, err := tx.Put(t.Context(), organization(1)); err != nil {
			return err
		}
		return failed
	}), failed)
	stored, err := s.Get(t.Context(), kindOrganization, id(1))
	require.NoError(t, err)
	require.Nil(t, stored)
	entries, _, err := s.Changes(t.Context(), nil, before, 10)
	require.NoError(t, err)
	require.Empty(t, entries)

	require.NoError(t, s.Update(t.Context(), "test", func(tx *store.Tx) error {
		_, err := tx.Put(t.Context(), organization(1))
		return err
	}))
	stored, err = s.Get(t.Context(), kindOrganization, id(1))
	require.NoError(t, err)
	entries, _, err = s.Changes(t.Context(), nil, before, 10)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	requireEqual(t, stored, entries[0].Change.GetAfter())
}

func TestTableInfosAreUpserted(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	a.put(t, organization(1))
	a.put(t, station(2, 1))
	table := func(name string, fields ...string) *platformv1.TableInfo {
		info := &platformv1.TableInfo{Name: name, Database: "common1", Measurement: "station_2_source_" + name}
		for _, field := range fields {
			info.Fields = append(info.Fields, &platformv1.TableField{Name: field, Type: platformv1.TableFieldType_TABLE_FIELD_TYPE_FLOAT})
		}
		return info
	}
	upsert := func(tables ...*platformv1.TableInfo) []*platformv1.TableInfo {
		response, err := a.Tables.UpsertTableInfos(t.Context(), &platformv1.UpsertTableInfosRequest{StationId: id(2), TableInfos: tables})
		require.NoError(t, err)
		return response.GetTableInfos()
	}
	first := upsert(table("TenMin", "AirTC"), table("Day"))
	require.Equal(t, id(2)+"/TenMin", first[0].GetId())
	require.Equal(t, id(1), first[0].GetOrganizationId())
	require.Equal(t, reference.Actor, first[0].GetModification().GetCreatedBy())
	s := a.stream(t, now())
	s.checkpoint(t)
	second := upsert(table("TenMin", "AirTC", "RH"), table("Day"))
	require.Equal(t, first[1].GetEtag(), second[1].GetEtag(), "nothing changed")
	require.Equal(t, []string{"fields"}, s.change(t).GetChange().GetChangedKeys())

	listed, err := a.Tables.ListTableInfos(t.Context(), &platformv1.ListTableInfosRequest{StationId: id(2)})
	require.NoError(t, err)
	require.Len(t, listed.GetTableInfos(), 2)
	requireEqual(t, second[1], listed.GetTableInfos()[0])
	_, err = a.Tables.UpsertTableInfos(t.Context(), &platformv1.UpsertTableInfosRequest{StationId: id(3), TableInfos: first})
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

func requireStatus(t *testing.T, want int, err error) {
	t.Helper()
	failed, ok := errors.AsType[*platformtest.Error](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, want, failed.Status, "%v", err)
}
