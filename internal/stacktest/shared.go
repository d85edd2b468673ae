package stacktest

import (
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// SharedVariable holds the ready line of the stack whose Temporal all packages of a
// test run share. Without it each package starts a Temporal server of its own.
const SharedVariable = "DENDRA_TEST_STACK"

// shared is the stack of all tests of the package.
var shared struct {
	sync.Mutex
	stack *Stack
}

// Start returns the stack that the tests of a package share, with a data folder
// that is removed at the end. The first caller starts it; it ends with the test
// binary. Start skips the test with -short.
//
// Packages of one test run share its Temporal server, in a namespace for each
// package. The other servers are the package's own: names of streams, buckets and
// databases are the same in all packages.
func Start(t testing.TB) *Stack {
	t.Helper()
	skipShort(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.stack == nil {
		shared.stack = launchShared(t)
	}
	s := shared.stack
	select {
	case <-s.process.Done():
		t.Fatalf("the shared stack is gone (%s):\n%s", s.process.State(), s.log)
	default:
	}
	dumpOnFailure(t, "devstack", s.log)
	return s
}

// StartNamespace returns the shared stack with a Temporal namespace of the test's
// own: workers, schedules and jobs of other tests are not in it. Its servers are not
// to be killed. StartNamespace skips the test with -short.
func StartNamespace(t testing.TB) *Stack {
	t.Helper()
	s := &Stack{Info: Start(t).Info, log: &output{}}
	s.Namespace = registerNamespace(t, s)
	t.Cleanup(func() { dropNamespace(t, s) })
	return s
}

func launchShared(t testing.TB) *Stack {
	t.Helper()
	s := &Stack{binary: Binary(t, "devstack"), flags: []string{"--ephemeral", "--free-ports"}, log: &output{}}
	line, found := os.LookupEnv(SharedVariable)
	if !found {
		s.launch(t)
		return s
	}
	var all stack.Info
	if err := json.Unmarshal([]byte(line), &all); err != nil {
		t.Fatalf("%s: %v", SharedVariable, err)
	}
	s.flags = append(s.flags, "--only", "nats,influx,s3,hobolink,ldmp,platform")
	s.launch(t)
	s.Info = s.With(all)
	s.Namespace = registerNamespace(t, s)
	return s
}

// soakVariable asks for the long form of tests: make soak-tests.
const soakVariable = "DENDRA_TEST_SOAK"

// Size is how much a test does: short in make test, long in make soak-tests.
func Size(short, long int) int {
	if os.Getenv(soakVariable) != "" {
		return long
	}
	return short
}
