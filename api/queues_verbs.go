package api

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// resourceKey is the key of the metadata of an error NOT_FOUND that says what is not there:
// queue or queue_item.
const resourceKey = "resource"

// aboutItem says in an error what is not there: the queue, or the job in it.
func aboutItem(queue, jobID string, err error) error {
	if errors.Is(err, client.ErrNotInQueue) {
		return missing("queue_item", fmt.Sprintf("job %s is not in queue %s", jobID, queue))
	}
	return aboutQueue(queue, err)
}

// aboutQueue says in an error that the queue is not there.
func aboutQueue(queue string, err error) error {
	if errors.Is(err, client.ErrNotFound) {
		return missing("queue", fmt.Sprintf("there is no queue %s", queue))
	}
	return err
}

func missing(resource, text string) error {
	return withInfo(connect.NewError(connect.CodeNotFound, text), notFound, map[string]string{resourceKey: resource})
}

// summaryMessage is a queue right after a change.
func summaryMessage(s contract.QueueSummary) *jobsv1.QueueSummary {
	return &jobsv1.QueueSummary{Waiting: int32(s.Waiting), RunningJobId: s.Running, Paused: s.Paused, Draining: s.Draining, Halted: s.Halted}
}

// CancelQueueItem implements the service.
func (s *queueService) CancelQueueItem(ctx context.Context, r *jobsv1.CancelQueueItemRequest) (*jobsv1.CancelQueueItemResponse, error) {
	receipt, err := s.Client.Queues.CancelItem(ctx, r.GetQueue(), r.GetJobId())
	return &jobsv1.CancelQueueItemResponse{Running: receipt.Running}, aboutItem(r.GetQueue(), r.GetJobId(), err)
}

// MoveQueueItem implements the service.
func (s *queueService) MoveQueueItem(ctx context.Context, r *jobsv1.MoveQueueItemRequest) (*jobsv1.MoveQueueItemResponse, error) {
	summary, err := s.Client.Queues.MoveToFront(ctx, r.GetQueue(), r.GetJobId())
	return &jobsv1.MoveQueueItemResponse{Summary: summaryMessage(summary)}, aboutItem(r.GetQueue(), r.GetJobId(), err)
}

// purgeSample is how many jobs the answer to a purge that is only counted names, and
// purgeLook how many items are looked at for them.
const (
	purgeSample = 10
	purgeLook   = 1000
)

// PurgeQueue implements the service.
func (s *queueService) PurgeQueue(ctx context.Context, r *jobsv1.PurgeQueueRequest) (*jobsv1.PurgeQueueResponse, error) {
	first, last := r.GetFirstSequence(), r.GetLastSequence()
	if last != 0 && last < first {
		return nil, badRequest(violation{"last_sequence", "it is less than first_sequence"})
	}
	if r.GetForce() {
		removed, err := s.Client.Queues.Purge(ctx, r.GetQueue(), first, last)
		return &jobsv1.PurgeQueueResponse{PurgeCount: int32(removed)}, aboutQueue(r.GetQueue(), err)
	}
	queue, err := s.Client.Queues.Get(ctx, r.GetQueue())
	if err == nil {
		err = queue.Err()
	}
	if err != nil {
		return nil, aboutQueue(r.GetQueue(), err)
	}
	response := &jobsv1.PurgeQueueResponse{PurgeCount: int32(queue.CountBetween(first, last))}
	items, err := s.Client.Queues.Peek(ctx, r.GetQueue(), 0, purgeLook)
	for _, item := range items {
		if item.Sequence >= first && (last == 0 || item.Sequence <= last) && len(response.PurgeSample) < purgeSample {
			response.PurgeSample = append(response.PurgeSample, item.Job.ID)
		}
	}
	return response, err
}

// PauseQueue implements the service.
func (s *queueService) PauseQueue(ctx context.Context, r *jobsv1.PauseQueueRequest) (*jobsv1.PauseQueueResponse, error) {
	in := pauseRequest(reasonOr(ctx, r.GetReason()), r.GetDuration())
	summary, err := s.Client.Queues.PauseWith(ctx, r.GetQueue(), in)
	return &jobsv1.PauseQueueResponse{
		Summary: summaryMessage(summary), AlreadyPaused: summary.Before.Paused, PreviousReason: summary.Before.Reason, EndTime: timeOf(in.End),
	}, aboutQueue(r.GetQueue(), err)
}

// ResumeQueue implements the service.
func (s *queueService) ResumeQueue(ctx context.Context, r *jobsv1.ResumeQueueRequest) (*jobsv1.ResumeQueueResponse, error) {
	summary, err := s.Client.Queues.Resume(ctx, r.GetQueue())
	return &jobsv1.ResumeQueueResponse{Summary: summaryMessage(summary), Unchanged: summary.Before.Unchanged}, aboutQueue(r.GetQueue(), err)
}

// DrainQueue implements the service.
func (s *queueService) DrainQueue(ctx context.Context, r *jobsv1.DrainQueueRequest) (*jobsv1.DrainQueueResponse, error) {
	summary, err := s.Client.Queues.Drain(ctx, r.GetQueue())
	return &jobsv1.DrainQueueResponse{Summary: summaryMessage(summary), Unchanged: summary.Before.Unchanged}, aboutQueue(r.GetQueue(), err)
}

