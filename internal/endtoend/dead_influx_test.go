package endtoend_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestALoaderWaitsForItsDatabase lets weather come while InfluxDB is down.
func TestALoaderWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	b := newBench(t, stacktest.StartOwn(t))
	database := refusing(t)
	l := newLocation(b, "downtime", stacktest.Random(t).Uint64())
	b.worker("extract", l.secret())
	b.worker("load")
	l.influx = "http://" + database.address()
	declare(b, l.jobs("PT6H", "PT6H", 50))

	extracted := b.trigger(l.extractJob())
	stacktest.WaitFor(t, "the loader to fail", func() (bool, error) {
		loop, err := b.loop(l.loadJob())
		return loop != nil && loop.Phase == contract.PhaseFailing && loop.ConsecutiveFailures >= 2, err
	})
	loop, err := b.loop(l.loadJob())
	require.NoError(t, err)
	require.Zero(t, loop.Totals["messages"])
	last := loop.Recent[len(loop.Recent)-1]
	require.Equal(t, "InfluxUnreachable", last.Class)
	require.Contains(t, last.Error, "location downtime: influx "+l.influx+": ")
	require.NotContains(t, last.Error, "\n")
	acknowledged, _ := l.progress()
	require.Zero(t, acknowledged)
	require.EqualValues(t, extracted.Output.Counts["prepared"], l.prepared())
	require.Contains(t, b.ok("jobs", "describe", l.loadJob()), "influx "+l.influx+": ")

	database.open(b.st.Influx)
	total := l.total()
	stacktest.WaitFor(t, "the weather in InfluxDB", func() (bool, error) {
		n, err := l.allPoints()
		return n == total, err
	})
	l.requireStored()
	stacktest.WaitFor(t, "the acknowledgement of all", func() (bool, error) {
		_, all := l.progress()
		return all, nil
	})
}
