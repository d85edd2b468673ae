package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// stackTimeout is how long the stack may take until it answers.
const stackTimeout = 2 * time.Minute

// stopGrace is how long a process may take to end by itself.
const stopGrace = 40 * time.Second

// env has the settings of the first start of the stack, whose ports it keeps.
func (s *soak) env() []string {
	if s.cluster != nil {
		return s.cluster.Env()
	}
	return append(append(os.Environ(), s.stackInfo.Env()...), "NO_COLOR=1")
}

// startStack starts Temporal on its data folder, on the same port each time, and returns when
// it answers.
func (s *soak) startStack(ctx context.Context) error {
	ports, err := s.stackInfo.PortFlags()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stackTimeout)
	defer cancel()
	flags := append([]string{"--data", filepath.Join(s.folder, "data"), "--only", "temporal", "--free-ports"}, ports...)
	info, process, err := stack.Launch(ctx, filepath.Join(s.bin, "devstack"), append(flags, s.stackArgs...), s.stackLog)
	if err != nil {
		return fmt.Errorf("%w; its log is in %s", err, s.stackLog.Name())
	}
	if s.stack = process; s.stackInfo.Temporal == "" {
		s.stackInfo = info
	}
	return nil
}

// worker is one of the places for worker processes.
type worker struct {
	name       string
	build      string // in a cluster
	generation int    // of the latest process
	started    int    // generation of process
	busy       bool   // a fault is at it
	process    *stack.Process
}

// id names the process in the ledger.
func (w *worker) id() string { return fmt.Sprintf("%s.%d", w.name, w.started) }

// startWorker starts a worker process in a place whose process is gone.
func (s *soak) startWorker(w *worker) error {
	w.generation++
	w.started = w.generation
	log, err := s.appendTo("worker-" + w.name + ".log")
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // The process has it.
	self, err := os.Executable()
	if err != nil {
		return err
	}
	command := stack.Command{
		Path: self, Args: []string{"--service", w.name, "--drain-timeout", "20s"}, Stdout: log, Stderr: log,
		Env: append(s.env(), folderVariable+"="+s.folder, processVariable+"="+w.id()),
	}
	if s.cluster != nil {
		command.Env = append(command.Env, "TEMPORAL_DEPLOYMENT_NAME="+deployment, "TEMPORAL_WORKER_BUILD_ID="+w.build)
		command = s.cluster.On(w.name, command)
	}
	w.process, err = command.Start()
	return err
}

// stopAll ends all children.
func (s *soak) stopAll() {
	var ended sync.WaitGroup
	for _, w := range s.workers {
		if w.process != nil {
			ended.Go(func() { w.process.Stop(stopGrace) })
		}
	}
	ended.Wait()
	if s.cluster != nil {
		if err := s.cluster.Stop(); err != nil {
			s.trouble("the cluster was not removed: %s", err)
		}
	}
	if s.stack != nil && !s.stack.Stop(stopGrace) {
		s.trouble("the stack did not end within %s of SIGTERM", stopGrace)
	}
}

// thaw sends SIGCONT after a time, or when the soak ends.
func (s *soak) thaw(ctx context.Context, p *stack.Process, after time.Duration) {
	s.signal(p, syscall.SIGSTOP)
	wait(ctx, after)
	s.signal(p, syscall.SIGCONT)
}

func (s *soak) signal(p *stack.Process, sig syscall.Signal) {
	if err := p.Signal(sig); err != nil {
		s.fail(err)
	}
}

// trouble writes down that something did not go on.
func (s *soak) trouble(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.say("trouble: %s", text)
	s.write(s.troubles, ledger.Trouble{At: ledger.Now(), Text: text})
}
