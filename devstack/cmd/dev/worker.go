package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// worker is one of the worker binaries.
type worker struct {
	name   string
	path   string
	health string // host:port
}

// The ports of the workers' health endpoints.
var healthPorts = []struct {
	name string
	port int
}{
	{"backend", 8181},
	{"extract", 8182},
	{"load", 8183},
}

// newWorkers returns the workers in the order of their start, or an error when
// one of their ports is taken.
func newWorkers(o options) ([]worker, error) {
	var workers []worker
	for _, h := range healthPorts {
		port := h.port
		if o.freePorts {
			port = 0
		}
		listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("port %d of the health endpoint of worker %s is taken on 127.0.0.1: stop what listens there or choose free ports for all with make dev DEV='--free-ports'", port, h.name)
		}
		if err != nil {
			return nil, fmt.Errorf("port %d of the health endpoint of worker %s cannot be used: %w", port, h.name, err)
		}
		address := listener.Addr().String()
		if err := listener.Close(); err != nil {
			return nil, err
		}
		workers = append(workers, worker{name: h.name, path: filepath.Join(o.bin, h.name), health: address})
	}
	return workers, nil
}

// A worker that ends by itself is started again after a pause that doubles up to the
// longest one, and is the first one again after a good run.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
	goodRun      = 10 * time.Second
)

// supervise runs the worker until ctx ends and then stops it.
func (w worker) supervise(ctx context.Context, env []string, out *terminal) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		began := time.Now()
		if w.runOnce(ctx, env, out) {
			return
		}
		if time.Since(began) >= goodRun {
			pause = firstPause
		}
		out.say("worker %s starts again in %s", w.name, pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// runOnce runs the worker until it ends and reports whether it was told to.
func (w worker) runOnce(ctx context.Context, env []string, out *terminal) bool {
	log := out.prefixed(w.name)
	p, err := stack.Command{
		Path: w.path, Args: []string{"--health-address", w.health}, Env: env, Stdout: log, Stderr: log,
	}.Start()
	if err != nil {
		out.say("worker %s: %v", w.name, err)
		return false
	}
	out.say("worker %s started, process %d", w.name, p.PID())
	select {
	case <-p.Done():
		out.say("worker %s ended (%s)", w.name, p.State())
		return false
	case <-ctx.Done():
		out.say("stopping worker %s", w.name)
		if !p.Stop(stopGrace) {
			out.say("worker %s did not stop within %s and was killed", w.name, stopGrace)
		}
		return true
	}
}
