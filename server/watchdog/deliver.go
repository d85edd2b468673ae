package watchdog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// deliver waits for further records of a batch, sends it, and marks all as sent. It renews the
// records meanwhile, so that no other replica takes them over.
func (w *Watchdog) deliver(ctx context.Context, b *batch) {
	renew := time.NewTicker(w.TakeOver / 3)
	defer renew.Stop()
	for wait := time.After(b.wait); wait != nil && ctx.Err() == nil; {
		select {
		case <-wait:
			wait = nil
		case <-renew.C:
			b.each(func(record alerts.Stored) { w.renew(ctx, b, record) })
		case <-ctx.Done():
		}
	}
	records := b.close()
	notices := make([]Notice, len(records))
	for n, record := range records {
		notices[n] = noticeOf(record.Record)
	}
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		w.send(sending, notices)
	}()
	for left := len(records); ; {
		select {
		case <-renew.C:
			if left = b.each(func(record alerts.Stored) { w.renew(ctx, b, record) }); left == 0 {
				cancel() // Other replicas have taken over all of it.
			}
		case <-sent:
			b.each(func(record alerts.Stored) {
				if ctx.Err() == nil && left > 0 {
					w.mark(ctx, record)
				}
				w.setBusy(record.Name, false)
			})
			return
		}
	}
}

// renew shows other replicas that this one is at a record.
func (w *Watchdog) renew(ctx context.Context, b *batch, record alerts.Stored) {
	record.Count++
	revision, err := w.store.put(ctx, record.Record, record.Revision)
	switch {
	case err == nil:
		record.Revision = revision
		b.update(record)
	case errors.Is(err, alerts.ErrChanged):
		b.lose(record.Name)
		w.setBusy(record.Name, false)
	}
}

// send sends what receivers take of some alerts of one phase.
func (w *Watchdog) send(ctx context.Context, notices []Notice) {
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return
	}
	var wait sync.WaitGroup
	for _, route := range w.Routes {
		var taken []Notice
		for _, n := range notices {
			if route.takes(n) {
				taken = append(taken, n)
			}
		}
		if len(taken) == 0 {
			continue
		}
		m := messageOf(taken)
		wait.Go(func() {
			err := route.Receiver.Send(ctx, m)
			if ctx.Err() != nil {
				return // It is sent by whoever takes it over.
			}
			if err != nil {
				w.Logger.ErrorContext(ctx, "an alert could not be told", "alert", m.Alert, "alerts", len(m.Alerts), "phase", m.Phase, "receiver", route.Name, "error", err)
			}
			if w.Metrics != nil {
				w.Metrics.Notified(route.Name, err == nil)
			}
		})
	}
	wait.Wait()
}

// mark notes that a message was sent. If that fails for long, it is sent again.
func (w *Watchdog) mark(ctx context.Context, record alerts.Stored) {
	for range 10 {
		var err error
		if record.Phase == alerts.Cleared {
			err = w.store.remove(ctx, record.Name, record.Revision)
		} else {
			record.Sent, record.SentAt = true, time.Now()
			record.Count++
			_, err = w.store.put(ctx, record.Record, record.Revision)
		}
		if err == nil || errors.Is(err, alerts.ErrChanged) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}
