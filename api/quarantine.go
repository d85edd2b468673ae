package api

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// quarantineService implements dendra.jobs.v1.QuarantineService.
type quarantineService struct{ *Server }

func filterOfItems(m *jobsv1.QuarantineFilter) pipeline.ItemFilter {
	return pipeline.ItemFilter{
		Stage: pipeline.Stage(m.GetStage()), Operation: pipeline.Operation(m.GetFlow()),
		Organization: m.GetOrganization(), Location: m.GetLocation(), Class: m.GetErrorClass(), Since: toTime(m.GetStartTime()), Before: uint64(m.GetBeforeId()),
	}
}

// itemFilter is a filter of a request.
func itemFilter(m *jobsv1.QuarantineFilter) (pipeline.ItemFilter, error) {
	filter := filterOfItems(m)
	if err := filter.Check(); err != nil {
		return filter, badRequest(violation{"filter", oneLine(err)})
	}
	return filter, nil
}

// CheckQuarantineFilter says what is wrong with a filter, before it is sent.
func CheckQuarantineFilter(m *jobsv1.QuarantineFilter) error { return filterOfItems(m).Check() }

// SkippedItems finds the messages of a load that were skipped.
func SkippedItems(load *jobsv1.Load) *jobsv1.QuarantineFilter {
	return &jobsv1.QuarantineFilter{
		Stage: string(pipeline.StageLoad), Flow: load.GetFlow(), Location: load.GetLocation(), ErrorClass: errclass.Skipped,
	}
}

// Stages are the stages whose items are in quarantine.
func Stages() []string { return texts(pipeline.Stages()) }

// Flows are the flows of messages.
func Flows() []string { return texts(pipeline.Operations()) }

func texts[T ~string](words []T) []string {
	list := make([]string, len(words))
	for n, word := range words {
		list[n] = string(word)
	}
	return list
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
	pages := pagesOf[uint64](r)
	place, err := pages.read(r.GetPageToken())
	if err != nil {
		return nil, err
	}
	if place > 0 && !r.GetOldestFirst() {
		filter.Before = place
	}
	size := pageSize(r.GetPageSize())
	items := make([]pipeline.Item, 0, size) // of the newest ones a ring
	found := 0
	err = client.Items(ctx, filter, func(item pipeline.Item) error {
		switch {
		case r.GetOldestFirst() && item.ID <= place:
			return nil
		case len(items) < size:
			items = append(items, item)
		case !r.GetOldestFirst():
			items[found%size] = item
		}
		found++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !r.GetOldestFirst() {
		slices.SortFunc(items, func(a, b pipeline.Item) int { return cmp.Compare(b.ID, a.ID) })
	}
	response := &jobsv1.ListQuarantineItemsResponse{TotalSize: int64(found)}
	for _, item := range items {
		response.Items = append(response.Items, itemMessage(item))
	}
	if found > size {
		response.NextPageToken = pages.write(items[size-1].ID)
	}
	return response, nil
}

// SummarizeQuarantine implements the service.
func (s *quarantineService) SummarizeQuarantine(ctx context.Context, r *jobsv1.SummarizeQuarantineRequest) (*jobsv1.SummarizeQuarantineResponse, error) {
	client, err := s.pipeline()
	if err != nil {
		return nil, err
	}
	filter, err := itemFilter(r.GetFilter())
	if err != nil {
		return nil, err
	}
	type origin struct{ stage, operation, name, class string }
	groups := map[origin]*jobsv1.QuarantineGroup{}
	response := &jobsv1.SummarizeQuarantineResponse{}
	err = client.Items(ctx, filter, func(item pipeline.Item) error { // The oldest comes first.
		of := origin{string(item.Stage), string(item.Operation), item.Name, item.Class}
		group := groups[of]
		if group == nil {
			group = &jobsv1.QuarantineGroup{
				Stage: string(item.Stage), Flow: string(item.Operation), Name: item.Name, ErrorClass: item.Class,
				OldestTime: timeOf(item.Time), NewestTime: timeOf(item.Time),
			}
			groups[of] = group
			response.Groups = append(response.Groups, group)
		}
		group.ItemCount++
		if item.Replayable() == nil {
			group.ReplayableCount++
		}
		if item.Time.Before(group.GetOldestTime().AsTime()) {
			group.OldestTime = timeOf(item.Time)
		}
		if item.Time.After(group.GetNewestTime().AsTime()) {
			group.NewestTime = timeOf(item.Time)
		}
		group.LatestId = int64(item.ID)
		return nil
	})
	slices.SortFunc(response.Groups, func(a, b *jobsv1.QuarantineGroup) int {
		return cmp.Or(cmp.Compare(b.GetItemCount(), a.GetItemCount()), cmp.Compare(b.GetLatestId(), a.GetLatestId()))
	})
	return response, err
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
		QuarantineTime: timeOf(item.Time), Size: int64(item.Size), KeptSize: int64(item.Kept),
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
	// leftCount counts all of these.
	leftCount int
}

// first takes the first so many of the items, 0 for all.
func (c *chosenItems) first(count int32) {
	if count > 0 && len(c.ids) > int(count) {
		c.ids = c.ids[:count]
	}
}

// last is the id of the last item, 0 if there is none.
func (c *chosenItems) last() int64 {
	if len(c.ids) == 0 {
		return 0
	}
	return int64(c.ids[len(c.ids)-1])
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
			return nil
		}
		if chosen.leftCount++; len(chosen.left) < maxLeft {
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
	chosen.first(r.GetMaxCount())
	response := &jobsv1.ReplayQuarantineItemsResponse{
		ReplayCount: int32(len(chosen.ids)), Left: chosen.left, LeftCount: int32(chosen.leftCount), LastId: chosen.last(),
	}
	if r.GetForce() {
		replayed, err := client.Replay(ctx, chosen.ids, nil)
		if err != nil {
			return nil, err
		}
		response.ReplayCount, response.MissingCount = int32(replayed.Published), int32(replayed.Missing)
		response.LeftCount += int32(replayed.Refused)
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
	chosen.first(r.GetMaxCount())
	response := &jobsv1.DropQuarantineItemsResponse{DropCount: int32(len(chosen.ids)), LastId: chosen.last()}
	if r.GetForce() {
		dropped, err := client.Drop(ctx, chosen.ids, nil)
		if err != nil {
			return nil, err
		}
		response.DropCount = int32(dropped)
	}
	return response, nil
}
