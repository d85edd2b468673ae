package api

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/client"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// watches follow runs, each once, however many streams watch it.
type watches struct {
	client *client.Client
	mu     sync.Mutex
	runs   map[client.RunRef]*watch
}

// watch is a run that is followed.
type watch struct {
	streams int
	stop    context.CancelFunc
	latest  *jobsv1.Run // nil until the run was read
	ended   bool
	err     error         // why it ended, if not with the run
	changed chan struct{} // closed at the next change
}

func newWatches(c *client.Client) *watches {
	return &watches{client: c, runs: map[client.RunRef]*watch{}}
}

// follow sends a run now and whenever it changes, until it has ended.
func (w *watches) follow(ctx context.Context, ref client.RunRef, send func(*jobsv1.Run) error) error {
	run := w.join(ref)
	defer w.leave(ref, run)
	for {
		w.mu.Lock()
		latest, ended, err, changed := run.latest, run.ended, run.err, run.changed
		w.mu.Unlock()
		if ended && err != nil {
			return err
		}
		if latest != nil {
			if err := send(latest); err != nil || ended {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// join takes part in the watch of a run, which begins if there is none.
func (w *watches) join(ref client.RunRef) *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	run, ok := w.runs[ref]
	if !ok {
		ctx, stop := context.WithCancel(context.Background())
		run = &watch{stop: stop, changed: make(chan struct{})}
		w.runs[ref] = run
		go w.watch(ctx, ref, run)
	}
	run.streams++
	return run
}

// leave ends the watch of a run that no stream watches any more.
func (w *watches) leave(ref client.RunRef, run *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if run.streams--; run.streams == 0 {
		run.stop()
		w.forget(ref, run)
	}
}

func (w *watches) forget(ref client.RunRef, run *watch) {
	if w.runs[ref] == run {
		delete(w.runs, ref)
	}
}

func (w *watches) watch(ctx context.Context, ref client.RunRef, run *watch) {
	last, err := jobRun(ctx, w.client, ref)
	if err == nil && last.Status.Open() {
		w.show(run, last)
		last, err = w.client.Runs.Follow(ctx, last.RunRef, func(detail *client.RunDetail) { w.show(run, detail) })
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		run.latest = RunMessage(last)
	}
	run.ended, run.err = true, err
	w.forget(ref, run)
	close(run.changed)
}

func (w *watches) show(run *watch, detail *client.RunDetail) {
	now := RunMessage(detail)
	w.mu.Lock()
	defer w.mu.Unlock()
	if proto.Equal(now, run.latest) {
		return
	}
	run.latest = now
	close(run.changed)
	run.changed = make(chan struct{})
}
