package workers_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
)

// TestReadinessNamesTheServerThatIsAway freezes Temporal: connections stand, and polls with them.
// The worker says that Temporal is away, and is no reason for a restart. Asked to stop, with a run
// at work that nobody can take over, it ends within its drain timeout.
func TestReadinessNamesTheServerThatIsAway(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal")
	const drain = 5 * time.Second
	w := startWorker(t, st, "--health-address", "127.0.0.1:0", "--drain-timeout", drain.String())
	c := newControl(t, st)
	ledger := workertest.NewBook(t)
	startRun(t, c, newJob(t, "RecordSteps", "a", oneShot(), recordSpec{Ledger: string(ledger), Steps: 2, Gate: workertest.NewGate(t)}))
	ledger.WaitFor(t, "step", 1)
	readyz := healthAddress(w)
	code, _ := getHealth(t, readyz)
	require.Equal(t, http.StatusOK, code)

	before := time.Now()
	st.Signal(t, syscall.SIGSTOP)
	stacktest.WaitFor(t, "a worker that is not ready", func() (bool, error) {
		code, health := getHealth(t, readyz)
		if code == http.StatusOK {
			return false, nil
		}
		require.Equal(t, "serving", health.State)
		require.Len(t, health.Away, 1)
		require.Equal(t, "Temporal", health.Away[0].Name)
		require.Less(t, health.Away[0].Since.Sub(before), time.Minute)
		require.NotEmpty(t, health.Away[0].Error)
		require.False(t, health.RestartNeeded)
		return true, nil
	})
	st.Signal(t, syscall.SIGCONT)
	stacktest.WaitFor(t, "a worker that is ready", func() (bool, error) {
		code, _ := getHealth(t, readyz)
		return code == http.StatusOK, nil
	})
	st.Signal(t, syscall.SIGSTOP)
	w.Signal(syscall.SIGTERM)
	began := time.Now()
	require.Zero(t, w.Wait())
	t.Logf("the worker ended %s after SIGTERM; its drain timeout is %s", time.Since(began).Round(time.Millisecond), drain)
	st.Signal(t, syscall.SIGCONT)
}
