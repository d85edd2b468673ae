package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// TestPasswordIsRotatedAwayAndBack: a client is refused several times, and goes on when
// its password holds again. What it was told is stored is there.
func TestPasswordIsRotatedAwayAndBack(t *testing.T) {
	t.Parallel()
	const login, other = "jobs:one", "jobs:two"
	st := stacktest.StartOwn(t, "--only", "nats", "--nats-login", login)
	client := connect(t, st.NATS)
	require.NotContains(t, client.Address(), "one")
	subject := pipeline.PrepSubject("live", "login")
	var ledger []int
	next := 0
	publish := func() error {
		next++
		_, err := client.Publish(t.Context(), []pipeline.Outgoing{{Subject: subject, ID: fmt.Sprint("login ", next), Body: fmt.Append(nil, next)}})
		if err == nil {
			ledger = append(ledger, next)
		}
		return err
	}
	require.NoError(t, publish())

	st.Restart(t, "--nats-login", other)
	refused := strings.Count(st.Log(), "authentication error")
	stacktest.WaitFor(t, "several log-ins to be refused", func() (bool, error) {
		return strings.Count(st.Log(), "authentication error") >= refused+4, nil
	})
	require.Equal(t, errclass.PipelineUnreachable, jobtest.FailureOf(t, publish()).Class)
	require.NoError(t, client.Alive())

	st.Restart(t, "--nats-login", login)
	stacktest.WaitFor(t, "the client to go on", func() (bool, error) {
		err := publish()
		return err == nil, err
	})
	consumer, err := client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{Name: "load-live-login", Subject: subject})
	require.NoError(t, err)
	messages, err := consumer.Fetch(t.Context(), len(ledger), 5*time.Second, nil)
	require.NoError(t, err)
	stored := numbers(t, messages)
	require.True(t, slices.IsSorted(stored))
	require.Equal(t, ledger, stored)
}
