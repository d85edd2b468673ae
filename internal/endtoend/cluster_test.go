package endtoend_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
)

// TestLoggersOnANATSCluster has streams with three replicas. Each of the three NATS
// servers is killed, one at a time, while records are read, and in the end the
// databases, the raw stream and the archive are compared with the LoggerNet server's
// ledger: what it was told is stored has to be there.
func TestLoggersOnANATSCluster(t *testing.T) {
	t.Parallel()
	if !stacktest.Long() {
		t.Skip("make soak-tests runs it")
	}
	nodes := stacktest.StartNATSCluster(t)
	st := stacktest.StartOwn(t, "--only", "temporal,s3,influx")
	st.NATS = nodes.URL()
	random := stacktest.Random(t)
	streams, err := pipeline.Connect(t.Context(), st.NATS, pipeline.WithStreams(pipeline.StreamSettings{Replicas: len(nodes)}))
	require.NoError(t, err)
	defer streams.Close()
	stacktest.WaitFor(t, "the streams", func() (bool, error) {
		err := streams.Ready(t.Context())
		return err == nil, err
	})
	b := newBench(t, st)
	l := newLoggers(b, "replicated", 5, 12*time.Hour, random)
	b.worker("extract")
	b.worker("load")
	declare(b, l.jobs())

	c := newChaos(t, random) // nothing but what is killed here
	step := l.to.Sub(l.from) / time.Duration(len(nodes)+1)
	records := int64(step/recordInterval) * 4 * 5
	for _, i := range random.Perm(len(nodes)) {
		l.pass(step)
		before := l.acknowledged()
		c.require("records to be read", func() bool { return l.acknowledged() > before })
		nodes[i].Kill()
		c.tell("server %d is killed", i)
		l.pass(step / 2)
		before = l.acknowledged()
		c.require("records to be read without server", func() bool { return l.acknowledged()-before > records/4 })
		nodes[i].Restart(t)
		c.tell("server %d is back", i)
		c.require("all replicas to be current", func() bool { return whole(t, streams.JetStream(), len(nodes)) })
		c.tell("server %d has everything", i)
	}
	l.pass(l.to.Sub(l.from))

	l.requireRead(c)
	l.requireDrained(c)
	points := l.requireLoaded()
	raw := l.requireRaw()
	l.requireArchived()
	t.Logf("%d points of %d raw messages", points, raw)
}

// whole reports whether every stream has all its replicas, and each of them everything.
func whole(t *testing.T, js jetstream.JetStream, replicas int) bool {
	t.Helper()
	list := js.ListStreams(t.Context())
	streams := 0
	for info := range list.Info() {
		if info.Cluster == nil || info.Cluster.Leader == "" || len(info.Cluster.Replicas) != replicas-1 {
			return false
		}
		for _, replica := range info.Cluster.Replicas {
			if !replica.Current || replica.Offline {
				return false
			}
		}
		streams++
	}
	return list.Err() == nil && streams > 0
}
