package stacktest

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// Program is a binary of the repository to run.
type Program struct {
	Name string // bin/<Name>, unless Path is set
	Path string // of the program
	Args []string
	Env  []string // NAME=value, on top of the settings of the stack
	Dir  string   // working directory; empty for the test's own
	// Shared programs are not stopped at the end of the test that starts them but
	// live as long as the test binary, as the stack of Start does.
	Shared bool
}

// Process is a running program. Its output is shown when the test fails.
type Process struct {
	t       testing.TB
	program string
	process *stack.Process
	output  *Output
}

// StartProcess runs bin/<name> with the settings of the stack. The program is
// stopped at the end of the test.
func StartProcess(t testing.TB, s *Stack, name string, args ...string) *Process {
	t.Helper()
	return StartProgram(t, s, Program{Name: name, Args: args})
}

// StartProgram is StartProcess with an environment or a folder of its own. A
// nil stack runs the program without one.
func StartProgram(t testing.TB, s *Stack, program Program) *Process {
	t.Helper()
	env := environment()
	if s != nil {
		env = append(env, s.Env()...)
	}
	p := &Process{t: t, program: program.Name, output: &Output{}}
	path := program.Path
	if path == "" {
		path = Binary(t, program.Name)
	}
	started, err := stack.Command{
		Path:   path,
		Args:   program.Args,
		Dir:    program.Dir,
		Env:    append(env, program.Env...),
		Stdout: p.output,
		Stderr: p.output,
	}.Start()
	if err != nil {
		t.Fatal(err)
	}
	p.process = started
	dumpOnFailure(t, program.Name, p.output)
	if !program.Shared {
		t.Cleanup(func() { p.process.Stop(stack.StopGrace) })
	}
	return p
}

// PID of the process.
func (p *Process) PID() int { return p.process.PID() }

// Output returns what the process has written to its standard output and
// standard error.
func (p *Process) Output() string { return p.output.String() }

// ShowOnFailure has the output of a shared program shown when t fails as well.
func (p *Process) ShowOnFailure(t testing.TB) { dumpOnFailure(t, p.program, p.output) }

// Kill ends the process as a crash would (SIGKILL) and waits until it is gone.
func (p *Process) Kill() { p.process.Kill() }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool { return p.process.State() != "running" }

// Signal sends sig; a process that has ended does not mind.
func (p *Process) Signal(sig os.Signal) {
	p.t.Helper()
	if err := p.process.Signal(sig); err != nil {
		p.t.Fatalf("%s: %v", p.program, err)
	}
}

// Wait returns the exit code of the process, -1 when a signal ended it, and
// fails the test when it does not end within three minutes.
func (p *Process) Wait() int {
	p.t.Helper()
	select {
	case <-p.process.Done():
		return p.process.ExitCode()
	case <-time.After(waitTimeout):
		p.t.Fatalf("%s (process %d) did not end within %s", p.program, p.PID(), waitTimeout)
		return -1
	}
}

// WaitOutput waits until the output holds text and fails the test when the
// process ends, or three minutes pass, without it.
func (p *Process) WaitOutput(text string) {
	p.t.Helper()
	deadline := time.After(waitTimeout)
	tick := time.NewTicker(waitFirst)
	defer tick.Stop()
	for {
		// The order matters: an ended process writes no more.
		ended := p.Ended()
		if strings.Contains(p.Output(), text) {
			return
		}
		if ended {
			p.t.Fatalf("%s ended (%s) without writing %q", p.program, p.process.State(), text)
		}
		select {
		case <-deadline:
			p.t.Fatalf("%s did not write %q within %s", p.program, text, waitTimeout)
		case <-p.process.Done():
		case <-tick.C:
		}
	}
}
