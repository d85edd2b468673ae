package influx

import (
	"context"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// Pace keeps a run to a number of stored values that it reads in a second.
type Pace struct {
	// PerSecond is that number. Without it there is no bound.
	PerSecond int64
	Run       job.Run

	due time.Time // when what was read so far is paid
}

// Wait waits until values that were read are paid. The error is [job.ErrStopped] if the run
// is stopped meanwhile.
func (p *Pace) Wait(ctx context.Context, values int64) error {
	if p.PerSecond <= 0 {
		return ctx.Err()
	}
	now := time.Now()
	if earliest := now.Add(-time.Second); p.due.Before(earliest) {
		p.due = earliest
	}
	p.due = p.due.Add(time.Duration(float64(values) / float64(p.PerSecond) * float64(time.Second)))
	if !p.due.After(now) {
		return ctx.Err()
	}
	timer := time.NewTimer(p.due.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.Run.Stopping():
		return job.ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}
