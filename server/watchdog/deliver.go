package watchdog

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// deliver sends a message, and renews its record meanwhile, so that no other replica takes it
// over. Then it marks it as sent.
func (w *Watchdog) deliver(ctx context.Context, record alerts.Stored) {
	sending, cancel := context.WithCancel(ctx)
	defer cancel()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		w.send(sending, record.Record)
	}()
	renew := time.NewTicker(w.TakeOver / 3)
	defer renew.Stop()
	for {
		select {
		case <-renew.C:
			record.Count++
			revision, err := w.store.put(ctx, record.Record, record.Revision)
			switch {
			case err == nil:
				record.Revision = revision
			case errors.Is(err, alerts.ErrChanged):
				cancel() // Another replica has taken it over.
				<-sent
				return
			}
		case <-sent:
			if ctx.Err() == nil {
				w.mark(ctx, record)
			}
			return
		}
	}
}

// send sends a message to all receivers that take it.
func (w *Watchdog) send(ctx context.Context, record alerts.Record) {
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	case <-ctx.Done():
		return
	}
	m := messageOf(record)
	var wait sync.WaitGroup
	for _, route := range w.Routes {
		if !route.takes(m.Rule) {
			continue
		}
		wait.Go(func() {
			err := route.Receiver.Send(ctx, m)
			if ctx.Err() != nil {
				return // It is sent by whoever takes it over.
			}
			if err != nil {
				w.Logger.ErrorContext(ctx, "an alert could not be told", "alert", m.Alert, "phase", m.Phase, "receiver", route.Name, "error", err)
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
