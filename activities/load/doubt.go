package load

import (
	"context"
	"errors"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// A write without an answer may be carried out later than others that come after it:
// by a proxy that keeps it, or by a server that stood still. An old value would then
// stand where its correction was. So the lane remembers the first message of such a
// write, and begins there again when the server has answered for a while: nothing can
// be under way any more then, and the last value is written last.

// doubt notes that a write of the batch got no answer, if that is what an error says.
func (w *lane) doubt(b *batch, err error) {
	var failed *influx.Error
	if !errors.As(err, &failed) || !failed.Sent {
		return
	}
	first, _, err := pipeline.Place(b.items[0].message)
	if err != nil {
		return // what a consumer delivers has a place
	}
	w.mu.Lock()
	w.state.DoubtAt = time.Now().UTC()
	fresh := w.state.DoubtFrom == 0 || first < w.state.DoubtFrom
	if fresh {
		w.state.DoubtFrom = first
	}
	w.mu.Unlock()
	if fresh {
		w.changed() // so that the next loader knows
	}
}

// writeAgain has everything come again that followed a write without an answer, once
// the mirror has answered all others for a while.
func (w *lane) writeAgain(ctx context.Context) error {
	w.mu.Lock()
	from, at, b := w.state.DoubtFrom, w.state.DoubtAt, w.state.Breaker
	w.mu.Unlock()
	if from == 0 || time.Since(at) < w.lap.settling || b.State != pipeline.BreakerClosed || b.Failures > 0 {
		return nil
	}
	if err := w.consumer.RewindTo(ctx, from); err != nil {
		return err
	}
	w.mu.Lock()
	w.state.DoubtFrom, w.state.DoubtAt = 0, time.Time{}
	w.mu.Unlock()
	w.lap.run.Logger().Info("what followed a write without an answer is written again", "mirror", w.mirror.Name,
		"influx", w.address, "message", from, "no_answer_at", at)
	return nil
}
