package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/grpcproxy"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/internal/stack"
)

// plan measures what plan and apply of bin/starter cost: their time, the memory
// of their process, and their calls to Temporal. Every set of jobs is worked
// through twice, each time on a stack of its own: once undisturbed, for time and
// memory, and once through a proxy that counts the calls.
func plan(ctx context.Context, args []string, out io.Writer) error {
	fs := flag.NewFlagSet("bench plan", flag.ContinueOnError)
	bin := fs.String("bin", "bin", "`folder` of the devstack, starter and load binaries")
	recurring := fs.Int("recurring", 1000, "recurring jobs of the set that is worked through")
	continuous := fs.Int("continuous", 100, "continuous jobs of that set")
	sizes := fs.String("sizes", "100,300,1000,2000", "numbers of jobs, one in eleven continuous, to show how cost grows; \"\" for none")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *recurring < 2*few || *continuous < 2*few || fs.NArg() > 0 {
		return fmt.Errorf("bench plan takes at least %d jobs of each mode, and no arguments", 2*few)
	}
	folder, err := filepath.Abs(*bin)
	if err != nil {
		return err
	}
	b := &planBench{bin: folder, out: out}
	steps, err := b.both(ctx, jobSet{recurring: *recurring, continuous: *continuous}, true)
	if err != nil {
		return err
	}
	var growth []grown
	for _, text := range strings.FieldsFunc(*sizes, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 11 {
			return fmt.Errorf("--sizes: %q is not a number of at least 11", text)
		}
		set := jobSet{recurring: n - n/11, continuous: n / 11}
		steps, err := b.both(ctx, set, false)
		if err != nil {
			return err
		}
		growth = append(growth, grown{jobs: n, steps: steps})
	}
	return writePlanTables(out, steps, growth)
}

// few is how many jobs change, or go, in the steps that touch a few.
const few = 10

// step is one run of the starter.
type step struct {
	name string
	took time.Duration
	peak int64 // resident memory of the process, in bytes
	// calls by RPC method
	calls map[string]int
}

// planBench runs the starter on stacks of its own.
type planBench struct {
	bin string
	out io.Writer
}

// both works through a set undisturbed and counted, and joins what they gave.
func (b *planBench) both(ctx context.Context, set jobSet, whole bool) ([]step, error) {
	steps, err := b.sequence(ctx, set, whole, false)
	if err != nil {
		return nil, err
	}
	counted, err := b.sequence(ctx, set, whole, true)
	if err != nil {
		return nil, err
	}
	for n := range steps {
		steps[n].calls = counted[n].calls
	}
	return steps, nil
}

// sequence works through a set on a fresh stack; whole includes the steps that
// change and remove jobs.
func (b *planBench) sequence(ctx context.Context, set jobSet, whole, count bool) (steps []step, err error) {
	start, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	info, process, err := stack.Launch(start, filepath.Join(b.bin, "devstack"),
		[]string{"--ephemeral", "--free-ports"}, io.Discard)
	if err != nil {
		return nil, err
	}
	defer process.Stop(stack.StopGrace)
	// Updates and stops of continuous jobs are answered by their worker.
	worker, err := stack.Command{Path: filepath.Join(b.bin, "load"), Env: append(os.Environ(), info.Env()...)}.Start()
	if err != nil {
		return nil, err
	}
	defer worker.Stop(stack.StopGrace)

	run := &planRun{planBench: b, address: info.Temporal, nats: info.NATS, set: set}
	if run.folder, err = os.MkdirTemp("", "bench-plan-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(run.folder)) }()
	if count {
		if run.proxy, err = grpcproxy.Start(ctx, info.Temporal, grpcproxy.Options{}); err != nil {
			return nil, err
		}
		defer run.proxy.Close()
		run.address = run.proxy.Address
	}
	for _, p := range script(set, whole) {
		if err := run.do(ctx, p); err != nil {
			return nil, err
		}
	}
	return run.steps, nil
}

// planRun is one sequence of runs of the starter.
type planRun struct {
	*planBench
	address string
	nats    string           // The starter keeps there what it has changed.
	proxy   *grpcproxy.Proxy // nil where nothing is counted
	folder  string
	set     jobSet
	steps   []step
}

// planned is a run of the starter to be made.
type planned struct {
	name string
	set  jobSet // what its jobs file declares
	code int    // the exit code that it must have
	args []string
}

// The exit codes of plan.
const (
	nothing = 0
	changes = 2
)

// script lists the runs of a sequence; whole includes those that change and
// remove jobs.
func script(set jobSet, whole bool) []planned {
	list := []planned{
		{"first plan", set, changes, []string{"plan"}},
		{"apply", set, nothing, []string{"apply", "--yes"}},
		{"second plan", set, nothing, []string{"plan"}},
	}
	if !whole {
		return list
	}
	edited, fewer := set, set
	edited.changed = few
	fewer.changed, fewer.left = few, few
	return append(list,
		planned{fmt.Sprintf("plan with %d changes", few), edited, changes, []string{"plan"}},
		planned{fmt.Sprintf("apply of %d changes", few), edited, nothing, []string{"apply", "--yes"}},
		planned{"plan after it", edited, nothing, []string{"plan"}},
		planned{fmt.Sprintf("prune of %d", few), fewer, nothing, []string{"apply", "--yes", "--prune"}},
		planned{"plan after it", fewer, nothing, []string{"plan", "--prune"}},
		planned{"prune of all", jobSet{}, nothing, []string{"apply", "--yes", "--prune", "--allow-empty", "--allow-mass-prune"}},
		planned{"plan after it", jobSet{}, nothing, []string{"plan", "--prune", "--allow-empty"}},
	)
}

// do makes a run and keeps what it took.
func (r *planRun) do(ctx context.Context, p planned) error {
	file := filepath.Join(r.folder, "jobs.toml")
	if err := os.WriteFile(file, p.set.file(), 0o600); err != nil {
		return err
	}
	if r.proxy != nil {
		r.proxy.Reset()
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(r.bin, "starter"), append(p.args, "-f", file, "--address", r.address)...)
	cmd.Env = append(os.Environ(), pipeline.EnvURL+"="+r.nats)
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	began := time.Now()
	err := cmd.Run()
	s := step{name: p.name, took: time.Since(began)}
	if cmd.ProcessState == nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	if code := cmd.ProcessState.ExitCode(); code != p.code {
		return fmt.Errorf("%s of %d recurring and %d continuous jobs: exit code %d, not %d: %s",
			p.name, r.set.recurring, r.set.continuous, code, p.code, lastLines(said.String()))
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.peak = usage.Maxrss << 10 // KiB on Linux
	}
	if r.proxy != nil {
		s.calls = r.proxy.Calls()
	}
	r.steps = append(r.steps, s)
	_, _ = fmt.Fprintf(r.out, "  %4d jobs  %-22s %8s  %4d MB  %s\n", // Only shows how far it is.
		r.set.recurring+r.set.continuous, s.name, s.took.Round(time.Millisecond), s.peak>>20, callsText(s.calls))
	return nil
}

// lastLines are the end of what a program said.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}
