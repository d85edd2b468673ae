package stacktest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// startTimeout is generous: a stack is ready in a second on a quiet machine.
const startTimeout = 90 * time.Second

// Stack is a running embedded stack.
type Stack struct {
	stack.Info

	binary  string
	flags   []string
	log     *Output
	process *stack.Process // nil when it is another's to end
	others  []*Stack

	launched time.Time
}

// StartOwn starts a stack of the test's own, on free ports and with its data in
// a temporary folder, to be killed and restarted at will. The flags come after
// those. StartOwn skips the test with -short.
func StartOwn(t testing.TB, flags ...string) *Stack {
	t.Helper()
	skipShort(t)
	// Made before the cleanup is set up, so that it is removed after it.
	data := filepath.Join(t.TempDir(), "data")
	s := &Stack{
		binary: Binary(t, "devstack"),
		flags:  append([]string{"--data", data, "--free-ports"}, flags...),
		log:    &Output{},
	}
	dumpOnFailure(t, "devstack", s.log)
	t.Cleanup(func() {
		if s.process != nil {
			s.process.Kill() // Nobody reads its data any more.
		}
	})
	s.launch(t)
	return s
}

// Join has s name the servers of other stacks where it has none itself, so that a
// program of s finds them all. Each can then be killed by itself:
//
//	nats := stacktest.StartOwn(t, "--only", "nats")
//	st := stacktest.StartOwn(t, "--only", "temporal,s3,influx")
//	st.Join(nats)
func (s *Stack) Join(others ...*Stack) {
	s.others = append(s.others, others...)
	for _, other := range others {
		s.Info = s.With(other.Info)
	}
}

// Signal sends sig to the process: SIGSTOP and SIGCONT let its servers hang for a
// while.
func (s *Stack) Signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := s.process.Signal(sig); err != nil {
		t.Fatalf("devstack: %v", err)
	}
}

// Kill ends the stack as a crash would (SIGKILL).
func (s *Stack) Kill() { s.process.Kill() }

// Stop ends the stack (SIGTERM) and returns its exit code, or -1 when it had to
// be killed.
func (s *Stack) Stop() int {
	s.process.Stop(stack.StopGrace)
	return s.process.ExitCode()
}

// Restart starts the stack again with the same data on the same ports, after a
// Kill or a Stop; one that still runs is stopped first. The flags come after
// those of the first start.
func (s *Stack) Restart(t testing.TB, flags ...string) {
	t.Helper()
	s.process.Stop(stack.StopGrace)
	ports, err := s.PortFlags()
	if err != nil {
		t.Fatal(err)
	}
	s.flags = append(append(s.flags, ports...), flags...)
	s.launch(t)
}

// Log returns what the stack has written to its log.
func (s *Stack) Log() string { return s.log.String() }

func (s *Stack) launch(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	info, process, err := stack.Launch(ctx, s.binary, s.flags, s.log, memoryLimit)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range s.others {
		info = info.With(other.Info)
	}
	s.Info, s.process, s.launched = info, process, time.Now()
}

// memoryLimit is when a stack collects its garbage harder: it lives shortly, and may have
// twice the memory of one that stays.
const memoryLimit = "GOMEMLIMIT=768MiB"

func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the embedded stack; skipped with -short")
	}
}

// environment is that of the test run without settings of the variables that
// the stack sets. A program that is told of no server finds none: at the usual
// address there may be one at work.
func environment() []string {
	env := []string{"TEMPORAL_ADDRESS=127.0.0.1:1", "DENDRA_NATS_URL=nats://127.0.0.1:1"}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TEMPORAL_") && !strings.HasPrefix(v, "DENDRA_") {
			env = append(env, v)
		}
	}
	return env
}
