package readmodel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/readmodel"
)

// TestMissedStartsAreTheSameEverywhere has starts of a job pass beside a run, and others while
// it is paused: the letters, the alert and the list of missed starts say the same of them.
func TestMissedStartsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	w := startWorld(t, readmodel.Config{Always: true})
	const id = "take_steps.missing"
	begin := time.Now().Add(-time.Minute)
	w.create(t, recurring(newJob(t, id, map[string]any{"gate": w.file("gate")}), time.Second))
	o := w.await(t, "the starts beside a run", func(o *jobsv1.Overview) bool {
		return hasPrefix(find(o, id), "RMM") && alert(o, "starts-missed/"+id) != nil
	})
	require.Contains(t, alert(o, "starts-missed/"+id).GetText(), "has no run of its last")

	_, err := w.api.Jobs.PauseJob(t.Context(), &jobsv1.PauseJobRequest{Id: id, Reason: "for a test"})
	require.NoError(t, err)
	w.touch(t, "gate")
	stacktest.WaitFor(t, "the list and the letters to agree on starts of a pause", func() (bool, error) {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		listed, err := w.api.Jobs.ListMissedStarts(ctx, &jobsv1.ListMissedStartsRequest{StartTime: timestamppb.New(begin), Filter: "id = " + id})
		if err != nil {
			return false, err
		}
		letters := find(w.reader.Snapshot().Overview, id).GetOutcomes()
		counts, missed := listed.GetCounts()[0], strings.Count(letters, "M")
		if counts.GetLeftOut() < 3 || strings.Contains(letters, "R") || missed != len(listed.GetMissedStarts()) {
			return false, fmt.Errorf("%s beside %v", letters, counts)
		}
		require.Equal(t, int(counts.GetMissed()), missed)
		require.Len(t, listed.GetLeftOutStarts(), int(counts.GetLeftOut()))
		require.Equal(t, counts.GetScheduled(), counts.GetRuns()+counts.GetWaiting()+counts.GetMissed()+counts.GetLeftOut())
		for _, start := range listed.GetMissedStarts() {
			require.Equal(t, jobsv1.MissedReason_MISSED_REASON_OVERLAP, start.GetReason())
		}
		for _, start := range listed.GetLeftOutStarts() {
			require.Equal(t, jobsv1.MissedReason_MISSED_REASON_PAUSED, start.GetReason())
		}
		return true, nil
	})
	require.Nil(t, alert(w.reader.Snapshot().Overview, "starts-missed/"+id), "nobody waits for the starts of a paused job")
}
