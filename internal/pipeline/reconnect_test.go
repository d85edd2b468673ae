package pipeline_test

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// connectionsTo counts the sockets that are connected to a server, 0 where that cannot
// be seen.
func connectionsTo(t *testing.T, address string) int {
	t.Helper()
	server, err := url.Parse(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(server.Port())
	require.NoError(t, err)
	table, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		return 0
	}
	n := 0
	for line := range strings.Lines(string(table)) {
		const remote, inode = 2, 9
		fields := strings.Fields(line)
		if strings.HasSuffix(fields[remote], fmt.Sprintf(":%04X", port)) && fields[inode] != "0" {
			n++
		}
	}
	return n
}

// TestReconnectsLeaveNothingBehind kills the server several times under a client that
// is used all the while: each time the client goes on, its consumer with it, and
// neither goroutines nor connections are left over.
func TestReconnectsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	goroutines := stacktest.Goroutines(t)
	st := stacktest.StartOwn(t, "--only", "nats")
	without := goroutines()
	client := st.Pipeline(t)
	subject := pipeline.PrepSubject("live", "reconnects")
	number := 0
	publish := func() error {
		_, err := client.Publish(t.Context(), []pipeline.Outgoing{{Subject: subject, ID: strconv.Itoa(number), Body: []byte(strconv.Itoa(number))}})
		return err
	}
	consumer, err := client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{Name: "load-live-reconnects", Subject: subject})
	require.NoError(t, err)
	use := func() error {
		if err := publish(); err != nil {
			return err
		}
		messages, err := consumer.Fetch(t.Context(), 1, 2*time.Second, nil)
		if err != nil || len(messages) == 0 {
			return err
		}
		got := numbers(t, messages)
		if err := consumer.Ack(t.Context(), messages); err != nil {
			return err
		}
		if got[0] < number {
			return nil // the killed server had not kept that it was acknowledged
		}
		require.Equal(t, []int{number}, got)
		if _, err := client.Rates().Now(t.Context()); err != nil {
			return err
		}
		number++
		return nil
	}
	require.NoError(t, use())
	with, connections := goroutines(), connectionsTo(t, st.NATS)
	for round := range 2 {
		st.Kill()
		_, err := client.Quarantine(t.Context(), []pipeline.Quarantined{refused("reconnects", subject, 1, []byte("x"))})
		require.Equal(t, errclass.PipelineUnreachable, jobtest.FailureOf(t, err).Class)
		_, _, err = client.Rates().Load(t.Context(), "key")
		require.Equal(t, errclass.PipelineUnreachable, jobtest.FailureOf(t, err).Class)
		st.Restart(t)
		want := round + 2
		stacktest.WaitFor(t, "the client to go on", func() (bool, error) {
			if number == want {
				return true, nil
			}
			err := use()
			return number == want, err
		})
	}
	stacktest.WaitFor(t, "nothing to wait", func() (bool, error) {
		info, err := client.JetStream().Consumer(t.Context(), pipeline.StreamPrepared, "load-live-reconnects")
		return err == nil && info.CachedInfo().NumPending == 0, err
	})
	stacktest.WaitFor(t, "as many goroutines and connections as before", func() (bool, error) {
		return goroutines() <= with+2 && connectionsTo(t, st.NATS) <= connections, nil
	})
	client.Close()
	stacktest.WaitFor(t, "the end of the client's goroutines", func() (bool, error) {
		return goroutines() <= without+2, nil
	})
}
