package api

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// queueService implements dendra.jobs.v1.QueueService.
type queueService struct{ *Server }

// GetQueue implements the service.
func (s *queueService) GetQueue(ctx context.Context, r *jobsv1.GetQueueRequest) (*jobsv1.GetQueueResponse, error) {
	queue, err := s.Client.Queues.Get(ctx, r.GetName())
	if err != nil {
		return nil, aboutQueue(r.GetName(), err)
	}
	return &jobsv1.GetQueueResponse{Queue: wholeQueueMessage(queue)}, nil
}

// ListQueues implements the service.
func (s *queueService) ListQueues(ctx context.Context, r *jobsv1.ListQueuesRequest) (*jobsv1.ListQueuesResponse, error) {
	pages := pagesOf[string](r)
	place, err := pages.read(r.GetPageToken())
	if err != nil {
		return nil, err
	}
	names, err := s.Client.Queues.Names(ctx)
	if err != nil {
		return nil, err
	}
	names, next := after(names, func(name string) string { return name }, place, pageSize(r.GetPageSize()))
	response := &jobsv1.ListQueuesResponse{}
	if response.Queues, response.Unreachable, err = s.queues(ctx, names); err != nil {
		return nil, err
	}
	if next != "" {
		response.NextPageToken = pages.write(next)
	}
	return response, nil
}

// queues asks queues for their states.
func (s *queueService) queues(ctx context.Context, names []string) (queues []*jobsv1.Queue, unreachable []string, _ error) {
	results, err := s.Client.Queues.GetAll(ctx, names)
	for _, r := range results {
		if r.Err != nil {
			unreachable = append(unreachable, r.Name)
			continue
		}
		queues = append(queues, readmodel.QueueMessage(r.Queue))
	}
	return queues, unreachable, err
}

// EnqueueJobs implements the service.
func (s *queueService) EnqueueJobs(ctx context.Context, r *jobsv1.EnqueueJobsRequest) (*jobsv1.EnqueueJobsResponse, error) {
	field := func(i int) string { return fmt.Sprintf("jobs[%d]", i) }
	jobs, err := s.liveJobs(ctx, r.GetJobIds())
	if len(r.GetJobs()) > 0 {
		var declared *declaredJobs
		if declared, err = s.declared(ctx, job.ProviderAPI, r.GetJobs(), field); err == nil {
			jobs = declared.jobs
		}
	}
	if err != nil {
		return nil, err
	}
	var wrong []violation
	for i, j := range jobs {
		if j.Queue() == "" || j.Queue() != jobs[0].Queue() {
			wrong = append(wrong, violation{field(i) + ".queued", "all jobs of a request have the mode queued, and the same queue"})
		}
	}
	if len(wrong) > 0 {
		return nil, badRequest(wrong...)
	}
	if r.GetRefuseOtherSpec() {
		for _, j := range jobs {
			if err := s.refuseOtherSpec(ctx, j); err != nil {
				return nil, err
			}
		}
	}
	options := client.EnqueueOptions{AllowRerun: r.GetAllowRerun(), RequestID: r.GetRequestId()}
	receipts, err := s.Client.Queues.EnqueueAll(ctx, jobs, options, func(int) {})
	if err != nil && len(receipts) > 0 {
		failed := explain(ctx, err)
		reason, _ := InfoOf(failed)
		return nil, withInfo(connect.NewError(failed.Code(), fmt.Sprintf("%d of %d jobs are in the queue, then: %s", len(receipts), len(jobs), failed.Message())),
			reason, map[string]string{"enqueued": fmt.Sprint(len(receipts))}).WithCause(err)
	}
	response := &jobsv1.EnqueueJobsResponse{}
	for _, receipt := range receipts {
		response.Places = append(response.Places, placeMessage(receipt))
	}
	return response, err
}

// ListQueueItems implements the service.
func (s *queueService) ListQueueItems(ctx context.Context, r *jobsv1.ListQueueItemsRequest) (*jobsv1.ListQueueItemsResponse, error) {
	pages := pagesOf[int64](r)
	place, err := pages.read(r.GetPageToken())
	if err != nil {
		return nil, err
	}
	size := pageSize(r.GetPageSize())
	items, err := s.Client.Queues.PeekAfter(ctx, r.GetQueue(), place, size+1)
	if err != nil {
		return nil, aboutQueue(r.GetQueue(), err)
	}
	response := &jobsv1.ListQueueItemsResponse{}
	if len(items) > size {
		items = items[:size]
		response.NextPageToken = pages.write(items[size-1].Sequence)
	}
	for _, item := range items {
		response.Items = append(response.Items, &jobsv1.QueueItem{
			Sequence: item.Sequence, JobId: item.Job.ID, AcceptTime: timeOf(item.Accepted), Ahead: int32(item.Ahead),
		})
	}
	return response, nil
}

// liveJobs are the definitions that Temporal has of jobs.
func (s *queueService) liveJobs(ctx context.Context, ids []string) ([]job.Job, error) {
	jobs := make([]job.Job, len(ids))
	for i, id := range ids {
		live, err := s.Client.Jobs.Live(ctx, id)
		if err != nil {
			return nil, err
		}
		jobs[i] = live.Job
	}
	return jobs, nil
}

// refuseOtherSpec refuses a job that its queue would skip, since its id has completed with
// another spec. A run that failed does not prevent another.
func (s *queueService) refuseOtherSpec(ctx context.Context, j job.Job) error {
	live, err := s.Client.Jobs.LiveWorkflow(ctx, j.ID)
	if err != nil || live == nil {
		return err
	}
	err = live.CheckSpec(j)
	switch {
	case errors.Is(err, client.ErrOtherSpec) && live.Workflow.Open():
		return otherSpecRuns(j.ID)
	case live.Workflow.Open() || live.Workflow.RunStatus() == client.RunCompleted:
		return err
	}
	return nil
}

// wholeQueueMessage is a queue on the wire, with its items.
func wholeQueueMessage(q *client.Queue) *jobsv1.Queue {
	m := readmodel.QueueMessage(q)
	for _, item := range q.Next {
		m.Next = append(m.Next, &jobsv1.QueueItem{Sequence: item.Sequence, JobId: item.JobID, AcceptTime: timeOf(item.Accepted)})
	}
	for _, item := range q.Recent {
		m.Recent = append(m.Recent, &jobsv1.FinishedItem{
			Sequence: item.Sequence, JobId: item.JobID, Status: enumOf[jobsv1.ItemStatus](item.Status),
			AcceptTime: timeOf(item.Accepted), StartTime: timeOf(item.Started), EndTime: timeOf(item.Ended),
			RunName: readmodel.ItemRunName(item.JobID, item.RunID), ErrorMessage: item.Error,
		})
	}
	return m
}
