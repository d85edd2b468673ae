package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/lines"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/iterate"
)

// reportInterval is how often the state of the loads is published.
const reportInterval = 3 * time.Second

// iteration is one iteration: a mirror writer for each mirror, side by side.
type iteration struct {
	*iterate.Iteration
	spec     LiveInfluxSpec
	rules    lines.Rules
	pipeline *pipeline.Client
	backoff  backoff
	writers  []*mirrorWriter

	once    sync.Once
	over    chan struct{} // closed when no mirror can go on
	changed chan struct{} // holds one when a breaker has opened or closed
}

// load is the only step: it ends when no mirror writer has more to do.
func (l *iteration) load(ctx context.Context) (iterate.Next, error) {
	reporting, ended := context.WithCancel(ctx)
	reporter, _ := job.NewGroup(ctx)
	writers, _ := job.NewGroup(ctx)
	reporter.Go(func() error { return l.report(ctx, reporting.Done()) })
	for _, w := range l.writers {
		writers.Go(func() error {
			defer w.waiting.Store(true)
			w.end(job.Safely(func() error { return w.work(ctx) }))
			return nil
		})
	}
	_ = writers.Wait() // each keeps its own error
	ended()
	if err := reporter.Wait(); err != nil {
		return iterate.Done, err
	}
	if ctx.Err() != nil {
		return iterate.Done, ctx.Err()
	}
	return iterate.Done, l.failure()
}

// report publishes the state of all mirror writers every few seconds, after a change, and at
// the end. A failure is ignored: the mirror writers meet the same one.
func (l *iteration) report(ctx context.Context, stop <-chan struct{}) error {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	for stopped := false; !stopped; {
		select {
		case <-tick.C:
		case <-l.changed:
		case <-stop:
			stopped = true
		}
		for _, w := range l.writers {
			w.publish(ctx)
		}
	}
	return nil
}

func (l *iteration) stopping() bool {
	select {
	case <-l.Stopping():
		return true
	case <-l.over:
		return true
	default:
		return false
	}
}

// draining reports whether a mirror writer should take no more: the iteration is over, and no other
// mirror is so slow with what it has in hand that it would hold up this one.
func (l *iteration) draining(w *mirrorWriter) bool {
	if l.stopping() {
		return true
	}
	if time.Now().Before(l.End()) {
		return false
	}
	if w.isSlow() {
		return true
	}
	for _, other := range l.writers {
		if other != w && !other.waiting.Load() && other.isSlow() {
			return false
		}
	}
	return true
}

// awaitEnd keeps a mirror writer that has nothing to do any more for the end of the iteration, and
// reports true when it should go on instead: another mirror turned out to be slow
// with what it has in hand.
func (l *iteration) awaitEnd(ctx context.Context, w *mirrorWriter) bool {
	if w.isSlow() {
		return false
	}
	w.waiting.Store(true)
	tick := time.NewTicker(slowWrite / 5)
	defer tick.Stop()
	for {
		all := true
		for _, other := range l.writers {
			all = all && (other == w || other.waiting.Load())
		}
		switch {
		case all || l.stopping() || ctx.Err() != nil:
			return false
		case !l.draining(w):
			w.waiting.Store(false)
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// checkMirrors ends the iteration when every mirror is down.
func (l *iteration) checkMirrors() {
	for _, w := range l.writers {
		if !w.down() {
			return
		}
	}
	l.once.Do(func() { close(l.over) })
}

// failure is the error of the iteration: none as long as a mirror can go on.
func (l *iteration) failure() error {
	var reasons []string
	var first error
	class, retryAt := "", time.Time{}
	for _, w := range l.writers {
		b, err := w.trouble()
		switch {
		case err != nil:
			reasons = append(reasons, w.label()+err.Error())
		case b.State == pipeline.BreakerOpen:
			reasons = append(reasons, w.label()+b.Reason)
			if class == "" {
				class = b.Class
			}
			if retryAt.IsZero() || b.RetryAt.Before(retryAt) {
				retryAt = b.RetryAt
			}
		default:
			return nil
		}
		if first == nil {
			first = err
		}
	}
	if class == "" {
		var failure *job.Failure
		if len(l.writers) == 1 || errors.As(first, &failure) {
			return first
		}
		class = errclass.PipelineUnreachable
	}
	where := "location " + l.spec.Location
	if class == errclass.InfluxLimits {
		where += " waits, since InfluxDB is at a limit of its configuration"
	}
	return job.Retryable(class, max(time.Until(retryAt), 0), "%s: %s", where, strings.Join(reasons, "; "))
}

// progress is what a checkpoint says.
func (l *iteration) progress(counts map[string]int64) (job.Progress, any) {
	return job.Progress{Done: counts["points"], Message: l.message(counts, "")}, nil
}

func (l *iteration) result() job.Result {
	counts := l.Counts()
	counts["mirrors_down"] = 0
	for _, w := range l.writers {
		if b, err := w.trouble(); err != nil || b.State != pipeline.BreakerClosed {
			counts["mirrors_down"]++
		}
	}
	return job.Result{
		Message: l.message(counts, fmt.Sprintf(" in %d writes", counts["batches"])),
		Counts:  counts,
	}
}

// message is one line about the iteration: "10 messages, 10 points to http://…; mirror west
// is down since 12:00:05: …".
func (l *iteration) message(counts map[string]int64, writes string) string {
	to := l.writers[0].address
	if len(l.writers) > 1 {
		to = fmt.Sprintf("%d mirrors", len(l.writers))
	}
	text := fmt.Sprintf("%d messages, %d points%s to %s", counts["messages"], counts["points"], writes, to)
	for _, w := range l.writers {
		if b, err := w.trouble(); err != nil {
			text += fmt.Sprintf("; mirror %s: %s", w.mirror.Name, err)
		} else if b.State != pipeline.BreakerClosed {
			text += fmt.Sprintf("; mirror %s is down since %s: %s", w.mirror.Name, b.Since.UTC().Format(time.RFC3339), b.Reason)
		}
	}
	return text
}
