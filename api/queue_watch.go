package api

import (
	"context"

	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// WatchQueueItem implements the service.
func (s *queueService) WatchQueueItem(ctx context.Context, r *jobsv1.WatchQueueItemRequest, stream jobsv1connect.QueueServiceWatchQueueItemServerStream) error {
	j, err := s.itemJob(ctx, r)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	sent := -2 // Neither a number of items nor -1, for no answer.
	turn, err := s.Client.Queues.AwaitTurn(watching, j, r.GetSequence(), func(ahead int) {
		if ahead == sent {
			return
		}
		sent = ahead
		message := &jobsv1.WatchQueueItemResponse{Ahead: int32(max(ahead, 0)), Unanswered: ahead < 0}
		if err := stream.Send(message); err != nil {
			stop(err)
		}
	})
	if err != nil {
		return causeOf(watching, err)
	}
	message := &jobsv1.WatchQueueItemResponse{}
	if turn.Run != nil {
		message.RunName = refName(*turn.Run)
	} else {
		message.Status, message.ErrorMessage = word(string(turn.Finished.Status)), turn.Finished.Error
	}
	return stream.Send(message)
}

// itemJob is the job of an item, as it was put into its queue.
func (s *queueService) itemJob(ctx context.Context, r *jobsv1.WatchQueueItemRequest) (job.Job, error) {
	var j job.Job
	if r.GetJob() == nil {
		live, err := s.Client.Jobs.Live(ctx, r.GetJobId())
		if err != nil {
			return j, err
		}
		j = live.Job
	} else {
		declared, _, err := s.declaredJob(ctx, r.GetJob())
		if err != nil {
			return j, err
		}
		j = declared
	}
	if j.ID != r.GetJobId() || j.Queue() != r.GetQueue() {
		return j, badRequest(violation{"job_id", "the job is not one of the queue"})
	}
	return j, nil
}

// causeOf is why a context was ended, if it was, or the error.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
