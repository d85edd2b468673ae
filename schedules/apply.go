package schedules

import (
	"context"
	"errors"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules/control"
)

// Syncer compares declared jobs with what Temporal has, and brings it in line.
type Syncer struct {
	control *control.Client
}

// New makes a syncer that works through the control client.
func New(c *control.Client) *Syncer { return &Syncer{control: c} }

// PlanOptions narrow and widen a plan.
type PlanOptions struct {
	// Provider is where the declared jobs come from: only jobs of the same
	// provider can be orphaned or deleted.
	Provider job.Provider
	// Prune deletes the jobs of the provider that are no longer declared.
	Prune bool
}

// Report tells how one change went, in the order in which changes end.
type Report struct {
	Change Change
	Err    error
	// Done counts the changes that have ended, of Total.
	Done, Total int
}

// Plan compares.
func (s *Syncer) Plan(ctx context.Context, declared []job.Job, options PlanOptions) (*Plan, error) {
	return nil, errors.ErrUnsupported
}

// Apply carries a plan out.
func (s *Syncer) Apply(ctx context.Context, plan *Plan, report func(Report)) error {
	return errors.ErrUnsupported
}
