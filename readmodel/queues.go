package readmodel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// queueState is what is known of a queue.
type queueState struct {
	seen    client.ListedQueue
	asked   time.Time
	held    []contract.QueueItem
	message *jobsv1.Queue
	// endRead is the run id of the ended workflow that was read.
	endRead string
	// read says that it was asked, and has answered or not.
	read bool
}

// askEvery is the least time between two questions to a queue or a continuous job.
const askEvery = 2 * time.Second

// readQueueNames lists the queues.
func (r *Reader) readQueueNames(ctx context.Context) error {
	found, err := r.client.Queues.List(ctx)
	if err != nil {
		return err //nolint:wrapcheck // It says what it did.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	listed := map[string]bool{}
	for _, seen := range found {
		name := seen.Name
		listed[name] = true
		q := r.state.queues[name]
		if q == nil {
			q = &queueState{message: &jobsv1.Queue{Name: name}}
			r.state.queues[name] = q
		}
		if q.seen != seen {
			q.asked = time.Time{}
		}
		if q.seen = seen; seen.Status != client.RunRunning && q.message.GetStatus() != jobsv1.QueueStatus_QUEUE_STATUS_ENDED {
			q.message, q.held = proto.CloneOf(q.message), nil
			q.message.Status, q.message.Reason = jobsv1.QueueStatus_QUEUE_STATUS_ENDED, QueueEnded(seen.Status)
		}
	}
	for name := range r.state.queues {
		if !listed[name] {
			delete(r.state.queues, name)
		}
	}
	return nil
}

// nextQueue is the queue that was asked longest ago, "" if none is due.
func (s *state) nextQueue(now time.Time) string {
	best, at := "", now.Add(-askEvery)
	for name, q := range s.queues {
		if q.seen.Status != client.RunRunning && q.endRead == q.seen.RunID {
			continue // It does not change.
		}
		if q.asked.Before(at) {
			best, at = name, q.asked
		}
	}
	return best
}

// unread reports whether a queue or a continuous job was never asked, and could be, or that a run
// under way was not looked at.
func (s *state) unread() bool {
	if !s.lookedAll && s.nextLook(time.Now()) != "" {
		return true
	}
	if !s.live() {
		return false
	}
	for _, q := range s.queues {
		if !q.read {
			return true
		}
	}
	for _, j := range s.jobs {
		if j.loops() && !j.loop.read {
			return true
		}
	}
	return false
}

// live reports whether a worker may answer.
func (s *state) live() bool {
	for _, w := range s.workers {
		if w.service != nil && w.service.State != client.ServiceLost {
			return true
		}
	}
	return false
}

// readQueue asks one queue for its state.
func (r *Reader) readQueue(ctx context.Context) error {
	r.mu.Lock()
	name := r.state.nextQueue(time.Now())
	live := r.state.live()
	r.state.noteOfQueues = ""
	if !live && len(r.state.queues) > 0 {
		var names []string
		for name := range r.state.queues {
			names = append(names, name)
		}
		slices.Sort(names)
		r.state.noteOfQueues = job.Cut("no worker is alive to answer for the queues "+strings.Join(names, ", "), maxNote)
	}
	var seen client.ListedQueue
	if name != "" {
		seen = r.state.queues[name].seen
		r.state.queues[name].asked = time.Now()
	}
	r.mu.Unlock()
	if name == "" || !live {
		return nil
	}
	queue, err := r.client.Queues.Get(ctx, name)
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.state.queues[name]
	if q == nil {
		return nil // Someone has deleted it.
	}
	first := !q.read
	q.read = true
	switch {
	case errors.Is(err, client.ErrNotFound):
		return nil // Someone has deleted it.
	case err != nil:
		return fmt.Errorf("queue %s: %w", name, err)
	}
	q.message, q.held = QueueMessage(queue), queue.Held()
	if queue.Ended != nil {
		q.endRead, q.held = seen.RunID, nil
	}
	if first {
		return errMore
	}
	return nil
}

// InQueue reports whether a job is an item that a queue has, and tells of itself.
func InQueue(j *jobsv1.JobOverview) bool {
	return j.GetMode() == verbs.Queued && (j.GetUnderWay() || j.GetStatus() == jobsv1.JobStatus_JOB_STATUS_WAITING)
}

// waitingItem is an item that waits in a queue.
type waitingItem struct {
	queue string
	item  contract.QueueItem
}

// waitingItems are the first of each job that waits in queues, of those that the queues
// themselves hold: a hundred of each or so.
func (s *state) waitingItems() map[string]*waitingItem {
	items := map[string]*waitingItem{}
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		for _, item := range s.queues[name].held {
			if items[item.Job.ID] == nil {
				items[item.Job.ID] = &waitingItem{name, item}
			}
		}
	}
	return items
}
