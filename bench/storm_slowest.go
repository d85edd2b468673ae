package main

import (
	"context"
	"fmt"
	"slices"

	"go.temporal.io/api/enums/v1"
)

// explainSlowest shows where the runs have waited whose handlers began last: the
// events of their histories, by how long after the nominal start they came.
func (b *jobBench) explainSlowest(ctx context.Context, f *stormFigures, n int) error {
	slices.SortFunc(f.late, func(a, b lateRun) int { return int(b.late - a.late) })
	for _, run := range f.late[:min(n, len(f.late))] {
		b.say("%s, due at %s: its handler began after %s", run.workflowID, run.due.Format("15:04:05"), roundedTime(run.late))
		events := b.client.GetWorkflowHistory(ctx, run.workflowID, run.runID, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			if err != nil {
				return err
			}
			why := ""
			if failed := event.GetWorkflowTaskFailedEventAttributes(); failed != nil {
				why = fmt.Sprintf(": %s, %s", failed.GetCause(), failed.GetFailure().GetMessage())
			}
			b.say("  %8s  %s%s", roundedTime(event.GetEventTime().AsTime().Sub(run.due)), event.GetEventType(), why)
		}
	}
	return nil
}
