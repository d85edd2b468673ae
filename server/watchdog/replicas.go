package watchdog

import (
	"context"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// announce keeps the record of this replica until the context ends.
func (w *Watchdog) announce(ctx context.Context) {
	if w.Shared == nil || w.Settings == "" {
		return
	}
	record := alerts.Replica{Name: w.Replica, Settings: w.Settings, Started: time.Now().UTC()}
	bounded := func(ctx context.Context, do func(context.Context) error) {
		once, cancel := context.WithTimeout(ctx, w.StoreTimeout)
		defer cancel()
		if err := do(once); err != nil {
			w.Logger.DebugContext(ctx, "the record of this replica is not written", "error", err)
		}
	}
	tick := time.NewTicker(alerts.RenewEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		bounded(ctx, func(ctx context.Context) error { return w.Shared.PutReplica(ctx, record) })
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	bounded(context.WithoutCancel(ctx), func(ctx context.Context) error { return w.Shared.DeleteReplica(ctx, record.Name) })
}

// compare tells in the log when other replicas begin to differ, and removes the records of
// those that are gone for long.
func (w *Watchdog) compare(ctx context.Context, replicas []alerts.Replica) {
	if w.Shared == nil || !w.store.answers() {
		return
	}
	odd, usual := alerts.Differing(replicas, time.Now())
	var names, settings []string
	w.differs = false
	for _, r := range odd {
		w.differs = w.differs || r.Name == w.Replica
		names, settings = append(names, r.Name), append(settings, r.Name+" "+r.Settings)
	}
	if now := strings.Join(settings, "\n"); now != w.odd {
		if w.odd = now; now != "" {
			w.Logger.WarnContext(ctx, "replicas tell alerts by different settings: start all with the same watchdog file",
				"replicas", strings.Join(names, ", "), "differ_from", usual.Name)
		}
	}
	_, gone := alerts.Live(replicas, time.Now())
	for _, r := range gone {
		once, cancel := context.WithTimeout(ctx, w.StoreTimeout)
		if err := w.Shared.DeleteReplica(once, r.Name); err != nil {
			w.Logger.DebugContext(ctx, "the record of a replica that is gone stays", "replica", r.Name, "error", err)
		}
		cancel()
	}
}
