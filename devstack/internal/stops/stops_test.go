package stops_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/devstack/internal/stops"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// A server that hangs when it is stopped holds up neither the other servers nor the
// end of the process. The reason of a failed start is told before the stops.
func TestStopThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var events []string
		note := func(event string) { events = append(events, event) }
		over := make(chan struct{})
		defer close(over)
		var servers stops.Servers
		servers.Add("NATS", func() error { note("NATS is stopped"); return nil })
		servers.Add("Temporal", func() error { <-over; return nil })
		servers.Add("Web UI", func() error { note("Web UI is stopped"); return errors.New("broken pipe") })
		well := stops.InTurn(func(err error) { note(err.Error()) },
			func() error { return errors.New("Web UI did not start: no space left") },
			servers.Stop,
			func() error { note("the folder is closed"); return nil },
		)

		require.False(t, well, "the process ends with an error")
		require.Equal(t, []string{
			"Web UI did not start: no space left",
			"Web UI is stopped",
			"NATS is stopped",
			"Web UI did not stop cleanly: broken pipe\nTemporal did not stop in time, and ends with the process",
			"the folder is closed",
		}, events)
	})
}

// All stops together end before the process is killed for taking too long.
func TestStopsThatAllHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		defer close(over)
		names := []string{"NATS", "InfluxDB", "S3 gateway", "Temporal", "Web UI"}
		var servers stops.Servers
		for _, name := range names {
			servers.Add(name, func() error { <-over; return nil })
		}
		began := time.Now()
		err := servers.Stop()
		require.Less(t, time.Since(began), stack.StopGrace)
		for _, name := range names {
			require.ErrorContains(t, err, name+" did not stop in time")
		}
	})
}
