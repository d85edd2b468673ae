package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/workers"
)

// These variables make this program the worker of its own bench, and name the
// file that its handlers write into.
const (
	workerVariable = "DENDRA_BENCH_WORKER"
	ledgerVariable = "DENDRA_BENCH_LEDGER"
)

// The job type of the bench, and its worker type, whose task queue is not that of
// the bare loops.
const (
	benchType       = "BenchNothing"
	benchWorkerType = "bench-jobs"
	warmQueue       = "warm"
	benchProvider   = job.ProviderTOML // plan and apply look at these
	fileMode        = 0o600
)

// jobBench is a stack, a worker process that serves the job type of the bench,
// and this process as the one that asks for runs.
type jobBench struct {
	*bench
	jobs   *client.Client
	worker *exec.Cmd
	folder string
	ledger ledger
	out    io.Writer
}

// newJobBench starts a stack and the worker.
func newJobBench(ctx context.Context, bin string, out io.Writer) (*jobBench, error) {
	binary, err := filepath.Abs(filepath.Join(bin, "devstack"))
	if err != nil {
		return nil, err
	}
	inner, err := newBench(ctx, binary, "latency")
	if err != nil {
		return nil, err
	}
	return withJobWorker(ctx, inner, out)
}

// newJobBenchOn has the worker on a server that is there.
func newJobBenchOn(ctx context.Context, inner *bench, out io.Writer) (*jobBench, error) {
	if err := inner.startWorker(ctx); err != nil {
		inner.close()
		return nil, err
	}
	return withJobWorker(ctx, inner, out)
}

func withJobWorker(ctx context.Context, inner *bench, out io.Writer) (*jobBench, error) {
	b := &jobBench{bench: inner, jobs: client.New(inner.client, inner.info.Namespace), out: out}
	if err := b.startJobWorker(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// benchWorker serves the job type that does nothing but note that it did.
func benchWorker() {
	workers.Main(workers.Program{
		Worker: benchWorkerType,
		Types: func(e workers.Environment) ([]job.Type, error) {
			file, err := os.OpenFile(e.Getenv(ledgerVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, fileMode)
			if err != nil {
				return nil, err
			}
			e.Defer(func() { _ = file.Close() }) // Each line was written by itself.
			return []job.Type{hold(file), job.NewType(benchType, benchWorkerType, "Does nothing.",
				func(_ context.Context, run job.Run, _ struct{}) (job.Result, error) {
					return job.Result{}, errors.Join(note(file, ledgerStart, run), note(file, ledgerEnd, run))
				})}, nil
		},
	})
}

func (b *jobBench) startJobWorker(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if b.folder, err = os.MkdirTemp("", "bench-jobs-"); err != nil {
		return err
	}
	b.ledger = ledger(filepath.Join(b.folder, "ledger"))
	worker := exec.CommandContext(ctx, self, "--address", b.info.Temporal, "--namespace", b.info.Namespace, "--log-level", "warn") //nolint:gosec // This program itself.
	worker.Env = append(os.Environ(), workerVariable+"=1", ledgerVariable+"="+string(b.ledger))
	worker.Stderr = os.Stderr
	if err := worker.Start(); err != nil {
		return err
	}
	b.worker = worker
	// The first item pays for what is set up once.
	if _, err := b.jobs.Queues.Enqueue(ctx, queuedJob(warmQueue, "first"), client.EnqueueOptions{}); err != nil {
		return err
	}
	return b.jobs.Queues.AwaitEmpty(ctx, warmQueue, func(*client.Queue) {})
}

func (b *jobBench) close() error {
	if b.worker != nil {
		if err := b.worker.Process.Signal(os.Interrupt); err != nil {
			slog.Warn("the worker cannot be stopped", "error", err)
		}
		_ = b.worker.Wait() // It has been told.
	}
	b.bench.close()
	return os.RemoveAll(b.folder)
}

func newJob(key string, schedule job.Trigger) job.Job {
	return job.Job{
		ID: job.ID(benchType, key), Type: benchType, Worker: benchWorkerType, Provider: benchProvider,
		Spec: []byte("{}"), Trigger: schedule, Options: job.DefaultOptions(schedule.Mode()),
	}
}

func queuedJob(queue, key string) job.Job {
	return newJob(key, job.Trigger{Queued: &job.Queued{Queue: queue}})
}

func (b *jobBench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.out, format+"\n", args...) // Progress for people.
}

// peaks says how much memory each process has had at most.
func (b *jobBench) peaks() (text string, err error) {
	for _, process := range []struct {
		name string
		pid  int
	}{{"servers", b.process.PID()}, {"worker", b.worker.Process.Pid}, {"bench", os.Getpid()}} {
		peak, err := peakMemory(process.pid)
		if err != nil {
			return "", err
		}
		if text != "" {
			text += ", "
		}
		text += process.name + " " + peak.String()
	}
	return text, nil
}
