package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workflows"
)

// The letter that counts is the one whose run knows the latest position.
func TestLatestLetters(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int64{2, 3, 9, 6, 7, 8, 10}, numbers(client.LatestLetters(someLetters())))
	require.Empty(t, client.LatestLetters(nil))
}

// A queue holds a job with one spec: it cannot be given two works of one job at once.
func TestRetriedLetters(t *testing.T) {
	t.Parallel()
	retried, left := client.RetriedLetters(someLetters())
	require.Equal(t, []int64{2, 3, 6, 7, 8}, numbers(retried))
	require.Equal(t, []int64{9, 10}, numbers(left))
}

func someLetters() []workflows.DeadLetter {
	letter := func(sequence int64, jobID, hash, run string) workflows.DeadLetter {
		l := workflows.DeadLetter{Sequence: sequence, JobID: jobID, SpecHash: hash, RunID: run}
		if run == "" {
			l.Job = &job.Job{ID: jobID}
		}
		return l
	}
	return []workflows.DeadLetter{
		letter(1, "a", "x", "r1"), letter(2, "b", "x", "r2"), letter(3, "a", "y", "r3"),
		letter(9, "a", "x", "r9"), letter(5, "a", "x", ""), // Could not be started.
		letter(6, "c", "x", ""), letter(7, "c", "x", ""), // No run knows them.
		letter(8, "d", "", "r8"), letter(10, "d", "", "r10"), // Of an earlier version.
	}
}

func numbers(letters []workflows.DeadLetter) []int64 {
	var all []int64
	for _, l := range letters {
		all = append(all, l.Sequence)
	}
	return all
}
