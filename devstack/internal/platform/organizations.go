package platform

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/devstack/internal/platform/store"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// finalizers are the parts of an organization outside of the Platform API.
var finalizers = []string{"jobs", "consumers", "variants", "databases", "archive"}

type organizationService struct {
	store       *store.Store
	gracePeriod time.Duration
}

func (s *organizationService) GetOrganization(ctx context.Context, r *platformv1.GetOrganizationRequest) (*platformv1.GetOrganizationResponse, error) {
	found, err := get[*platformv1.Organization](ctx, s.store, kindOrganization, r.GetId())
	return &platformv1.GetOrganizationResponse{Organization: found}, err
}

func (s *organizationService) ListOrganizations(ctx context.Context, r *platformv1.ListOrganizationsRequest) (*platformv1.ListOrganizationsResponse, error) {
	found, next, err := list(ctx, s.store, store.Filter{Kind: kindOrganization}, r, func(o *platformv1.Organization) bool {
		return r.GetShowDeleted() || o.GetDeleteTime() == nil
	})
	return &platformv1.ListOrganizationsResponse{Organizations: found, NextPageToken: next}, err
}

func (s *organizationService) DeleteOrganization(ctx context.Context, r *platformv1.DeleteOrganizationRequest) (*platformv1.DeleteOrganizationResponse, error) {
	marked, err := s.change(ctx, r.GetId(), r.GetEtag(), func(tx *store.Tx, o *platformv1.Organization) error {
		if o.GetDeleteTime() != nil {
			return nil
		}
		grace := s.gracePeriod
		if r.GetGracePeriod() != nil {
			grace = r.GetGracePeriod().AsDuration()
		}
		o.DeleteTime, o.PurgeTime = timestamppb.New(tx.Now()), timestamppb.New(tx.Now().Add(grace))
		o.Finalizers, o.DeleteArchive = finalizers, r.GetDeleteArchive()
		return nil
	})
	return &platformv1.DeleteOrganizationResponse{Organization: marked}, err
}

func (s *organizationService) UndeleteOrganization(ctx context.Context, r *platformv1.UndeleteOrganizationRequest) (*platformv1.UndeleteOrganizationResponse, error) {
	undeleted, err := s.change(ctx, r.GetId(), r.GetEtag(), func(tx *store.Tx, o *platformv1.Organization) error {
		if o.GetDeleteTime() == nil {
			return nil
		}
		if !tx.Now().Before(o.GetPurgeTime().AsTime()) {
			return platform.Error(connect.CodeFailedPrecondition, platformv1.ErrorReason_ERROR_REASON_PURGE_BEGUN,
				"%s is purged since %s", store.Name(kindOrganization, o.GetId()), o.GetPurgeTime().AsTime().Format(time.RFC3339))
		}
		o.DeleteTime, o.PurgeTime, o.Finalizers, o.DeleteArchive = nil, nil, nil, false
		return nil
	})
	return &platformv1.UndeleteOrganizationResponse{Organization: undeleted}, err
}

func (s *organizationService) RemoveOrganizationFinalizer(ctx context.Context, r *platformv1.RemoveOrganizationFinalizerRequest) (*platformv1.RemoveOrganizationFinalizerResponse, error) {
	left, err := s.change(ctx, r.GetId(), r.GetEtag(), func(tx *store.Tx, o *platformv1.Organization) error {
		if o.GetDeleteTime() == nil || tx.Now().Before(o.GetPurgeTime().AsTime()) {
			return platform.Error(connect.CodeFailedPrecondition, platformv1.ErrorReason_ERROR_REASON_PURGE_NOT_DUE,
				"the purge of %s is not due", store.Name(kindOrganization, o.GetId()))
		}
		o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return f == r.GetFinalizer() })
		return nil
	})
	return &platformv1.RemoveOrganizationFinalizerResponse{Organization: left}, err
}

// change changes an organization. If that leaves a deleted one without finalizers, it
// goes, with all that belongs to it.
func (s *organizationService) change(ctx context.Context, id, etag string, change func(*store.Tx, *platformv1.Organization) error) (*platformv1.Organization, error) {
	var changed *platformv1.Organization
	err := s.store.Update(ctx, actorOf(ctx), func(tx *store.Tx) error {
		organization, err := get[*platformv1.Organization](ctx, tx, kindOrganization, id)
		if err != nil {
			return err
		}
		if err := checkEtag(etag, store.Wrap(organization)); err != nil {
			return err
		}
		organization = proto.CloneOf(organization)
		if err := change(tx, organization); err != nil {
			return err
		}
		stored, err := tx.Put(ctx, store.Wrap(organization))
		if err != nil {
			return err
		}
		changed = store.Unwrap[*platformv1.Organization](stored)
		if changed.GetDeleteTime() != nil && len(changed.GetFinalizers()) == 0 {
			return purge(ctx, tx, id)
		}
		return nil
	})
	return changed, failure(err)
}

// purge deletes an organization and what belongs to it, the parts before the whole.
func purge(ctx context.Context, tx *store.Tx, id string) error {
	for _, kind := range []platformv1.ResourceKind{kindTable, kindConfig, kindDatastream, kindStation, kindSite, kindOrganization} {
		for {
			found, more, err := tx.List(ctx, store.Filter{Kind: kind, OrganizationID: id}, "", maxPageSize, store.All)
			if err != nil {
				return err
			}
			for _, r := range found {
				if err := tx.Delete(ctx, kind, store.ID(r)); err != nil {
					return err
				}
			}
			if !more {
				break
			}
		}
	}
	return nil
}
