package contract_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/contract"
)

// TestWhatRanIsCountedFromTheFirstItem: a young queue has not run for the whole hour.
func TestWhatRanIsCountedFromTheFirstItem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)
	ran := func(q *contract.QueueState, kept int, items ...contract.FinishedItem) {
		for _, item := range items {
			if item.Ran() {
				q.Pace.Count(item.Ended)
			}
			q.Recent = append(q.Recent, item)
		}
		q.Recent = q.Recent[max(0, len(q.Recent)-kept):]
	}
	item := func(ago, took time.Duration, status contract.ItemStatus) contract.FinishedItem {
		return contract.FinishedItem{Status: status, Started: now.Add(-ago), Ended: now.Add(took - ago)}
	}
	young := &contract.QueueState{}
	require.Zero(t, young.RanSince(now))
	ran(young, 20, item(70*time.Second, 20*time.Second, contract.ItemCompleted), item(50*time.Second, time.Second, contract.ItemSkipped),
		item(49*time.Second, 20*time.Second, contract.ItemFailed))
	require.Equal(t, now.Add(-70*time.Second), young.RanSince(now))
	require.Zero(t, young.RanSince(now.Add(2*time.Hour)), "none ran in the last hour")

	busy := &contract.QueueState{}
	for ago := 10 * time.Minute; ago > 0; ago -= 10 * time.Second {
		ran(busy, 20, item(ago, 10*time.Second, contract.ItemCompleted))
	}
	require.Equal(t, now.Add(-9*time.Minute-50*time.Second).Truncate(time.Minute), busy.RanSince(now), "it is none of the latest items")

	old := &contract.QueueState{}
	ran(old, 20, item(3*time.Hour, time.Minute, contract.ItemCompleted), item(30*time.Minute, time.Minute, contract.ItemCompleted))
	require.Equal(t, now.Add(-30*time.Minute), old.RanSince(now))
}
