package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.org/soak/ledger"
)

// stopGrace is how long a process may take to end by itself.
const stopGrace = 40 * time.Second

// command says what to run.
type command struct {
	path           string
	args, env      []string
	stdout, stderr io.Writer
}

// process is a child process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// spawn starts a process. The kernel takes the end of the thread that started a
// child for the end of the parent, so one thread that stays starts all.
func spawn(c command) (*process, error) {
	cmd := exec.Command(c.path, c.args...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = c.stdout, c.stderr, sysProcAttr()
	cmd.WaitDelay = 5 * time.Second
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s does not start: %w", c.path, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // The state is read from cmd.ProcessState.
		close(p.done)
	}()
	return p, nil
}

var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// signal sends a signal; a process that has ended does not mind.
func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// kill ends the process at once and returns when it is gone.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// stop asks the process to end, one that is frozen too, and kills it if it does not.
// It reports whether it ended by itself.
func (p *process) stop(grace time.Duration) bool {
	p.signal(syscall.SIGCONT)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return true
	case <-time.After(grace):
		p.kill()
		return false
	}
}

// ended says that the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// wait waits until a time has passed, and reports whether it has.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// between draws a duration.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)+1))
}

// appendTo opens a log.
func (s *soak) appendTo(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(s.folder, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// cliTimeout bounds a command of the starter.
const cliTimeout = 30 * time.Second

// errKilled is the error of a command that was killed on purpose.
var errKilled = errors.New("killed")

// starter runs a command of the starter and gives what it wrote to standard output.
// With killAfter it is killed after that time, unless it has ended.
func (s *soak) starter(ctx context.Context, killAfter time.Duration, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	p, err := spawn(command{
		path: filepath.Join(s.bin, "starter"), args: append(args, "-o", "json", "--timeout", "20s"), env: s.env(), stdout: &stdout, stderr: &stderr,
	})
	if err != nil {
		return nil, err
	}
	limit := cliTimeout
	if killAfter > 0 {
		limit = killAfter
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	began := ledger.Now()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return nil, ctx.Err()
	case <-timer.C:
		p.kill()
		if killAfter > 0 {
			s.write(s.faults, ledger.Fault{Kind: ledger.FaultKill, Target: ledger.StarterTarget, From: began + limit, To: ledger.Now()})
			return nil, errKilled
		}
		return nil, fmt.Errorf("starter %v did not end within %s", args, cliTimeout)
	}
	if !p.cmd.ProcessState.Success() {
		return nil, fmt.Errorf("starter %v: %s: %s", args, p.cmd.ProcessState, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
