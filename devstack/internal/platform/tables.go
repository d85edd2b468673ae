package platform

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/devstack/internal/platform/store"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

type tableService struct{ store *store.Store }

func (s *tableService) UpsertTableInfos(ctx context.Context, r *platformv1.UpsertTableInfosRequest) (*platformv1.UpsertTableInfosResponse, error) {
	response := &platformv1.UpsertTableInfosResponse{}
	err := s.store.Update(ctx, actorOf(ctx), func(tx *store.Tx) error {
		station, err := get[*platformv1.Station](ctx, tx, kindStation, r.GetStationId())
		if err != nil {
			return err
		}
		for _, given := range r.GetTableInfos() {
			table := proto.CloneOf(given)
			table.Id = station.GetId() + "/" + table.GetName()
			table.OrganizationId, table.StationId = station.GetOrganizationId(), station.GetId()
			stored, err := tx.Put(ctx, store.Wrap(table))
			if err != nil {
				return err
			}
			response.TableInfos = append(response.TableInfos, store.Unwrap[*platformv1.TableInfo](stored))
		}
		return nil
	})
	return response, failure(err)
}

func (s *tableService) ListTableInfos(ctx context.Context, r *platformv1.ListTableInfosRequest) (*platformv1.ListTableInfosResponse, error) {
	found, next, err := list(ctx, s.store, store.Filter{Kind: kindTable, StationID: r.GetStationId()}, r, all[*platformv1.TableInfo])
	return &platformv1.ListTableInfosResponse{TableInfos: found, NextPageToken: next}, err
}

func (s *tableService) RequestTableDiscovery(ctx context.Context, r *platformv1.RequestTableDiscoveryRequest) (*platformv1.RequestTableDiscoveryResponse, error) {
	err := s.store.Update(ctx, actorOf(ctx), func(tx *store.Tx) error {
		station, err := get[*platformv1.Station](ctx, tx, kindStation, r.GetStationId())
		if err != nil {
			return err
		}
		station = proto.CloneOf(station)
		station.TableDiscoveryRequestTime = timestamppb.New(tx.Now())
		_, err = tx.Put(ctx, store.Wrap(station))
		return err
	})
	return &platformv1.RequestTableDiscoveryResponse{}, failure(err)
}
