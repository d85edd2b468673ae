package stacktest

import (
	"os"
	"sync"
	"testing"
)

// shared is the stack of all tests of the package.
var shared struct {
	sync.Mutex
	stack *Stack
}

// Start returns the stack that the tests of a package share, with a data folder
// that is removed at the end. The first caller starts it; it ends with the test
// binary. Start skips the test with -short.
//
// Packages have no server in common: what a package leaves in its Temporal costs memory
// and work until the server ends, and one server has one writer.
func Start(t testing.TB) *Stack {
	t.Helper()
	skipShort(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.stack == nil {
		shared.stack = &Stack{binary: Binary(t, "devstack"), flags: []string{"--ephemeral", "--free-ports", "--temporal-no-sync"}, log: &Output{}}
		shared.stack.launch(t)
	}
	s := shared.stack
	select {
	case <-s.process.Done():
		t.Fatalf("the shared stack is gone (%s):\n%s", s.process.State(), s.log)
	default:
	}
	dumpOnFailure(t, "devstack", s.log)
	t.Cleanup(func() { s.recordUsage(t) })
	return s
}

// StartNamespace returns the shared stack with a Temporal namespace of the test's
// own: workers, schedules and jobs of other tests are not in it. Its servers are not
// to be killed. StartNamespace skips the test with -short.
func StartNamespace(t testing.TB) *Stack {
	t.Helper()
	s := &Stack{Info: Start(t).Info, log: &Output{}}
	s.Namespace = registerNamespace(t, s)
	t.Cleanup(func() { dropNamespace(t, s) })
	return s
}

// Long reports whether DENDRA_TEST_SOAK asks for the long form of tests: make soak-tests.
func Long() bool { return os.Getenv("DENDRA_TEST_SOAK") != "" }

// Size is how much a test does: short in make test, long in make soak-tests.
func Size(short, long int) int {
	if Long() {
		return long
	}
	return short
}
