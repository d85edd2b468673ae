package platform

import (
	"context"

	"github.com/dendrascience/dendra-jobs/devstack/internal/platform/store"
	"github.com/dendrascience/dendra-jobs/internal/influx"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

type metadataService struct{ store *store.Store }

func (s *metadataService) GetSite(ctx context.Context, r *platformv1.GetSiteRequest) (*platformv1.GetSiteResponse, error) {
	found, err := get[*platformv1.Site](ctx, s.store, kindSite, r.GetId())
	return &platformv1.GetSiteResponse{Site: found}, err
}

func (s *metadataService) ListSites(ctx context.Context, r *platformv1.ListSitesRequest) (*platformv1.ListSitesResponse, error) {
	found, next, err := list(ctx, s.store, store.Filter{Kind: kindSite, OrganizationID: r.GetOrganizationId()}, r, all[*platformv1.Site])
	return &platformv1.ListSitesResponse{Sites: found, NextPageToken: next}, err
}

func (s *metadataService) GetStation(ctx context.Context, r *platformv1.GetStationRequest) (*platformv1.GetStationResponse, error) {
	found, err := get[*platformv1.Station](ctx, s.store, kindStation, r.GetId())
	return &platformv1.GetStationResponse{Station: found}, err
}

func (s *metadataService) ListStations(ctx context.Context, r *platformv1.ListStationsRequest) (*platformv1.ListStationsResponse, error) {
	keep := all[*platformv1.Station]
	if id := r.GetLikeStationId(); id != "" {
		station, err := find[*platformv1.Station](ctx, s.store, kindStation, id)
		if err != nil || station == nil {
			return &platformv1.ListStationsResponse{}, failure(err)
		}
		keep = func(other *platformv1.Station) bool { return influx.SameSlug(station, other) }
	}
	found, next, err := list(ctx, s.store, store.Filter{Kind: kindStation, OrganizationID: r.GetOrganizationId()}, r, keep)
	return &platformv1.ListStationsResponse{Stations: found, NextPageToken: next}, err
}

func (s *metadataService) GetThingType(ctx context.Context, r *platformv1.GetThingTypeRequest) (*platformv1.GetThingTypeResponse, error) {
	found, err := get[*platformv1.ThingType](ctx, s.store, kindThingType, r.GetId())
	return &platformv1.GetThingTypeResponse{ThingType: found}, err
}

func (s *metadataService) ListThingTypes(ctx context.Context, r *platformv1.ListThingTypesRequest) (*platformv1.ListThingTypesResponse, error) {
	found, next, err := list(ctx, s.store, store.Filter{Kind: kindThingType}, r, all[*platformv1.ThingType])
	return &platformv1.ListThingTypesResponse{ThingTypes: found, NextPageToken: next}, err
}

func (s *metadataService) GetDatastream(ctx context.Context, r *platformv1.GetDatastreamRequest) (*platformv1.GetDatastreamResponse, error) {
	found, err := get[*platformv1.Datastream](ctx, s.store, kindDatastream, r.GetId())
	return &platformv1.GetDatastreamResponse{Datastream: found}, err
}

func (s *metadataService) ListDatastreams(ctx context.Context, r *platformv1.ListDatastreamsRequest) (*platformv1.ListDatastreamsResponse, error) {
	found, next, err := list(ctx, s.store, store.Filter{Kind: kindDatastream, OrganizationID: r.GetOrganizationId(), StationID: r.GetStationId()}, r, all[*platformv1.Datastream])
	return &platformv1.ListDatastreamsResponse{Datastreams: found, NextPageToken: next}, err
}

func (s *metadataService) GetVocabulary(ctx context.Context, r *platformv1.GetVocabularyRequest) (*platformv1.GetVocabularyResponse, error) {
	found, err := get[*platformv1.Vocabulary](ctx, s.store, kindVocabulary, r.GetId())
	return &platformv1.GetVocabularyResponse{Vocabulary: found}, err
}

func (s *metadataService) ListVocabularies(ctx context.Context, r *platformv1.ListVocabulariesRequest) (*platformv1.ListVocabulariesResponse, error) {
	found, next, err := list(ctx, s.store, store.Filter{Kind: kindVocabulary}, r, all[*platformv1.Vocabulary])
	return &platformv1.ListVocabulariesResponse{Vocabularies: found, NextPageToken: next}, err
}
