package client_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
)

// The letter that counts is the latest: its run knows the latest position.
func TestLatestDeadLetters(t *testing.T) {
	t.Parallel()
	require.Equal(t, []int64{2, 3, 4, 5}, numbers(client.LatestDeadLetters(someLetters())))
	require.Empty(t, client.LatestDeadLetters(nil))
}

// A queue holds a job with one spec: it cannot be given two works of one job at once.
func TestRetriedDeadLetters(t *testing.T) {
	t.Parallel()
	retried, left := client.RetriedDeadLetters(someLetters())
	require.Equal(t, []int64{2, 3, 5}, numbers(retried))
	require.Equal(t, []int64{4}, numbers(left))
}

func someLetters() []contract.DeadLetter {
	letter := func(sequence int64, jobID, hash string) contract.DeadLetter {
		return contract.DeadLetter{Sequence: sequence, JobID: jobID, DefinitionHash: hash, RunID: "r"}
	}
	return []contract.DeadLetter{
		letter(1, "a", "x"), letter(2, "b", "x"), letter(3, "a", "y"), letter(4, "a", "x"), letter(5, "c", "x"),
	}
}

func numbers(letters []contract.DeadLetter) []int64 {
	var all []int64
	for _, l := range letters {
		all = append(all, l.Sequence)
	}
	return all
}
