package check_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/soak/check"
	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// TestRecoveriesOfACluster: of each fault of a host the report tells the longest silence of a
// loop and of a queue, but no silence that has another reason.
func TestRecoveriesOfACluster(t *testing.T) {
	t.Parallel()
	fault := func(host string, from, to int) ledger.Fault {
		return ledger.Fault{Kind: ledger.FaultKill, Target: ledger.StackTarget, Host: host, From: time.Duration(from) * second, To: time.Duration(to) * second}
	}
	b := check.Book{
		Faults: []ledger.Fault{fault("temporal-1", 20, 22), fault("temporal-2", 60, 61)},
		Calls:  []ledger.Call{{At: 1, Acked: true, Queue: "q", Jobs: []string{"a", "b", "c"}}},
		Work: slices.Concat(
			call(looping("1", "loop/1", 0), 1, 20, ""), call(looping("2", "loop/2", 20), 30, 28, ledger.Done), call(looping("3", "loop/3", 48), 63, 40, ledger.Done),
			call(queued("4", "a", "run-a"), 1, 20, ""), call(queued("5", "b", "run-b"), 28, 1, ledger.Done),
			// Nothing waits between these two: the next item was put in long before, and ran.
			call(queued("6", "c", "run-c"), 30, 1, ledger.Final),
			call(queued("7", "c", "run-c2"), 100, 1, ledger.Done),
		),
	}
	require.Equal(t, [][]string{
		{"+20s", "temporal-1", "SIGKILL", "2s", "9s", "7s"},
		{"+1m0s", "temporal-2", "SIGKILL", "1s", "5s", "0s"},
	}, recoveries(t, b))

	b.Verbs = []ledger.Verb{{Name: "pause", Target: "l", From: 21 * second, To: 22 * second, OK: true}}
	require.Equal(t, "0s", recoveries(t, b)[0][4], "the loop was paused")
}

// recoveries are the rows of the table.
func recoveries(t *testing.T, b check.Book) (rows [][]string) {
	t.Helper()
	found, err := b.Check()
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, b.Write(&text, found))
	for line := range strings.Lines(text.String()) {
		if fields := strings.Fields(line); len(fields) > 0 && strings.HasPrefix(fields[0], "+") {
			rows = append(rows, fields)
		}
	}
	return rows
}
