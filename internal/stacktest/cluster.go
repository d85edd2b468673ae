package stacktest

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"
)

// Nodes are NATS servers, one in each stack, that form a cluster.
type Nodes []*Stack

// StartNATSCluster starts three NATS servers that form a cluster. Each of them can be
// killed and restarted by itself. The cluster has no streams yet.
func StartNATSCluster(t testing.TB) Nodes {
	t.Helper()
	skipShort(t)
	routes := make([]string, 3)
	for i := range routes {
		routes[i] = FreePort(t)
	}
	nodes := make(Nodes, len(routes))
	for i := range nodes {
		own := append(append([]string{}, routes[i:]...), routes[:i]...)
		nodes[i] = StartOwn(t, "--only", "nats", "--nats-routes", strings.Join(own, ","))
	}
	return nodes
}

// URL names all nodes, for a client to find one that is there.
func (n Nodes) URL() string {
	urls := make([]string, len(n))
	for i, node := range n {
		urls[i] = node.NATS
	}
	return strings.Join(urls, ",")
}

// FreePort is one below those that stacks pick and those of outgoing connections, so
// that nobody else has it while its server is down.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(12_000+rand.IntN(6_000)))
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", address)
		if err != nil {
			continue
		}
		_ = listener.Close()
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no free port among 100 tried")
	return ""
}
