package api

import (
	"context"
	"errors"
	"slices"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// quarantineService implements dendra.jobs.v1.QuarantineService.
type quarantineService struct{ *Server }

// itemFilter is a filter of a request.
func itemFilter(m *jobsv1.QuarantineFilter) (pipeline.ItemFilter, error) {
	filter := pipeline.ItemFilter{
		Stage: pipeline.Stage(m.GetStage()), Operation: pipeline.Operation(m.GetFlow()),
		Organization: m.GetOrganization(), Location: m.GetLocation(), Class: m.GetErrorClass(), Since: toTime(m.GetStartTime()),
	}
	if err := filter.Check(); err != nil {
		return filter, badRequest(violation{"filter", oneLine(err)})
	}
	return filter, nil
}

// ListQuarantineItems implements the service. Each page looks at the headers of all items
// that fit.
func (s *quarantineService) ListQuarantineItems(ctx context.Context, r *jobsv1.ListQuarantineItemsRequest) (*jobsv1.ListQuarantineItemsResponse, error) {
	client, err := s.pipeline()
	if err != nil {
		return nil, err
	}
	filter, err := itemFilter(r.GetFilter())
	if err != nil {
		return nil, err
	}
	f := r.GetFilter()
	pages := pagesOf[uint64]("ListQuarantineItems", f.GetStage(), f.GetFlow(), f.GetOrganization(), f.GetLocation(), f.GetErrorClass(), f.GetStartTime().String())
	if filter.Before, err = pages.read(r.GetPageToken()); err != nil {
		return nil, err
	}
	size := pageSize(r.GetPageSize())
	newest := make([]pipeline.Item, 0, size) // the last ones, as a ring
	found := 0
	err = client.Items(ctx, filter, func(item pipeline.Item) error {
		if len(newest) < size {
			newest = append(newest, item)
		} else {
			newest[found%size] = item
		}
		found++
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(newest, func(a, b pipeline.Item) int { return int(int64(b.ID) - int64(a.ID)) })
	response := &jobsv1.ListQuarantineItemsResponse{}
	for _, item := range newest {
		response.Items = append(response.Items, itemMessage(item))
	}
	if found > size {
		response.NextPageToken = pages.write(newest[size-1].ID)
	}
	return response, nil
}

// GetQuarantineItem implements the service.
func (s *quarantineService) GetQuarantineItem(ctx context.Context, r *jobsv1.GetQuarantineItemRequest) (*jobsv1.GetQuarantineItemResponse, error) {
	client, err := s.pipeline()
	if err != nil {
		return nil, err
	}
	item, err := client.Item(ctx, uint64(r.GetId()))
	if err != nil {
		return nil, err
	}
	m := itemMessage(item)
	m.Body = item.Body
	return &jobsv1.GetQuarantineItemResponse{Item: m}, nil
}

func itemMessage(item pipeline.Item) *jobsv1.QuarantineItem {
	m := &jobsv1.QuarantineItem{
		Id: int64(item.ID), Stage: string(item.Stage), Flow: string(item.Operation), Name: item.Name,
		ErrorClass: item.Class, Reason: item.Reason, JobId: item.Job, Target: item.Target,
		OriginSubject: item.OriginSubject, OriginSequence: int64(item.OriginSequence),
		QuarantineTime: timeOf(item.Time), Size: int64(item.Size),
	}
	if err := item.Replayable(); err != nil {
		m.NotReplayable = err.Error()
	}
	return m
}

// chosenItems are the items that a request is about.
type chosenItems struct {
	ids []uint64
	// left are items that the request does not apply to: at most [maxLeft].
	left []*jobsv1.QuarantineItem
}

// maxLeft bounds the items that an answer names.
const maxLeft = 1000

// choose finds the items of a request, the oldest first. Items that are named have to be
// there.
func (s *quarantineService) choose(ctx context.Context, client *pipeline.Client, ids []int64, filter *jobsv1.QuarantineFilter, fits func(pipeline.Item) error) (*chosenItems, error) {
	chosen := &chosenItems{}
	take := func(item pipeline.Item) error {
		if fits(item) == nil {
			chosen.ids = append(chosen.ids, item.ID)
		} else if len(chosen.left) < maxLeft {
			chosen.left = append(chosen.left, itemMessage(item))
		}
		return nil
	}
	if len(ids) == 0 {
		wanted, err := itemFilter(filter)
		if err != nil {
			return nil, err
		}
		return chosen, client.Items(ctx, wanted, take)
	}
	ids = slices.Clone(ids)
	slices.Sort(ids)
	var missing []error
	for _, id := range slices.Compact(ids) {
		item, err := client.Item(ctx, uint64(id))
		switch {
		case errors.Is(err, pipeline.ErrNoItem):
			missing = append(missing, err)
		case err != nil:
			return nil, err
		default:
			_ = take(item) // It never fails.
		}
	}
	return chosen, errors.Join(missing...)
}

// ReplayQuarantineItems implements the service.
func (s *quarantineService) ReplayQuarantineItems(ctx context.Context, r *jobsv1.ReplayQuarantineItemsRequest) (*jobsv1.ReplayQuarantineItemsResponse, error) {
	client, err := s.pipeline()
	if err != nil {
		return nil, err
	}
	chosen, err := s.choose(ctx, client, r.GetIds(), r.GetFilter(), pipeline.Item.Replayable)
	if err != nil {
		return nil, err
	}
	response := &jobsv1.ReplayQuarantineItemsResponse{ReplayCount: int32(len(chosen.ids)), Left: chosen.left}
	if r.GetForce() {
		replayed, err := client.Replay(ctx, chosen.ids, nil)
		if err != nil {
			return nil, err
		}
		response.ReplayCount = int32(replayed.Published)
	}
	return response, nil
}

// DropQuarantineItems implements the service.
func (s *quarantineService) DropQuarantineItems(ctx context.Context, r *jobsv1.DropQuarantineItemsRequest) (*jobsv1.DropQuarantineItemsResponse, error) {
	client, err := s.pipeline()
	if err != nil {
		return nil, err
	}
	chosen, err := s.choose(ctx, client, r.GetIds(), r.GetFilter(), func(pipeline.Item) error { return nil })
	if err != nil {
		return nil, err
	}
	response := &jobsv1.DropQuarantineItemsResponse{DropCount: int32(len(chosen.ids))}
	if r.GetForce() {
		dropped, err := client.Drop(ctx, chosen.ids, nil)
		if err != nil {
			return nil, err
		}
		response.DropCount = int32(dropped)
	}
	return response, nil
}
