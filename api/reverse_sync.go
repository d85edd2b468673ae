package api

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// reverseSyncService implements dendra.jobs.v1.ReverseSyncService.
type reverseSyncService struct{ *Server }

// ListReverseSyncConflicts implements the service.
func (s *reverseSyncService) ListReverseSyncConflicts(ctx context.Context, r *jobsv1.ListReverseSyncConflictsRequest) (*jobsv1.ListReverseSyncConflictsResponse, error) {
	streams, err := s.pipeline()
	if err != nil {
		return nil, err
	}
	conflicts, err := reversesync.Conflicts(ctx, streams)
	response := &jobsv1.ListReverseSyncConflictsResponse{}
	for _, c := range conflicts {
		if r.GetKind() == "" || r.GetKind() == c.Kind {
			response.Conflicts = append(response.Conflicts, &jobsv1.ReverseSyncConflict{
				Kind: c.Kind, Id: c.ID, Reason: string(c.Reason), Message: c.Message, Fields: c.Fields,
				Editor: c.EditedBy, EditTime: c.EditedAt, FindTime: timestamppb.New(c.Since),
			})
		}
	}
	return response, err
}
