package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/stack"
	"github.com/dendrascience/dendra-jobs/job"
)

// killedPhoto kills the worker that makes variants of a photo (SIGKILL), when it
// has stored some of them, and waits until another one has made the others.
func (b *failoverBench) killedPhoto(ctx context.Context) error {
	const variants, bucket, key = 12, "uploads", "bench.jpg"
	store, err := objects.New(objects.Config{
		AccessKey: b.info.S3.AccessKey, Endpoint: b.info.S3.Endpoint, Region: b.info.S3.Region, SecretKey: b.info.S3.SecretKey,
	})
	if err != nil {
		return err
	}
	photo, err := benchPhoto()
	if err != nil {
		return err
	}
	if _, err := store.Put(ctx, objects.Object{Bucket: bucket, Key: key, Data: photo, ContentType: "image/jpeg"}); err != nil {
		return err
	}
	workers := map[int]*stack.Process{}
	for _, name := range []string{"first", "second"} {
		worker, err := b.startServing(ctx, stack.Command{Path: filepath.Join(b.bin, "backend"), Args: []string{"--service", name}, Env: os.Environ()})
		if err != nil {
			return err
		}
		defer worker.Kill()
		workers[worker.PID()] = worker
	}
	type variant struct {
		Name string `json:"name"`
		Size int    `json:"size"`
	}
	spec := map[string]any{"bucket": bucket, "key": key, "prefix": "bench"}
	var wanted []variant
	for n := range variants {
		wanted = append(wanted, variant{fmt.Sprintf("v%02d", n), 2000 - 20*n})
	}
	spec["variants"] = wanted
	const jobType = "GeneratePhotoVariantsToMinio"
	j := newJob("photo", job.Trigger{OneShot: &job.OneShot{}})
	j.ID, j.Type, j.Worker, j.Spec = job.ID(jobType, "photo"), jobType, job.WorkerBackend, job.EncodeJSON(spec)
	ref, err := b.jobs.Runs.Start(ctx, j, contract.StartedByHand)
	if err != nil {
		return err
	}
	if err := until(ctx, "the first variants", func() (bool, error) {
		stored := 0
		for _, err := range store.List(ctx, "media", "bench/") {
			if err != nil {
				return false, err
			}
			stored++
		}
		return stored >= variants/4, nil
	}); err != nil {
		return err
	}
	run, err := b.jobs.Runs.Get(ctx, ref)
	if err != nil {
		return err
	}
	holder, err := holderOf(run, workers)
	if err != nil {
		return err
	}
	killed := time.Now()
	holder.Kill()
	if run, err = b.completed(ctx, ref); err != nil {
		return err
	}
	if strings.HasSuffix(run.Output.Worker, fmt.Sprintf("/%d", holder.PID())) {
		return fmt.Errorf("run %s ended before its worker was killed", ref.RunID)
	}
	timeout := j.Options.HeartbeatTimeout
	b.found(fmt.Sprintf("a photo's variants, finished elsewhere after the kill of their worker, heartbeat timeout %s", timeout),
		fmt.Sprintf("≤ %.0f s", (timeout.Std()+10*time.Second).Seconds()), time.Since(killed))
	return nil
}

// holderOf is the process that a run's worker names.
func holderOf(run *client.RunDetail, workers map[int]*stack.Process) (*stack.Process, error) {
	for pid, worker := range workers {
		if strings.HasSuffix(run.Worker, fmt.Sprintf("/%d", pid)) {
			return worker, nil
		}
	}
	return nil, fmt.Errorf("the run is with %q, which is no worker of this bench", run.Worker)
}

// benchPhoto is a picture of 12 megapixels.
func benchPhoto() ([]byte, error) {
	picture := image.NewRGBA(image.Rect(0, 0, 4000, 3000))
	for y := range 3000 {
		for x := range 4000 {
			picture.SetRGBA(x, y, color.RGBA{uint8(x ^ y), uint8(x * y >> 9), uint8(x + y>>3), 255}) //nolint:gosec // Whatever comes out.
		}
	}
	var file bytes.Buffer
	err := jpeg.Encode(&file, picture, nil)
	return file.Bytes(), err
}

// completed waits for the end of a run, which has to be a good one.
func (b *failoverBench) completed(ctx context.Context, ref client.RunRef) (*client.RunDetail, error) {
	var run *client.RunDetail
	err := until(ctx, "the end of run "+ref.RunID, func() (ended bool, err error) {
		run, err = b.jobs.Runs.Get(ctx, ref)
		return err == nil && !run.Ended.IsZero(), err
	})
	if err == nil && run.Status != client.RunCompleted {
		err = fmt.Errorf("run %s %s: %s", ref.RunID, run.Status, run.Error)
	}
	return run, err
}

