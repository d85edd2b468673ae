package api

import (
	"context"
	"sync"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// ownReader is the reader that a server makes if it was given none.
type ownReader struct {
	mu     sync.Mutex
	reader *readmodel.Reader
	stop   context.CancelFunc
	done   chan struct{}
}

// overview is the reader of the overview.
func (s *Server) overview(ctx context.Context) (*readmodel.Reader, error) {
	if s.Overview != nil {
		return s.Overview, nil
	}
	s.reader.mu.Lock()
	defer s.reader.mu.Unlock()
	if s.reader.reader == nil {
		reads := s.Reads
		reads.Pipeline, reads.Logger = s.Pipeline, s.Logger
		reader, err := readmodel.New(ctx, reads)
		if err != nil {
			return nil, err
		}
		s.reader.reader = reader
		reading, stop := context.WithCancel(context.Background())
		s.reader.stop, s.reader.done = stop, make(chan struct{})
		go func() {
			defer close(s.reader.done)
			_ = s.reader.reader.Run(reading) // It ends when it is told to.
		}()
	}
	return s.reader.reader, nil
}

func (o *ownReader) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reader != nil {
		o.stop()
		<-o.done
		o.reader = nil
	}
}

// overviewService implements dendra.jobs.v1.OverviewService.
type overviewService struct{ *Server }

// GetOverview implements the service.
func (s *overviewService) GetOverview(ctx context.Context, r *jobsv1.GetOverviewRequest) (*jobsv1.GetOverviewResponse, error) {
	reader, err := s.overview(ctx)
	if err != nil {
		return nil, err
	}
	snapshot, err := reader.Await(ctx)
	if err != nil {
		return nil, err
	}
	message := snapshot.Message(int(r.GetRuns()))
	message.ReadTime = timestamppb.New(reader.LastRead())
	return &jobsv1.GetOverviewResponse{Overview: message}, nil
}

// GetTimeline implements the service.
func (s *overviewService) GetTimeline(ctx context.Context, r *jobsv1.GetTimelineRequest) (*jobsv1.GetTimelineResponse, error) {
	since, until := r.GetStartTime().AsTime(), r.GetEndTime().AsTime()
	if !since.Before(until) {
		return nil, badRequest(violation{"end_time", "it is not later than start_time"})
	}
	reader, err := s.overview(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := reader.Await(ctx); err != nil {
		return nil, err
	}
	return &jobsv1.GetTimelineResponse{Jobs: reader.Timeline(since, until)}, nil
}

// WatchOverview implements the service.
func (s *overviewService) WatchOverview(ctx context.Context, r *jobsv1.WatchOverviewRequest, stream jobsv1connect.OverviewServiceWatchOverviewServerStream) error {
	reader, err := s.overview(ctx)
	if err != nil {
		return err
	}
	subscription := reader.Subscribe()
	defer subscription.Close()
	sent := reader.Since(r.GetRevision())
	for {
		snapshot, err := subscription.Next(ctx)
		if err != nil {
			return err
		}
		if snapshot == sent {
			continue // The caller has it.
		}
		message := snapshot.Delta(sent, int(r.GetRuns()))
		message.Overview.ReadTime = timestamppb.New(reader.LastRead())
		if err := stream.Send(message); err != nil {
			return err //nolint:wrapcheck // It is the stream's.
		}
		sent = snapshot
	}
}
