package readmodel

import (
	"context"
	"errors"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// workerState is what is known of a worker process.
type workerState struct {
	seen    client.ListedService
	asked   time.Time
	service *client.LiveService
	message *jobsv1.Worker
}

const (
	// lostFor is how long a worker that fell silent is shown.
	lostFor = time.Hour
	// describeEvery is the least time after which a worker is described again: for what it
	// runs, and whether it ends.
	describeEvery = 10 * time.Second
	// maxDescribed bounds the workers that are described at once.
	maxDescribed = 4
)

// readWorkers lists the worker processes, and describes those that are new or were not
// described for long.
func (r *Reader) readWorkers(ctx context.Context) (err error) {
	found, err := r.client.Workers.ListServices(ctx, time.Now().Add(-lostFor))
	if err != nil {
		return err //nolint:wrapcheck // It says what it did.
	}
	now := time.Now()
	var due []client.ListedService
	r.mu.Lock()
	known := map[string]bool{}
	old := 0
	for _, seen := range found {
		known[seen.ID] = true
		w := r.state.workers[seen.ID]
		switch {
		case w == nil || w.seen != seen:
			due = append(due, seen) // New, back, or lost.
		case !seen.Lost && now.Sub(w.asked) > max(describeEvery, time.Duration(len(found))*time.Second) && old < maxDescribed:
			due = append(due, seen)
			old++
		}
	}
	for id := range r.state.workers {
		if !known[id] {
			delete(r.state.workers, id)
		}
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.state.workersRead = r.state.workersRead || err == nil
	}()
	var errs []error
	for _, seen := range due {
		service, failed := r.client.Workers.Service(ctx, seen.ID)
		if failed != nil {
			errs = append(errs, failed)
			continue
		}
		w := &workerState{seen: seen, asked: time.Now(), service: service}
		if service != nil {
			w.message = WorkerMessage(*service)
		}
		r.mu.Lock()
		r.state.workers[seen.ID] = w
		r.mu.Unlock()
	}
	return errors.Join(errs...)
}
