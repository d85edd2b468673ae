package stack

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Command says what to run.
type Command struct {
	Path   string
	Args   []string
	Dir    string   // working directory; empty for this process's own
	Env    []string // NAME=value; nil for this process's own environment
	Stdout io.Writer
	Stderr io.Writer
	// Orphaned is what the kernel sends the process when this one dies
	// (Linux only). Defaults to SIGKILL.
	Orphaned syscall.Signal
}

// Process is a running child process. It is in a process group of its own, so
// that a Ctrl-C in the terminal reaches only its parent, which then ends it.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts the process.
func (c Command) Start() (*Process, error) {
	if c.Orphaned == 0 {
		c.Orphaned = syscall.SIGKILL
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdout, c.Stderr
	cmd.SysProcAttr = sysProcAttr(c.Orphaned)
	// A grandchild that keeps the output open must not keep Wait from returning.
	cmd.WaitDelay = 5 * time.Second
	if err := onSpawnThread(cmd.Start); err != nil {
		return nil, fmt.Errorf("%s does not start: %w", c.Path, err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the state is read from cmd.ProcessState
		close(p.done)
	}()
	return p, nil
}

// PID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended and its output is read.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode of the ended process; -1 while it runs and after a signal ended it.
func (p *Process) ExitCode() int {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// State tells how the process ended, as in "exit status 1" or "signal: killed".
func (p *Process) State() string {
	select {
	case <-p.done:
		return p.cmd.ProcessState.String()
	default:
		return "running"
	}
}

// Signal sends sig; to a process that has ended it does nothing.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process %d: %w", p.PID(), err)
	}
	return nil
}

// Stop asks the process to end (SIGTERM), kills it after the grace period and
// returns when it is gone. It reports whether the process ended by itself.
func (p *Process) Stop(grace time.Duration) bool {
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return true
	case <-time.After(grace):
		p.Kill()
		return false
	}
}

// Kill ends the process at once (SIGKILL) and returns when it is gone.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// spawnThread is the thread that starts all children: the kernel takes the end
// of the thread for the end of the parent, and this one lives as long as the
// process does.
var spawnThread = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func onSpawnThread(start func() error) error {
	result := make(chan error)
	spawnThread() <- func() { result <- start() }
	return <-result
}
