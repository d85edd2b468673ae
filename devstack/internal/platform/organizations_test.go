package platform_test

import (
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"

	reference "github.com/dendrascience/dendra-jobs/devstack/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

func (a *api) deleteOrganization(t *testing.T, n int) *platformv1.Organization {
	t.Helper()
	response, err := a.Organizations.DeleteOrganization(t.Context(), &platformv1.DeleteOrganizationRequest{
		Id: id(n), GracePeriod: durationpb.New(time.Hour),
	})
	require.NoError(t, err)
	return response.GetOrganization()
}

func (a *api) undelete(t *testing.T, n int) (*platformv1.Organization, error) {
	t.Helper()
	response, err := a.Organizations.UndeleteOrganization(t.Context(), &platformv1.UndeleteOrganizationRequest{Id: id(n)})
	return response.GetOrganization(), err
}

func (a *api) finalize(t *testing.T, n int, finalizer string) (*platformv1.Organization, error) {
	t.Helper()
	response, err := a.Organizations.RemoveOrganizationFinalizer(t.Context(), &platformv1.RemoveOrganizationFinalizerRequest{
		Id: id(n), Finalizer: finalizer,
	})
	return response.GetOrganization(), err
}

func TestADeletedOrganizationComesBack(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	a.put(t, organization(1))
	a.put(t, organization(2))
	s := a.stream(t, now())
	s.checkpoint(t)

	marked := a.deleteOrganization(t, 1)
	require.Equal(t, time.Hour, marked.GetPurgeTime().AsTime().Sub(marked.GetDeleteTime().AsTime()))
	require.Equal(t, []string{"jobs", "consumers", "variants", "databases", "archive"}, marked.GetFinalizers())
	require.Equal(t, []string{"delete_time", "purge_time", "finalizers"}, s.change(t).GetChange().GetChangedKeys())
	a.advance(time.Minute)
	requireEqual(t, marked, a.deleteOrganization(t, 1), "it is marked already")

	for deleted, want := range map[bool]int{false: 1, true: 2} {
		listed, err := a.Organizations.ListOrganizations(t.Context(), &platformv1.ListOrganizationsRequest{ShowDeleted: deleted})
		require.NoError(t, err)
		require.Len(t, listed.GetOrganizations(), want)
	}
	_, err := a.finalize(t, 1, "jobs")
	requireReason(t, err, connect.CodeFailedPrecondition, platformv1.ErrorReason_ERROR_REASON_PURGE_NOT_DUE)
	_, err = platformtest.Put(t.Context(), a.Config, station(3, 1), "")
	require.ErrorContains(t, err, "is marked as deleted")

	back, err := a.undelete(t, 1)
	require.NoError(t, err)
	require.Nil(t, back.GetDeleteTime())
	require.Empty(t, back.GetFinalizers())
	require.Equal(t, update, s.change(t).GetChange().GetOperation())
	a.put(t, station(3, 1))
}

func TestAnOrganizationGoesWithItsLastFinalizer(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	// 0x11 begins with the digits of 1, as ids of others may.
	for _, n := range []int{1, 0x11} {
		a.put(t, organization(n))
		for _, r := range []*platformv1.Resource{station(0x100+n, n), datastream(0x200+n, n)} {
			a.put(t, r)
		}
	}
	a.deleteOrganization(t, 1)
	a.advance(time.Hour)
	_, err := a.undelete(t, 1)
	requireReason(t, err, connect.CodeFailedPrecondition, platformv1.ErrorReason_ERROR_REASON_PURGE_BEGUN)

	left, err := a.finalize(t, 1, "databases")
	require.NoError(t, err)
	require.Equal(t, []string{"jobs", "consumers", "variants", "archive"}, left.GetFinalizers())
	again, err := a.finalize(t, 1, "databases")
	require.NoError(t, err)
	requireEqual(t, left, again)
	for _, finalizer := range []string{"jobs", "consumers", "variants"} {
		_, err = a.finalize(t, 1, finalizer)
		require.NoError(t, err)
	}
	s := a.stream(t, now())
	s.checkpoint(t)
	left, err = a.finalize(t, 1, "archive")
	require.NoError(t, err)
	require.Empty(t, left.GetFinalizers())

	require.Equal(t, []string{"finalizers"}, s.change(t).GetChange().GetChangedKeys())
	for _, gone := range []string{id(0x201), id(0x101), id(1)} {
		c := s.change(t).GetChange()
		require.Equal(t, remove, c.GetOperation())
		require.Equal(t, gone, c.GetResourceId(), "the parts go before the whole")
	}
	_, err = a.finalize(t, 1, "archive")
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	others, _ := a.stream(t, snapshot()).checkpoint(t)
	require.Len(t, others, 3, "those of the other organization")
	for _, c := range others {
		require.Equal(t, id(0x11), c.GetOrganizationId())
	}
}

func TestUsersCannotWriteTheMarkOfADeletion(t *testing.T) {
	t.Parallel()
	a := start(t, reference.Options{})
	a.put(t, organization(1))
	marked := a.deleteOrganization(t, 1)
	requireEqual(t, marked, a.put(t, organization(1)).GetOrganization())
}
