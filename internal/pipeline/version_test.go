package pipeline_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// serverOfVersion is the URL of a server that says it has another version, and is
// otherwise the one at the given URL.
func serverOfVersion(t *testing.T, version, server string) string {
	t.Helper()
	return startProxy(t, server, proxy{fromServer: func(line string) string { return withVersion(line, version) }})
}

// serverBeforeReset is the URL of a server that has an older version, and does not know
// the call that resets a consumer. It is otherwise the one at the given URL.
func serverBeforeReset(t *testing.T, version, server string) string {
	t.Helper()
	return startProxy(t, server, proxy{
		fromServer: func(line string) string { return withVersion(line, version) },
		fromClient: func(line string) string {
			return strings.Replace(line, "PUB $JS.API.CONSUMER.RESET.", "PUB nobody.listens.", 1)
		},
	})
}

var versionOfServer = regexp.MustCompile(`"version":"[^"]*"`)

// withVersion changes the version in what a server says of itself, and nothing else.
func withVersion(line, version string) string {
	if !strings.HasPrefix(line, "INFO {") {
		return line
	}
	return versionOfServer.ReplaceAllString(line, `"version":"`+version+`"`)
}

// TestServerThatIsTooOld: a server that cannot reset a consumer is refused by a
// sentence before anything is taken from it, and by whoever only looks as well.
func TestServerThatIsTooOld(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "nats")
	for _, version := range []string{"2.9.25", "2.10.29", "2.13.0-RC.1"} {
		old := serverOfVersion(t, version, st.NATS)
		client, err := pipeline.Connect(t.Context(), old)
		require.NoError(t, err)
		t.Cleanup(client.Close)
		_, consumerErr := client.Consumer(t.Context(), pipeline.StreamPrepared, pipeline.ConsumerOptions{
			Name: "load-live-old", Subject: pipeline.PrepSubject("live", "old"),
		})
		_, loadsErr := client.Loads(t.Context())
		for _, err := range []error{client.Ready(t.Context()), consumerErr, loadsErr} {
			require.Equal(t, errclass.NATSTooOld, jobtest.FailureOf(t, err).Class)
			require.EqualError(t, err, old+" has version "+version+", which cannot reset a consumer: it has to be 2.14 or newer")
		}
	}
	for _, version := range []string{"2.14.0", "2.15.2", "3.0.0-dev", "edge"} {
		connect(t, serverOfVersion(t, version, st.NATS))
	}
}

// TestCrashAgainstServerThatIsTooOld: a consumer that crashed is started against a server
// that lacks the call, which must not give it anything, and then against a new one.
func TestCrashAgainstServerThatIsTooOld(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	client := connect(t, st.NATS)
	const name, published = "load-live-crashold", 10
	options := pipeline.ConsumerOptions{Name: name, Subject: pipeline.PrepSubject("live", "crashold"), InOrder: true}
	var messages []pipeline.Outgoing
	var ledger []int
	for n := range published {
		messages = append(messages, pipeline.Outgoing{Subject: options.Subject, Body: fmt.Append(nil, n)})
		ledger = append(ledger, n)
	}
	_, err := client.Publish(t.Context(), messages)
	require.NoError(t, err)
	crashing, err := client.Consumer(t.Context(), pipeline.StreamPrepared, options)
	require.NoError(t, err)
	taken, err := crashing.Fetch(t.Context(), 6, 5*time.Second, nil)
	require.NoError(t, err)
	require.Len(t, taken, 6)
	require.NoError(t, crashing.Ack(t.Context(), taken[:2]))
	consumed := numbers(t, taken[:2])
	position := func() any {
		consumer, err := client.JetStream().Consumer(t.Context(), pipeline.StreamPrepared, name)
		require.NoError(t, err)
		info := consumer.CachedInfo()
		return []any{info.Delivered.Consumer, info.AckFloor.Stream, info.NumAckPending, info.NumPending}
	}
	before := position()

	old := serverBeforeReset(t, "2.12.6", st.NATS)
	nc, err := nats.Connect(old)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	_, err = nc.Request("$JS.API.CONSUMER.RESET."+pipeline.StreamPrepared+"."+name, nil, time.Minute)
	require.ErrorIs(t, err, nats.ErrNoResponders, "the server has the call")
	restarted, err := pipeline.Connect(t.Context(), old)
	require.NoError(t, err)
	t.Cleanup(restarted.Close)
	_, err = restarted.Consumer(t.Context(), pipeline.StreamPrepared, options)
	require.Equal(t, errclass.NATSTooOld, jobtest.FailureOf(t, err).Class)
	require.EqualError(t, err, old+" has version 2.12.6, which cannot reset a consumer: it has to be 2.14 or newer")
	require.Equal(t, before, position(), "something was taken")

	consumer, err := connect(t, st.NATS).Consumer(t.Context(), pipeline.StreamPrepared, options)
	require.NoError(t, err)
	rewound, err := consumer.Rewind(t.Context())
	require.NoError(t, err)
	require.Equal(t, 4, rewound)
	for len(consumed) < published {
		messages, rewound, err := consumer.FetchInOrder(t.Context(), published-len(consumed), 5*time.Second, nil)
		require.NoError(t, err)
		require.Zero(t, rewound)
		require.NotEmpty(t, messages)
		require.NoError(t, consumer.Ack(t.Context(), messages))
		consumed = append(consumed, numbers(t, messages)...)
	}
	require.Equal(t, ledger, consumed)
	more, err := consumer.Fetch(t.Context(), 1, pipeline.MinFetch, nil)
	require.NoError(t, err)
	require.Empty(t, more)
}
