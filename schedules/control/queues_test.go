package control_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/schedules/control"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// The letter that counts is the one whose run knows the latest position.
func TestLatestLetters(t *testing.T) {
	letter := func(sequence int64, jobID, hash, run string) workflows.DeadLetter {
		l := workflows.DeadLetter{Sequence: sequence, JobID: jobID, SpecHash: hash, RunID: run}
		if run == "" {
			l.Job = &job.Job{ID: jobID}
		}
		return l
	}
	var got []int64
	for _, l := range control.LatestLetters([]workflows.DeadLetter{
		letter(1, "a", "x", "r1"), letter(2, "b", "x", "r2"), letter(3, "a", "y", "r3"),
		letter(9, "a", "x", "r9"), letter(5, "a", "x", ""), // Could not be started.
		letter(6, "c", "x", ""), letter(7, "c", "x", ""), // No run knows them.
		letter(8, "d", "", "r8"), letter(10, "d", "", "r10"), // Of an earlier version.
	}) {
		got = append(got, l.Sequence)
	}
	require.Equal(t, []int64{2, 3, 9, 6, 7, 8, 10}, got)
	require.Empty(t, control.LatestLetters(nil))
}
