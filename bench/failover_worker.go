package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/job"
)

// holdType is a job type whose runs end when a file is there, or when they are told
// to stop.
const holdType = "BenchHold"

type holdSpec struct {
	Gate string `json:"gate"`
}

func hold(ledger io.Writer) job.Type {
	return job.NewType(holdType, benchWorkerType, "Runs until a file is there.",
		func(ctx context.Context, run job.Run, spec holdSpec) (job.Result, error) {
			if err := note(ledger, ledgerStart, run); err != nil {
				return job.Result{}, err
			}
			run.Checkpoint(job.Progress{Done: 1, Total: 2}, 1)
			poll := time.NewTicker(5 * time.Millisecond)
			defer poll.Stop()
			for {
				if _, err := os.Stat(spec.Gate); err == nil {
					return job.Result{}, note(ledger, ledgerEnd, run)
				}
				select {
				case <-run.Stopping():
					return job.Result{}, job.ErrStopped
				case <-ctx.Done():
					return job.Result{}, ctx.Err()
				case <-poll.C:
				}
			}
		})
}

// holding is a job of that type.
func holding(key, gate string) job.Job {
	j := newJob(key, job.Trigger{OneShot: &job.OneShot{}})
	j.ID, j.Type, j.Spec = job.ID(holdType, key), holdType, job.EncodeJSON(holdSpec{gate})
	return j
}

// failoverWorker is a worker process with a ledger of its own.
type failoverWorker struct {
	*stack.Process
	ledger ledger
}

// withLedgers gives what is measured a folder for its ledgers.
func (b *failoverBench) withLedgers(measured func() error) (err error) {
	if b.folder, err = os.MkdirTemp("", "bench-failover-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	return measured()
}

// startHolder starts a worker of this program's own job types, as a service, and
// waits until it serves.
func (b *failoverBench) startHolder(ctx context.Context, name string, args ...string) (*failoverWorker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &failoverWorker{ledger: ledger(filepath.Join(b.folder, name))}
	w.Process, err = b.startServing(ctx, stack.Command{
		Path: self, Args: append([]string{"--service", name}, args...),
		Env: append(os.Environ(), workerVariable+"=1", ledgerVariable+"="+string(w.ledger)),
	})
	return w, err
}

// startServing starts a worker process and waits until it is announced.
func (b *failoverBench) startServing(ctx context.Context, command stack.Command) (*stack.Process, error) {
	said, err := os.CreateTemp(b.folder, "log-")
	if err != nil {
		return nil, err
	}
	defer said.Close() //nolint:errcheck // The process has it.
	command.Env = append(command.Env, b.info.Env()...)
	command.Stdout, command.Stderr = said, said
	worker, err := command.Start()
	if err != nil {
		return nil, err
	}
	return worker, until(ctx, "worker "+filepath.Base(command.Path), func() (bool, error) {
		text, err := os.ReadFile(said.Name())
		if err == nil && worker.State() != "running" {
			err = fmt.Errorf("%s ended (%s): %s", command.Path, worker.State(), text)
		}
		return strings.Contains(string(text), "msg=announced"), err
	})
}

// starts are the runs that the worker began.
func (w *failoverWorker) starts() ([]noted, error) {
	return w.ledger.read(func(n noted) bool { return n.what == ledgerStart })
}

// ended counts the runs that ended by themselves in workers.
func (b *failoverBench) ended(workers ...*failoverWorker) (int, error) {
	all := 0
	for _, w := range workers {
		lines, err := w.ledger.read(func(n noted) bool { return n.what == ledgerEnd })
		if err != nil {
			return 0, err
		}
		all += len(lines)
	}
	return all, nil
}

// hasBegun reports whether the worker has begun so many runs.
func (w *failoverWorker) hasBegun(runs int) func() (bool, error) {
	return func() (bool, error) {
		lines, err := w.starts()
		return len(lines) >= runs, err
	}
}
