package pipeline_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// sockets is how many sockets the process has, 0 where that cannot be seen.
func sockets() int {
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return 0
	}
	n := 0
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:") {
			n++
		}
	}
	return n
}

// TestReconnectsLeaveNothingBehind kills the server several times under a client that
// is used all the while: each time the client goes on, its consumer with it, and
// neither goroutines nor connections are left over.
func TestReconnectsLeaveNothingBehind(t *testing.T) {
	st := stacktest.StartOwn(t, "--only", "nats")
	goroutinesWithout := runtime.NumGoroutine()
	client, err := pipeline.Connect(t.Context(), st.NATS)
	require.NoError(t, err)
	defer client.Close()
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
	goroutines, connections := runtime.NumGoroutine(), sockets()
	for round := range 2 {
		st.Kill()
		_, err := client.Quarantine(t.Context(), []pipeline.Quarantined{refused("reconnects", subject, 1, []byte("x"))})
		require.Equal(t, pipeline.ClassUnreachable, classOf(t, err))
		_, _, err = client.Rates().Load(t.Context(), "key")
		require.Equal(t, pipeline.ClassUnreachable, classOf(t, err))
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
		return runtime.NumGoroutine() <= goroutines+2 && sockets() <= connections, nil
	})
	client.Close()
	stacktest.WaitFor(t, "the end of the client's goroutines", func() (bool, error) {
		return runtime.NumGoroutine() <= goroutinesWithout+2, nil
	})
}
