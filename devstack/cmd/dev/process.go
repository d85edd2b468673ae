package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/devstack/internal/ports"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// process is a worker, or the server of the status page.
type process struct {
	name    string
	binary  string
	args    []string // the address follows
	address string   // host:port that it listens on
	port    int
}

// processes are started in this order, and stopped in the reverse one.
var processes = []struct {
	name, binary string
	args         []string
	port         int
}{
	{"worker backend", "backend", []string{"--health-address"}, 8181},
	{"worker extract", "extract", []string{"--health-address"}, 8182},
	{"worker load", "load", []string{"--health-address"}, 8183},
	{serveName, "starter", []string{"serve", "--listen"}, 8080},
}

// serveName is the name of the process that serves the status page.
const serveName = "status page"

// newProcesses returns the processes, or an error when one of their ports is taken. Until
// done is called, no stack takes their free ports.
func newProcesses(o options) (found []process, done func(), err error) {
	done = func() {}
	var reserved *ports.Reservation
	if o.freePorts {
		if reserved, err = reserveFree(o.dir); err != nil {
			return nil, done, err
		}
		done = reserved.Done
	}
	for n, h := range processes {
		port := h.port
		if reserved != nil {
			port = reserved.Port(n)
		}
		listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, done, fmt.Errorf("port %d of the %s is taken on 127.0.0.1: stop what listens there or choose free ports for all with make dev DEV='--free-ports'", port, h.name)
		}
		if err != nil {
			return nil, done, fmt.Errorf("port %d of the %s cannot be used: %w", port, h.name, err)
		}
		address := listener.Addr().String()
		if err := listener.Close(); err != nil {
			return nil, done, err
		}
		found = append(found, process{name: h.name, binary: filepath.Join(o.bin, h.binary), args: append(slices.Clone(h.args), address), address: address, port: port})
	}
	return found, done, nil
}

// A process that ends by itself is started again after a pause that doubles up to the
// longest one, and is the first one again after a good run.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
	goodRun      = 10 * time.Second
)

// supervise runs the process until ctx ends and then stops it.
func (p process) supervise(ctx context.Context, env []string, logs logs) {
	out := logs.out
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		began := time.Now()
		if p.runOnce(ctx, env, logs) {
			return
		}
		if time.Since(began) >= goodRun {
			pause = firstPause
		}
		out.say("%s starts again in %s", p.name, pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// runOnce runs the process until it ends and reports whether it was told to.
func (p process) runOnce(ctx context.Context, env []string, logs logs) bool {
	out := logs.out
	log, err := logs.open(strings.TrimPrefix(p.name, "worker "))
	if err != nil {
		out.say("%v", err)
		return false
	}
	defer log.close()
	started, err := stack.Command{
		Path: p.binary, Args: p.args, Env: env, Stdout: log, Stderr: log,
	}.Start()
	if err != nil {
		out.say("%s: %v", p.name, err)
		return false
	}
	out.say("%s started, process %d", p.name, started.PID())
	select {
	case <-started.Done():
		log.showEnd("%s ended (%s)", p.name, started.State())
		return false
	case <-ctx.Done():
		out.say("stopping %s", p.name)
		if !started.Stop(stopGrace) {
			out.say("%s did not stop within %s and was killed", p.name, stopGrace)
		}
		return true
	}
}
