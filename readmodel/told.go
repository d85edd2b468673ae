package readmodel

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// readTold reads the records of the watchdogs, and the silences.
func (r *Reader) readTold(ctx context.Context) error {
	told, err := r.bucket.Read(ctx)
	if err != nil {
		return err //nolint:wrapcheck // It says what it did.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.told = told
	return nil
}

// alerts are those of an overview, those that are silenced last. One that does not tell
// since when it is so has been so since a watchdog saw it, as its record says, or since this
// reader did. Without guess a reader that has just begun does not know.
func (s *state) alerts(o *jobsv1.Overview, limits Limits, guess bool, now time.Time) []*jobsv1.Alert {
	var loud, silenced []*jobsv1.Alert
	fired := map[string]time.Time{}
	for _, alert := range Alerts(o, s.told.Replicas, limits, now) {
		name := alert.GetName()
		at, known := s.fired[name]
		if !known && (guess || s.fired != nil) {
			at = now
		}
		fired[name] = at
		if record, ok := s.told.Records[name]; ok && record.Phase == alerts.Firing {
			at = record.Since
		}
		if alert.GetFireTime() == nil && !at.IsZero() {
			alert.FireTime = timestamppb.New(at)
		}
		if silence, fits := alerts.Find(s.told.Silences, RuleWord(alert.GetRule()), alert.GetObject(), now); fits {
			alert.Silence, alert.SilencedBy, alert.SilencedUntil = silence.Name, silence.Creator, timestamppb.New(silence.End)
			silenced = append(silenced, alert)
		} else {
			loud = append(loud, alert)
		}
	}
	s.fired = fired
	return append(loud, silenced...)
}
