package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/soak/ledger"
	"github.com/dendrascience/dendra-jobs/workers"
)

// What a worker process finds in its environment.
const (
	folderVariable  = "SOAK_WORKER_FOLDER"  // of the ledger
	processVariable = "SOAK_WORKER_PROCESS" // its name in the ledger
)

const (
	workerType = "soak"
	jobType    = "SoakStep"
	// stepTime is how long a step takes.
	stepTime = 200 * time.Millisecond
	// Of a hundred attempts so many fail, and so many runs of jobs that may be slow are.
	failing, slow = 2, 10
	slowSteps     = 50
)

// stepSpec is the spec of SoakStep.
type stepSpec struct {
	Steps int `json:"steps" minimum:"1" help:"steps of a run, or of an iteration"`
	// Slow has one run in ten take fifty steps.
	Slow bool `json:"slow,omitempty" help:"one run in ten takes fifty steps"`
	// FailFirst has the first run fail for good.
	FailFirst bool `json:"fail_first,omitempty" help:"the first run fails for good"`
	// Version makes another definition.
	Version int `json:"version,omitempty" help:"anything"`
}

// position is the cursor of a run.
type position struct {
	At int64 `json:"at"`
}

// workerMain is the main of a worker process.
func workerMain() {
	workers.Main(workers.Program{
		Worker: workerType,
		Types: func(e workers.Environment) ([]job.Type, error) {
			folder, process := e.Getenv(folderVariable), e.Getenv(processVariable)
			book, err := ledger.Open(filepath.Join(folder, "work-"+process+".jsonl"))
			if err != nil {
				return nil, fmt.Errorf("ledger: %w", err)
			}
			h := &handler{folder: folder, process: process, book: book}
			return []job.Type{job.NewType(jobType, workerType, "Takes steps and writes each down.", h.handle)}, nil
		},
	})
}

// handler takes steps and writes down what it does.
type handler struct {
	folder, process string
	book            *ledger.Writer
	count           atomic.Int64
}

func (h *handler) handle(ctx context.Context, run job.Run, spec stepSpec) (job.Result, error) {
	a := &noted{ctx: ctx, book: h.book, name: fmt.Sprintf("%s-%d", h.process, h.count.Add(1))}
	var at position
	if _, err := run.Cursor(&at); err != nil {
		return job.Result{}, err
	}
	if err := a.begin(h.process, run, at); err != nil {
		return job.Result{}, err
	}
	if spec.FailFirst {
		if first, err := h.isFirst(run.Job().ID); err != nil || first {
			return job.Result{}, a.end(ledger.Final, errors.Join(job.Final("Planned", "the first run fails"), err))
		}
	}
	steps := int64(spec.stepsOf(run.ID()))
	last, failAt := steps, int64(-1)
	if run.Job().Mode() == job.ModeContinuous {
		last += at.At
	}
	if rand.IntN(100) < failing {
		failAt = at.At + 1 + rand.Int64N(steps)
	}
	tick := time.NewTicker(stepTime)
	defer tick.Stop()
	for at.At < last {
		select {
		case <-ctx.Done():
			return job.Result{}, a.lost()
		case <-run.Stopping():
			return job.Result{}, a.end(ledger.Stopped, job.ErrStopped)
		case <-tick.C:
		}
		at.At++
		if err := a.step(at.At); err != nil {
			return job.Result{}, err
		}
		run.Checkpoint(job.Progress{Done: at.At, Total: last}, at)
		if at.At == failAt {
			return job.Result{}, a.end(ledger.Failed, errors.New("a planned failure"))
		}
	}
	return job.Result{Message: "all steps are taken"}, a.end(ledger.Done, nil)
}

// stepsOf gives the number of steps of a run, the same in each of its attempts.
func (s stepSpec) stepsOf(runID string) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(runID))
	if s.Slow && sum.Sum32()%100 < slow {
		return slowSteps
	}
	return s.Steps
}

// isFirst reports whether a job has not run before.
func (h *handler) isFirst(jobID string) (bool, error) {
	file, err := os.OpenFile(filepath.Join(h.folder, "failed-"+jobID), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, file.Close()
}

// noted is one call of the handler in the ledger.
type noted struct {
	ctx  context.Context //nolint:containedctx // The handler's own, for the length of its call.
	book *ledger.Writer
	name string
}

func (a *noted) begin(process string, run job.Run, at position) error {
	j := run.Job()
	return a.write(ledger.Work{
		What: ledger.Begin, Cursor: at.At, Job: j.ID, Mode: string(j.Mode()), Queue: j.Queue(), Run: run.ID(), Try: run.Attempt(),
		Heartbeat: j.Options.HeartbeatTimeout.Std(), Process: process,
	})
}

func (a *noted) step(to int64) error { return a.write(ledger.Work{What: ledger.Step, Cursor: to}) }

// end writes down how the handler returns, and gives the error that it returns.
func (a *noted) end(how ledger.What, result error) error {
	if err := a.write(ledger.Work{What: how}); err != nil {
		return err
	}
	return result
}

// write takes the time, looks whether the run is still the handler's, and only then
// writes.
func (a *noted) write(line ledger.Work) error {
	line.At, line.Attempt = ledger.Now(), a.name
	if a.ctx.Err() != nil {
		if line.What == ledger.Begin {
			return a.ctx.Err()
		}
		return a.lost()
	}
	return a.book.Add(line)
}

func (a *noted) lost() error {
	return errors.Join(a.ctx.Err(), a.book.Add(ledger.Work{What: ledger.Lost, At: ledger.Now(), Attempt: a.name}))
}