// SkipFailedItem implements the service.
func (s *queueService) SkipFailedItem(ctx context.Context, r *jobsv1.SkipFailedItemRequest) (*jobsv1.SkipFailedItemResponse, error) {
	summary, err := s.Client.Queues.SkipFailed(ctx, r.GetQueue())
	return &jobsv1.SkipFailedItemResponse{Summary: summaryMessage(summary)}, aboutQueue(r.GetQueue(), err)
}

// SetQueueFailurePolicy implements the service.
func (s *queueService) SetQueueFailurePolicy(ctx context.Context, r *jobsv1.SetQueueFailurePolicyRequest) (*jobsv1.SetQueueFailurePolicyResponse, error) {
	// The call makes the queue if it is not there.
	if err := job.CheckKey("queue", r.GetQueue()); err != nil {
		return nil, badRequest(violation{"queue", err.Error()})
	}
	summary, err := s.Client.Queues.SetOnFailure(ctx, r.GetQueue(), wordOf[job.OnFailure](r.GetOnFailure()))
	return &jobsv1.SetQueueFailurePolicyResponse{Summary: summaryMessage(summary), Unchanged: summary.Before.Unchanged}, err
}

// RecoverQueue implements the service.
func (s *queueService) RecoverQueue(ctx context.Context, r *jobsv1.RecoverQueueRequest) (*jobsv1.RecoverQueueResponse, error) {
	summary, err := s.Client.Queues.Recover(ctx, r.GetQueue())
	return &jobsv1.RecoverQueueResponse{Summary: summaryMessage(summary), Unchanged: summary.Before.Unchanged}, aboutQueue(r.GetQueue(), err)
}

// ListDeadLetters implements the service.
func (s *queueService) ListDeadLetters(ctx context.Context, r *jobsv1.ListDeadLettersRequest) (*jobsv1.ListDeadLettersResponse, error) {
	state, err := s.Client.Queues.State(ctx, r.GetQueue())
	if err != nil {
		return nil, aboutQueue(r.GetQueue(), err)
	}
	return &jobsv1.ListDeadLettersResponse{DeadLetters: letterMessages(state.DeadLetters), Dropped: state.DeadDropped}, nil
}

// deadLetters are those of a queue with the numbers, or all.
func (s *queueService) deadLetters(ctx context.Context, queue string, sequences []int64) ([]contract.DeadLetter, error) {
	state, err := s.Client.Queues.State(ctx, queue)
	if err != nil {
		return nil, aboutQueue(queue, err)
	}
	if len(sequences) == 0 {
		return state.DeadLetters, nil
	}
	var letters []contract.DeadLetter
	for _, letter := range state.DeadLetters {
		if slices.Contains(sequences, letter.Sequence) {
			letters = append(letters, letter)
		}
	}
	for _, sequence := range sequences {
		if !slices.ContainsFunc(letters, func(l contract.DeadLetter) bool { return l.Sequence == sequence }) {
			return nil, fmt.Errorf("dead letter %d of queue %s: %w", sequence, queue, client.ErrNotFound)
		}
	}
	return letters, nil
}

// RetryDeadLetters implements the service.
func (s *queueService) RetryDeadLetters(ctx context.Context, r *jobsv1.RetryDeadLettersRequest) (*jobsv1.RetryDeadLettersResponse, error) {
	letters, err := s.deadLetters(ctx, r.GetQueue(), r.GetSequences())
	if err != nil {
		return nil, err
	}
	outcome, err := s.Client.Queues.RetryDead(ctx, r.GetQueue(), letters, func(int, int) {})
	if err != nil {
		return nil, err
	}
	response := &jobsv1.RetryDeadLettersResponse{Retried: letterMessages(outcome.Retried)}
	for _, receipt := range outcome.Receipts {
		response.Places = append(response.Places, placeMessage(receipt))
	}
	for _, later := range outcome.Later {
		m := letterMessage(later)
		m.ErrorMessage = "another one of the job, with another spec, is retried: retry this one when that has ended"
		response.Later = append(response.Later, m)
	}
	for _, left := range outcome.Left {
		m := letterMessage(left.DeadLetter)
		m.ErrorMessage = left.Why
		response.Left = append(response.Left, m)
	}
	return response, nil
}

// DropDeadLetters implements the service.
func (s *queueService) DropDeadLetters(ctx context.Context, r *jobsv1.DropDeadLettersRequest) (*jobsv1.DropDeadLettersResponse, error) {
	dropped, err := s.Client.Queues.DropDead(ctx, r.GetQueue(), r.GetSequences())
	return &jobsv1.DropDeadLettersResponse{Dropped: int32(dropped)}, aboutQueue(r.GetQueue(), err)
}

func letterMessages(letters []contract.DeadLetter) []*jobsv1.DeadLetter {
	list := make([]*jobsv1.DeadLetter, len(letters))
	for i, letter := range letters {
		list[i] = letterMessage(letter)
	}
	return list
}

func letterMessage(letter contract.DeadLetter) *jobsv1.DeadLetter {
	return &jobsv1.DeadLetter{
		Sequence: letter.Sequence, JobId: letter.JobID, EndTime: timeOf(letter.Ended), ErrorMessage: letter.Error,
		RunName: readmodel.ItemRunName(letter.JobID, letter.RunID),
	}
}
