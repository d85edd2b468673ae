package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestPublisherOfOneOrganization: with the permissions that docs/trust.md has for a publisher
// it publishes raw messages of its organization, and nothing else.
func TestPublisherOfOneOrganization(t *testing.T) {
	t.Parallel()
	own := pipeline.RawSubject(pipeline.OperationLive, "meadow", "csi")
	config := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(config, []byte(`authorization { users = [
		{ user: jobs, password: one }
		{ user: meadow, password: two, permissions: { publish: "`+own+`", subscribe: "_INBOX.>" } }
	] }`), 0o600))
	st := stacktest.StartOwn(t, "--only", "nats", "--nats-config", config)
	_, address, _ := strings.Cut(st.NATS, "//")
	client := connect(t, "nats://jobs:one@"+address)
	require.NoError(t, client.Ready(t.Context()))

	refused := make(chan error, 16)
	conn, err := nats.Connect(address, nats.UserInfo("meadow", "two"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	ack, err := js.Publish(t.Context(), own, []byte("{}"))
	require.NoError(t, err)
	require.Equal(t, pipeline.StreamRaw, ack.Stream)
	_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: own, Header: nats.Header{pipeline.HeaderReplay: {"2026-01-01T00:00:00Z"}}, Data: []byte("[]")})
	require.NoError(t, err, "headers have no permissions")

	for _, subject := range []string{
		pipeline.RawSubject(pipeline.OperationLive, "ridge", "csi"), pipeline.PrepSubject(pipeline.OperationLive, "common1"),
		"dendra.quarantine.v1.load.live.common1.x", "dendra.changes.v1.job.x", "$KV.bookmarks.x", "$JS.API.STREAM.DELETE.RAW", "$JS.API.STREAM.INFO.RAW",
		"$JS.API.STREAM.MSG.GET.RAW", "$JS.API.DIRECT.GET.RAW", "$JS.API.CONSUMER.CREATE.RAW.x",
	} {
		require.NoError(t, conn.Publish(subject, []byte("{}")))
		require.NoError(t, conn.Flush())
		require.ErrorContains(t, <-refused, `Permissions Violation for Publish to "`+subject+`"`)
	}
	for _, subject := range []string{"dendra.raw.v1.>", ">", own} {
		_, err = conn.SubscribeSync(subject)
		require.NoError(t, err)
		require.NoError(t, conn.Flush())
		require.ErrorContains(t, <-refused, `Permissions Violation for Subscription to "`+subject+`"`)
	}
	stream, err := client.JetStream().Stream(t.Context(), pipeline.StreamRaw)
	require.NoError(t, err)
	require.EqualValues(t, 2, stream.CachedInfo().State.Msgs)
}
