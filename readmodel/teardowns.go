package readmodel

import (
	"context"
	"time"

	"github.com/dendrascience/dendra-jobs/activities/platform/teardown"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// readTeardowns looks at the runs of teardowns under way. One that is blocked waits for a
// person, and is tried again until then: no list shows that.
func (r *Reader) readTeardowns(ctx context.Context) error {
	for id, ref := range r.openTeardowns() {
		detail, err := r.client.Runs.Get(ctx, ref)
		if err != nil {
			return err //nolint:wrapcheck // It says what it did.
		}
		var blocked *contract.Failing
		if detail.LastClass == errclass.TeardownBlocked && detail.NextAttempt.After(time.Now()) {
			blocked = &contract.Failing{Failing: true, Failures: detail.Attempts - 1, Class: detail.LastClass, Error: detail.LastError}
		}
		r.mu.Lock()
		if j := r.state.jobs[id]; j != nil && (j.blocked != nil || blocked != nil) {
			j.blocked, j.message = blocked, nil
		}
		r.mu.Unlock()
	}
	return nil
}

// openTeardowns are the runs, by job.
func (r *Reader) openTeardowns() map[string]client.RunRef {
	r.mu.Lock()
	defer r.mu.Unlock()
	refs := map[string]client.RunRef{}
	for id, j := range r.state.jobs {
		if j.own != nil && j.own.Type == teardown.Type && j.own.Status == client.JobRunning {
			refs[id] = client.RunRef{WorkflowID: contract.JobWorkflowID(id), RunID: j.ownRunID}
		}
	}
	return refs
}