// lastTask stops one of two workers (SIGTERM) while jobs come all the time.
func (b *failoverBench) lastTask(ctx context.Context) error {
	first, err := b.startHolder(ctx, "first")
	if err != nil {
		return err
	}
	defer first.Stop(stack.StopGrace)
	second, err := b.startHolder(ctx, "second")
	if err != nil {
		return err
	}
	defer second.Stop(stack.StopGrace)
	feeding, enough := context.WithCancel(ctx)
	defer enough()
	var fed sync.WaitGroup
	var feedError error
	asked := 0
	fed.Go(func() {
		for ; feeding.Err() == nil && feedError == nil; asked++ {
			_, feedError = b.jobs.Runs.Start(ctx, newJob(fmt.Sprintf("flow-%05d", asked), job.Trigger{OneShot: &job.OneShot{}}), contract.StartedByHand)
		}
	})
	const atWork = 20
	for _, w := range []*failoverWorker{first, second} {
		if err := until(ctx, "both workers at work", w.hasBegun(atWork)); err != nil {
			return err
		}
	}
	signaled := time.Now()
	if err := first.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := exited(ctx, first.Process); err != nil {
		return err
	}
	enough()
	fed.Wait()
	if feedError != nil {
		return feedError
	}
	begun, err := first.starts()
	if err != nil {
		return err
	}
	last := max(begun[len(begun)-1].at.Sub(signaled), 0)
	b.found("SIGTERM to a worker until it took its last task, while jobs come all the time", "≤ 1 s", last)
	return until(ctx, "the end of all runs", func() (bool, error) {
		ended, err := b.ended(first, second)
		return ended == asked, err
	})
}

// drainOfTen stops a worker (SIGTERM) that has ten runs, which save their positions.
func (b *failoverBench) drainOfTen(ctx context.Context) error {
	const runs = 10
	first, err := b.startHolder(ctx, "first")
	if err != nil {
		return err
	}
	defer first.Stop(stack.StopGrace)
	gate := filepath.Join(b.folder, "gate")
	for n := range runs {
		if _, err := b.jobs.Runs.Start(ctx, holding(fmt.Sprintf("drained-%d", n), gate), contract.StartedByHand); err != nil {
			return err
		}
	}
	if err := until(ctx, "ten runs", first.hasBegun(runs)); err != nil {
		return err
	}
	second, err := b.startHolder(ctx, "second")
	if err != nil {
		return err
	}
	defer second.Stop(stack.StopGrace)
	signaled := time.Now()
	if err := first.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := exited(ctx, first.Process); err != nil {
		return err
	}
	b.found("drain of ten runs: until the process has ended", "≤ 30 s, the drain timeout", time.Since(signaled))
	if err := until(ctx, "the runs to go on", second.hasBegun(runs)); err != nil {
		return err
	}
	begun, err := second.starts()
	if err != nil {
		return err
	}
	b.found("drain of ten runs: until all of them have gone on elsewhere", "–", begun[len(begun)-1].at.Sub(signaled))
	if err := os.WriteFile(gate, nil, fileMode); err != nil {
		return err
	}
	return until(ctx, "the end of all runs", func() (bool, error) {
		ended, err := b.ended(second)
		return ended == runs, err
	})
}

// boundRun kills the service that a run is bound to (SIGKILL), while another one has
// its tags.
func (b *failoverBench) boundRun(ctx context.Context) error {
	first, err := b.startHolder(ctx, "first", "--tag", "site=north")
	if err != nil {
		return err
	}
	defer first.Stop(stack.StopGrace)
	gate := filepath.Join(b.folder, "gate")
	j := holding("bound", gate)
	j.Options.Bind = map[string]string{"site": "north"}
	j.Options.FailoverAfter = job.Duration(30 * time.Second)
	ref, err := b.jobs.Runs.Start(ctx, j, contract.StartedByHand)
	if err != nil {
		return err
	}
	if err := until(ctx, "the bound run", first.hasBegun(1)); err != nil {
		return err
	}
	second, err := b.startHolder(ctx, "second", "--tag", "site=north")
	if err != nil {
		return err
	}
	defer second.Stop(stack.StopGrace)
	killed := time.Now()
	first.Kill()
	if err := until(ctx, "the bound run to move", second.hasBegun(1)); err != nil {
		return err
	}
	begun, err := second.starts()
	if err != nil {
		return err
	}
	b.found(fmt.Sprintf("a bound run, begun elsewhere after the kill of its service, failover_after %s", j.Options.FailoverAfter),
		"≤ 45 s", begun[0].at.Sub(killed))
	if err := os.WriteFile(gate, nil, fileMode); err != nil {
		return err
	}
	_, err = b.completed(ctx, ref)
	return err
}
