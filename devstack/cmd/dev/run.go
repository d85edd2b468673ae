package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/devstack/internal/lockfile"
	"github.com/dendrascience/dendra-jobs/devstack/internal/seed"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

const (
	startTimeout = time.Minute
	// stopGrace is what a worker gets to end its activities. Their own grace
	// periods are shorter.
	stopGrace = 45 * time.Second
)

// errShown ends the program after a failure that the terminal shows already.
var errShown = errors.New("the failure is shown above")

// run starts everything, waits for the end of ctx or of the servers, and stops
// everything in the reverse order. It returns errShown when the servers ended.
func run(ctx context.Context, o options, out *terminal) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	lock, err := lockfile.Take(lockPath(o.dir))
	var held *lockfile.HeldError
	switch {
	case errors.As(err, &held):
		return fmt.Errorf("the system of %s runs already (%s): stop that one or give another --dir", short(o.dir), held.Holder())
	case err != nil:
		return fmt.Errorf("%s cannot be locked: %w", o.dir, err)
	}
	defer func() {
		_ = os.Remove(boardFile(o.dir)) // There is none if nothing has started.
		_ = lock.Close()
	}()
	logs, err := newLogs(o.dir, out)
	if err != nil {
		return err
	}
	processes, portsTaken, err := newProcesses(o)
	defer portsTaken()
	if err != nil {
		return err
	}
	out.say("starting the servers: Temporal, Web UI, NATS, InfluxDB, S3, HOBOlink, LoggerNet, Platform API")
	serversLog, err := logs.open("servers")
	if err != nil {
		return err
	}
	defer serversLog.close()
	info, servers, err := startStack(ctx, o, serversLog)
	if ctx.Err() != nil {
		err = nil // told to stop while starting: no failure
	}
	if servers == nil {
		return err
	}
	stopStack := func() {
		out.say("stopping the servers")
		if !servers.Stop(stack.StopGrace) {
			out.say("the servers did not stop within %s and were killed; their data is safe", stack.StopGrace)
		}
	}
	if info.Platform.URL != "" {
		located := func(text string) string { return atPresent(info, text) }
		if err := seed.Fill(ctx, platform.Config{URL: info.Platform.URL, Token: info.Platform.Token}, located); err != nil && ctx.Err() == nil {
			out.say("the Platform API was not filled: %v", err)
		}
	}
	if o.freePorts {
		if err := keepPorts(o.dir, info, processes); err != nil {
			out.say("the ports are not kept for the next time: %v", err)
		}
	}
	envFile := filepath.Join(o.dir, "env")
	if err := writeEnv(envFile, o, info); err != nil {
		stopStack()
		return err
	}

	env := append(withoutTemporal(os.Environ()), info.Env()...)
	file, err := toApply(o, info)
	if err != nil {
		stopStack()
		return err
	}
	for n := range processes {
		if processes[n].name == serveName {
			processes[n].args = append(processes[n].args, "--file", file)
		}
	}
	compared := make(chan bool, 1) // The first time is shown.
	logs.jobsFile = func(applied bool) {
		select {
		case compared <- applied:
		default:
		}
	}
	// The workers outlive ctx: they are stopped one after the other, below, or all
	// at once when there are no servers left to hand their work back to.
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	running, stopWorkers := superviseAll(working, processes, env, logs)
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var following sync.WaitGroup
	following.Go(func() { followJobs(watching, o, info, out) })

	following.Go(func() {
		select {
		case applied := <-compared:
			out.board(info, o, processes, envFile, describeJobs(o, file, applied))
		case <-watching.Done():
		}
	})

	var died error
	select {
	case <-ctx.Done():
		out.say("stopping; Ctrl-C again stops without waiting")
	case <-servers.Done():
		serversLog.showEnd("the servers ended (%s)", servers.State())
		died = errShown
		stopWorking()
	}
	stopWatching()
	following.Wait()
	stopWorkers()
	running.Wait()
	if died == nil {
		stopStack()
	}
	out.say("stopped")
	return died
}

// lockPath is the file that a running system of the folder has locked.
func lockPath(dir string) string { return filepath.Join(dir, "dev.lock") }

func startStack(ctx context.Context, o options, log *programLog) (stack.Info, *stack.Process, error) {
	flags := []string{"--data", filepath.Join(o.dir, "data")}
	if o.freePorts {
		flags = append(flags, freePortFlags(o.dir)...)
	}
	flags = append(flags, o.devstack...)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// The error that Launch returns already ends with what the stack said.
	log.hold()
	info, p, err := stack.Launch(ctx, filepath.Join(o.bin, "devstack"), flags, log)
	var failed *stack.StartError
	if errors.As(err, &failed) {
		// One sentence of the stack says what is wrong without ours around it.
		if said, ok := strings.CutPrefix(failed.Said, "devstack: "); ok && !strings.Contains(said, "\n") {
			return info, nil, errors.New(said)
		}
	}
	if err != nil {
		return info, nil, err
	}
	log.release()
	return info, p, nil
}

// superviseAll keeps the processes running. The returned function stops them, the
// last one first.
func superviseAll(ctx context.Context, processes []process, env []string, logs logs) (*sync.WaitGroup, func()) {
	var (
		running sync.WaitGroup
		stops   []func()
	)
	for _, p := range processes {
		ctx, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		running.Go(func() {
			defer close(ended)
			p.supervise(ctx, env, logs)
		})
		stops = append(stops, func() { stop(); <-ended })
	}
	return &running, func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
}

// writeEnv writes the settings for a second terminal, `. .dev/env`: where the
// servers are, the jobs file if a copy is applied, and the folder of the binaries first on
// PATH.
func writeEnv(path string, o options, info stack.Info) error {
	settings := info.Env()
	if applied := appliedFile(o, info); applied != o.jobs {
		whole, err := filepath.Abs(applied)
		if err != nil {
			return err
		}
		settings = append(settings, "DENDRA_JOBS_FILE="+whole)
	}
	var b strings.Builder
	for _, v := range settings {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			return errors.New("setting without a value: " + v)
		}
		fmt.Fprintf(&b, "export %s=%s\n", name, quoted(value))
	}
	fmt.Fprintf(&b, "export PATH=%s:\"$PATH\"\n", quoted(o.bin))
	return os.WriteFile(path, []byte(b.String()), 0o600)
}

// quoted is value as one word of a shell.
func quoted(value string) string { return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'" }

// withoutTemporal drops the Temporal settings of the terminal, which may say
// how to reach another cluster.
func withoutTemporal(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "TEMPORAL_") })
}
