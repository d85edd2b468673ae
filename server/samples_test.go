package server_test

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
)

// TestChartsOutliveARestart: a server that starts shows what one before it has noted.
func TestChartsOutliveARestart(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t)
	workertest.Start(t, st, job.NewType("Charted", "charted", "Does nothing.", workertest.Noted[map[string]any](&workertest.Ledger{}, nil)))
	r := &replica{stack: st, address: "127.0.0.1:" + stacktest.FreePort(t)}
	// points are the steps that have a sample of the worker.
	points := func() (n int, err error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.address+"/samples?of=worker&span=hour&name=charted", nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		var answer struct {
			Series map[string][2][]*float64 `json:"series"`
		}
		require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
		for _, value := range answer.Series["charted"][1] {
			if value != nil {
				n++
			}
		}
		return n, response.Body.Close()
	}
	r.start(t)
	stacktest.WaitFor(t, "samples in two steps", func() (bool, error) {
		n, err := points()
		return n >= 2, err
	})
	r.process.Signal(os.Interrupt)
	require.Zero(t, r.process.Wait())
	r.start(t)
	r.waitReady(t)
	stacktest.WaitFor(t, "the samples of the server before", func() (bool, error) {
		n, err := points()
		require.LessOrEqual(t, n, 4, "there is no time for so many")
		return n >= 2, err
	})
}
