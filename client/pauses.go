package client

import (
	"maps"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	schedulepb "go.temporal.io/api/schedule/v1"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// A Schedule keeps nothing of its pauses that are over. So each pause and each resume
// writes the latest ones into the memo of the runs that the Schedule starts: it is the
// one part of a Schedule that is ours, and that an update changes.

// pauseSpan is a time in which a schedule was paused.
type pauseSpan struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"` // zero: it is paused still
}

func (s pauseSpan) covers(at time.Time) bool {
	return !at.Before(s.From) && (s.To.IsZero() || at.Before(s.To))
}

// maxPauseSpans bounds the pauses that a Schedule keeps: the latest.
const maxPauseSpans = 8

// pausesOf gives the pauses of a schedule that are known, the latest first.
func pausesOf(schedule *schedulepb.Schedule) []pauseSpan {
	payload, ok := schedule.GetAction().GetStartWorkflow().GetMemo().GetFields()[contract.MemoPauses]
	if !ok {
		return nil
	}
	var spans []pauseSpan
	if err := temporalclient.DecodePayload(payload, &spans); err != nil {
		return nil // Someone has edited it.
	}
	if len(spans) > 0 && spans[0].To.IsZero() && !schedule.GetState().GetPaused() {
		return spans[1:] // Someone has resumed it in another way, nobody knows when.
	}
	return spans
}

// keepPauses has a schedule keep pauses; none keeps nothing.
func keepPauses(schedule *schedulepb.Schedule, spans []pauseSpan) error {
	start := schedule.GetAction().GetStartWorkflow()
	fields := maps.Clone(start.GetMemo().GetFields())
	delete(fields, contract.MemoPauses)
	if len(spans) > 0 {
		payload, err := temporalclient.EncodePayload(spans[:min(len(spans), maxPauseSpans)])
		if err != nil {
			return err
		}
		if fields == nil {
			fields = map[string]*commonpb.Payload{}
		}
		fields[contract.MemoPauses] = payload
	}
	start.Memo = &commonpb.Memo{Fields: fields}
	return nil
}

// setPaused pauses or resumes a schedule, and notes when that was.
func setPaused(schedule *schedulepb.Schedule, paused bool, reason string, now time.Time) error {
	spans := pausesOf(schedule)
	at := now.UTC().Truncate(time.Millisecond)
	open := len(spans) > 0 && spans[0].To.IsZero()
	switch {
	case paused && !open:
		spans = append([]pauseSpan{{From: at}}, spans...)
	case !paused && open && at.After(spans[0].From):
		spans[0].To = at
	case !paused && open:
		spans = spans[1:] // It was too short to have a time.
	}
	schedule.State.Paused, schedule.State.Notes = paused, job.Cut(reason, contract.MaxPauseReason)
	return keepPauses(schedule, spans)
}
