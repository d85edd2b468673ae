package exports

import (
	"context"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// pace keeps a run to a number of values a second.
type pace struct {
	perSecond int64
	run       job.Run

	due time.Time // when what was read so far is paid
}

// wait waits until values that were read are paid, or the run is stopped.
func (p *pace) wait(ctx context.Context, values int64) error {
	now := time.Now()
	p.due = later(p.due, now.Add(-time.Second)).Add(time.Duration(float64(values) / float64(p.perSecond) * float64(time.Second)))
	if !p.due.After(now) {
		return ctx.Err()
	}
	timer := time.NewTimer(p.due.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.run.Stopping():
		return job.ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}
