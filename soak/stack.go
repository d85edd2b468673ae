package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"example.org/soak/ledger"
)

// stackTimeout is how long the stack may take until it answers.
const stackTimeout = 2 * time.Minute

// stack is the server: bin/devstack on a data folder, on the same port each time.
type stack struct {
	process *process
	address string // host:port; set once
}

func (s *soak) env() []string {
	return []string{"TEMPORAL_ADDRESS=" + s.stack.address, "TEMPORAL_NAMESPACE=default", "NO_COLOR=1"}
}

// startStack starts the server and returns when it answers.
func (s *soak) startStack(ctx context.Context) error {
	port := "0"
	if s.stack.address != "" {
		_, known, err := net.SplitHostPort(s.stack.address)
		if err != nil {
			return err
		}
		port = known
	}
	log, err := s.appendTo("stack.log")
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // The process has it.
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // Only read.
	args := append([]string{"--data", filepath.Join(s.folder, "data"), "--only", "temporal", "--temporal-port", port}, s.stackArgs...)
	p, err := spawn(command{path: filepath.Join(s.bin, "devstack"), args: args, stdout: in, stderr: log})
	if err = errors.Join(err, in.Close()); err != nil {
		return err
	}
	s.stack.process = p
	ready := make(chan error, 1)
	var info struct{ Temporal string }
	go func() {
		line, err := bufio.NewReader(out).ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &info)
		}
		ready <- err
	}()
	timer := time.NewTimer(stackTimeout)
	defer timer.Stop()
	select {
	case err = <-ready:
		if err == nil && s.stack.address == "" {
			s.stack.address = info.Temporal
		}
		if err == nil {
			return nil
		}
		err = fmt.Errorf("the stack ended before it answered (%w); its log is in %s", err, log.Name())
	case <-timer.C:
		err = fmt.Errorf("the stack does not answer within %s; its log is in %s", stackTimeout, log.Name())
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.kill()
	return err
}

// worker is one of the places for worker processes.
type worker struct {
	name       string
	generation int
	busy       bool // a fault is at it
	process    *process
}

// id names the process in the ledger.
func (w *worker) id() string { return fmt.Sprintf("%s.%d", w.name, w.generation) }

// startWorker starts a worker process in a place whose process is gone.
func (s *soak) startWorker(w *worker) error {
	w.generation++
	log, err := s.appendTo("worker-" + w.name + ".log")
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // The process has it.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	w.process, err = spawn(command{
		path: self, args: []string{"--service", w.name, "--drain-timeout", "20s"}, stdout: log, stderr: log,
		env: append(s.env(), folderVariable+"="+s.folder, processVariable+"="+w.id()),
	})
	return err
}

// stopAll ends all children.
func (s *soak) stopAll() {
	var ended sync.WaitGroup
	for _, w := range s.workers {
		if w.process != nil {
			ended.Go(func() { w.process.stop(stopGrace) })
		}
	}
	ended.Wait()
	if s.stack.process != nil && !s.stack.process.stop(stopGrace) {
		s.trouble("the stack did not end within %s of SIGTERM", stopGrace)
	}
}

// thaw sends SIGCONT after a time, or when the soak ends.
func thaw(ctx context.Context, p *process, after time.Duration) {
	p.signal(syscall.SIGSTOP)
	wait(ctx, after)
	p.signal(syscall.SIGCONT)
}

// trouble writes down that something did not go on.
func (s *soak) trouble(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.say("trouble: %s", text)
	s.write(s.troubles, ledger.Trouble{At: ledger.Now(), Text: text})
}
