package workers

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/contract"

	"go.temporal.io/sdk/activity"

	"github.com/dendrascience/dendra-jobs/job"
)

// Bounds of what is told of a run's progress: it goes into the history.
const (
	maxToldMessage = 500
	maxToldCursor  = 1 << 10
	// tellShare is which share of its time a run has its progress told again after: a
	// run of a day tells it some 105 times, one of a year 225 times, however often it
	// is retried. A hand-over to another worker begins anew.
	tellShare = 20
	// tellPatience bounds how long Temporal may take to take in a report. The next one
	// makes up for it.
	tellPatience = 10 * time.Second
)

// tellProgress tells the workflow of a run now and then how far it is, until stop is
// called. Heartbeats tell that more often, but no workflow.
func (h *host) tellProgress(ctx context.Context, r *run) (stop func()) {
	info := activity.GetInfo(ctx)
	workflow := info.WorkflowExecution
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var telling sync.WaitGroup
	telling.Go(func() {
		// Both times are the server's: what the clock of this machine says does not matter.
		before, began := max(info.StartedTime.Sub(info.ScheduledTime), 0), time.Now()
		next := time.NewTimer(tellAfter(h.ProgressEvery, before))
		defer next.Stop()
		var told contract.ProgressReport
		for {
			select {
			case <-ctx.Done():
				return
			case <-next.C:
			}
			if report := r.shown(); report.Progress != told.Progress || !bytes.Equal(report.Cursor, told.Cursor) {
				patient, done := context.WithTimeout(ctx, tellPatience)
				if err := h.client.SignalWorkflow(patient, workflow.ID, workflow.RunID, contract.SignalProgress, report); err == nil {
					told = report
				} else if ctx.Err() == nil {
					r.logger.Debug("the progress was not told", "error", err)
				}
				done()
			}
			next.Reset(tellAfter(h.ProgressEvery, before+time.Since(began)))
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}

// tellAfter is how long a run waits until it tells its progress, whose first try was
// handed out so long ago: later tries tell it to the same history.
func tellAfter(least, since time.Duration) time.Duration {
	return max(least, since/tellShare)
}

// shown is how far the run is, for people.
func (r *run) shown() contract.ProgressReport {
	beat := r.report()
	report := contract.ProgressReport{RunID: r.input.RunID, Worker: r.identity, Progress: beat.Progress, Cursor: beat.Cursor}
	report.Progress.Message = job.Cut(r.redact(beat.Progress.Message), maxToldMessage)
	if len(report.Cursor) > maxToldCursor {
		report.Cursor = nil
	}
	return report
}
