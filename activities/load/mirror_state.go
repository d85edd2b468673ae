package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// reportTimeout bounds how long an iteration waits to publish a state.
const reportTimeout = 2 * time.Second

func (w *mirrorWriter) breaker() pipeline.Breaker {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Breaker
}

// down reports whether the mirror is left alone, or cannot be served at all. One that is
// tried can go on.
func (w *mirrorWriter) down() bool {
	b, err := w.trouble()
	return err != nil || b.State == pipeline.BreakerOpen
}

func (w *mirrorWriter) trouble() (pipeline.Breaker, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Breaker, w.err
}

// label begins a sentence about the mirror, where there are several.
func (w *mirrorWriter) label() string {
	if len(w.iteration.writers) == 1 {
		return ""
	}
	return fmt.Sprintf("mirror %s: ", w.mirror.Name)
}

// end notes that the mirror writer cannot go on for a reason that is not the mirror's.
func (w *mirrorWriter) end(err error) {
	if err == nil {
		return
	}
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
	w.iteration.checkMirrors()
}

// failed notes a failure of the mirror, and the message that it is about if it is about
// one. The log hears of it once, when the mirror goes down.
func (w *mirrorWriter) failed(err error, held *pipeline.HeldMessage) {
	w.mu.Lock()
	opened := fail(&w.state.Breaker, w.iteration.backoff, time.Now().UTC(), err, held)
	b := w.state.Breaker
	w.mu.Unlock()
	if opened {
		w.iteration.Logger().Error("a mirror is down and is left alone until it answers again", "alert", "mirror_down", "mirror", w.mirror.Name,
			"influx", w.address, "class", b.Class, "reason", b.Reason, "failures", b.Failures, "retry_at", b.RetryAt)
		w.changed()
	}
	if b.State != pipeline.BreakerClosed {
		w.iteration.checkMirrors()
	}
}

// noteWrite notes how a batch went: the mirror works if it has stored points of it, and
// refused none for a reason that is not theirs. A batch without any says nothing.
func (w *mirrorWriter) noteWrite(b *batch, err error) {
	w.mu.Lock()
	since, closed := w.state.Breaker.Since, false
	switch {
	case b.stored && (err == nil || errors.Is(err, errIterationOver)):
		closed = succeed(&w.state.Breaker, time.Now().UTC())
	case err == nil && len(b.items) > 0:
		w.state.Breaker.Held = nil // whichever it was is done with
	}
	w.mu.Unlock()
	if closed {
		w.iteration.Logger().Info("a mirror is back", "alert", "mirror_back", "mirror", w.mirror.Name,
			"influx", w.address, "down_for", time.Since(since).Round(time.Second))
		w.changed()
	}
}

// changed has the state published soon.
func (w *mirrorWriter) changed() {
	select {
	case w.iteration.changed <- struct{}{}:
	default:
	}
}

func (w *mirrorWriter) count(name string, n int64) {
	w.iteration.Count(name, n)
	w.mu.Lock()
	defer w.mu.Unlock()
	labels := w.labels()
	switch name {
	case "points":
		metrics.LoadPoints.Add(n, labels...)
		w.state.Points += n
		w.state.LastWrite = time.Now().UTC()
		w.state.Recent.Stored(w.state.LastWrite, n)
	case "quarantined":
		metrics.LoadRefused.Add(n, labels...)
		w.state.Quarantined += n
	case "expired":
		metrics.LoadExpired.Add(n, labels...)
		w.state.Expired += n
	}
}

// counted is the last message whose points in quarantine are counted.
func (w *mirrorWriter) counted() *pipeline.HeldMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.Counted
}

// countKept counts what is in quarantine of messages up to the last one, which are about to
// be acknowledged. The state says so before: after a crash they come again and are not
// counted twice, or they do not, and were counted.
func (w *mirrorWriter) countKept(ctx context.Context, n int, last pipeline.Stored) {
	w.count("quarantined", int64(n))
	w.mu.Lock()
	w.state.Counted = &pipeline.HeldMessage{Subject: last.Subject, Sequence: last.Sequence, Time: last.Time}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	w.putState(ctx)
}

// noteRefusals notes what has gone to quarantine since the server refuses it.
func (w *mirrorWriter) noteRefusals(refused []refusal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now().UTC()
	for _, r := range refused {
		if r.class != errclass.Skipped { // which is someone's wish
			w.state.Recent.Refused(now, max(1, r.points), r.class, r.reason)
		}
	}
}

// isSlow reports whether the mirror takes, or took with its last write, so long that
// another one should not wait for it.
func (w *mirrorWriter) isSlow() bool {
	began := w.writing.Load()
	return w.slow.Load() || (began != 0 && time.Since(time.Unix(0, began)) > slowWrite)
}

// labels are those of the metrics of the load.
func (w *mirrorWriter) labels() []string {
	spec := &w.iteration.spec
	return []string{spec.Location, string(spec.OperationMode), w.mirror.Name}
}

// measure tells the metrics what waits. If the stream does not answer, the last values
// hold for a while.
func (w *mirrorWriter) measure(ctx context.Context) {
	spec := &w.iteration.spec
	waiting, oldest, err := w.iteration.pipeline.Waiting(ctx, spec.OperationMode, spec.Location, w.mirror.Name)
	if err != nil {
		w.iteration.Logger().Debug("what waits for a load is not known", "error", err)
		return
	}
	lag := 0.0
	if !oldest.IsZero() {
		lag = max(0, time.Since(oldest).Seconds())
	}
	metrics.LoadWaiting.Set(float64(waiting), w.labels()...)
	metrics.LoadLag.Set(lag, w.labels()...)
}

// publish writes the state of the load. The load goes on if that fails.
func (w *mirrorWriter) publish(ctx context.Context) {
	now := time.Now().UTC()
	w.mu.Lock()
	if w.state.Location == "" { // not opened yet
		w.mu.Unlock()
		return
	}
	if since := now.Sub(w.rate.since); since >= rateInterval {
		w.state.PointsPerSecond = float64(w.state.Points-w.rate.points) / since.Seconds()
		w.rate.since, w.rate.points = now, w.state.Points
	}
	breaker := w.state.Breaker.State
	w.mu.Unlock()
	up := 0.0
	if breaker == pipeline.BreakerClosed {
		up = 1
	}
	metrics.LoadMirrorUp.Set(up, w.labels()...)
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	w.measure(ctx)
	w.putState(ctx)
}

// putState writes the state. One that was taken earlier is never written later.
func (w *mirrorWriter) putState(ctx context.Context) {
	w.putting.Lock()
	defer w.putting.Unlock()
	w.mu.Lock()
	w.state.UpdatedAt = time.Now().UTC()
	state := w.state
	w.mu.Unlock()
	if err := w.iteration.pipeline.PutLoadState(ctx, state); err != nil {
		w.iteration.Logger().Debug("the state of a load is not published", "error", err)
	}
}
