package feed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

const (
	// maxWindow bounds the changes that were received and are not acknowledged.
	maxWindow = 1000
	// maxTries is how often a change is handled that fails.
	maxTries = 5
)

// backoff is how long a change that failed waits for its next try.
var backoff = job.Backoff{Initial: job.Duration(time.Second), Max: job.Duration(time.Minute), Coefficient: 2}

// window holds what was received from the feed and is not acknowledged. Changes of one
// resource are handled one after another, in the order of the feed; those of different
// resources side by side.
type window struct {
	ctx        context.Context //nolint:containedctx // That of the iteration.
	handle     func(context.Context, *platformv1.Change) error
	quarantine func(context.Context, *platformv1.Change, error) error
	count      func(name string, n int64)
	slots      chan struct{}
	changed    chan struct{} // holds one when something was finished or has failed
	over       chan struct{} // closed: what was not begun is left
	stopped    <-chan struct{}
	work       *job.Group

	mu        sync.Mutex
	items     []*item // in the order of the feed
	resources map[resource][]*item
	token     string // of the last item that is acknowledged
	reached   bool   // a checkpoint is acknowledged, and all before it
	err       error  // why the feed cannot go on
}

// item is a response of the feed.
type item struct {
	token      string
	change     *platformv1.Change // nil in a checkpoint, and when it is finished
	time       time.Time
	checkpoint bool
	done       bool
}

type resource struct {
	kind platformv1.ResourceKind
	id   string
}

// newWindow makes a window that handles changes of so many resources at once. What waits
// for another try is cut short when stopped is closed.
func newWindow(ctx context.Context, concurrency int, stopped <-chan struct{}) *window {
	work, _ := job.NewGroup(ctx) // What one fails with ends the others by the reader of the feed.
	return &window{
		ctx: ctx, work: work, slots: make(chan struct{}, concurrency), changed: make(chan struct{}, 1), over: make(chan struct{}),
		stopped: stopped, resources: map[resource][]*item{}, count: func(string, int64) {},
	}
}

// add takes the next response of the feed.
func (w *window) add(response *platformv1.StreamChangesResponse) {
	change := response.GetChange()
	i := &item{token: response.GetResumeToken(), change: change, time: change.GetTime().AsTime(), checkpoint: change == nil, done: change == nil}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.items = append(w.items, i)
	if i.done {
		w.advance()
		return
	}
	r := resource{change.GetKind(), change.GetResourceId()}
	w.resources[r] = append(w.resources[r], i)
	if len(w.resources[r]) == 1 {
		w.work.Go(func() error {
			if err := job.Safely(func() error { return w.workOn(r, i) }); err != nil {
				w.fail(err)
			}
			return nil
		})
	}
}

// workOn handles the changes of a resource until there are no more.
func (w *window) workOn(r resource, next *item) error {
	for next != nil {
		if err := w.finish(next); err != nil {
			return err
		}
		w.mu.Lock()
		next.done, next.change = true, nil
		w.resources[r] = w.resources[r][1:]
		if next = nil; len(w.resources[r]) > 0 {
			next = w.resources[r][0]
		} else {
			delete(w.resources, r)
		}
		w.advance()
		w.mu.Unlock()
		w.signal()
	}
	return nil
}

// fail notes why the feed cannot go on. What is left for the next iteration is no reason.
func (w *window) fail(err error) {
	w.mu.Lock()
	if w.err == nil && !errors.Is(err, errLeft) {
		w.err = err
	}
	w.mu.Unlock()
	w.signal()
}

// signal wakes the reader of the feed.
func (w *window) signal() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// advance acknowledges the items at the front that are done.
func (w *window) advance() {
	n := 0
	for n < len(w.items) && w.items[n].done {
		w.token = w.items[n].token
		w.reached = w.reached || w.items[n].checkpoint
		n++
	}
	w.items = w.items[n:]
}

var errLeft = errors.New("the change is left for the next iteration")

// finish handles a change until it succeeds or is in quarantine. The error says why the
// change cannot be acknowledged.
func (w *window) finish(i *item) error {
	for try := 1; ; try++ {
		if !w.acquire(try) {
			return errLeft
		}
		err := job.Safely(func() error { return w.handle(w.ctx, i.change) }) // A panic is an error of the change.
		if err != nil && isPoison(err, try) && w.ctx.Err() == nil {
			cause := err
			if err = w.quarantine(w.ctx, i.change, cause); err == nil {
				w.count("quarantined", 1)
			}
		}
		<-w.slots
		switch {
		case err == nil:
			return nil
		case w.ctx.Err() != nil:
			return w.ctx.Err()
		case try >= maxTries:
			return fmt.Errorf("%s: %w", name(i.change), err)
		}
		w.count("retries", 1)
		if !w.wait(backoff.Wait(try)) {
			return errLeft
		}
	}
}

// acquire waits for a slot. What was begun gets one also when the iteration is over.
func (w *window) acquire(try int) bool {
	over := w.over
	if try > 1 {
		over = nil
	}
	select {
	case <-over:
		return false
	case <-w.ctx.Done():
		return false
	default:
	}
	select {
	case w.slots <- struct{}{}:
		return true
	case <-over:
	case <-w.stopped:
	case <-w.ctx.Done():
	}
	return false
}

func (w *window) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.stopped:
	case <-w.ctx.Done():
	}
	return false
}

// isPoison reports whether an error is the fault of the change, and not of a server that is away
// or of the settings.
func isPoison(err error, try int) bool {
	kind := job.KindOf(err)
	return !kind.KeepsInput() && (kind.Final() || try >= maxTries)
}

// name is what people call a change: the update of station 5b0f….
func name(change *platformv1.Change) string {
	return fmt.Sprintf("the %s of %s %s", strings.ToLower(strings.TrimPrefix(change.GetOperation().String(), "OPERATION_")),
		kindName(change.GetKind()), change.GetResourceId())
}

// kindName is a kind in small letters, such as integration_config.
func kindName(kind platformv1.ResourceKind) string {
	return strings.ToLower(strings.TrimPrefix(kind.String(), "RESOURCE_KIND_"))
}

// full reports whether no more should be received for now.
func (w *window) full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.items) >= maxWindow
}

// position is the token of the last item that is acknowledged. It says whether a
// checkpoint was among these.
func (w *window) position() (token string, checkpoint bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.token, w.reached
}

// unfinished tells how many items are not acknowledged, and the time of the oldest.
func (w *window) unfinished() (count int, oldest time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.items) > 0 {
		oldest = w.items[0].time
	}
	return len(w.items), oldest
}

// failure says why the feed cannot go on, nil if it can.
func (w *window) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// close begins with nothing more, and waits for what was begun.
func (w *window) close() {
	close(w.over)
	_ = w.work.Wait() // Each has told its error.
}

// Join gives one error of those of several effects of a change. What keeps the change comes first, then what is tried again: it says
// what becomes of the change.
func Join(failed []error) error {
	slices.SortStableFunc(failed, func(a, b error) int { return cmp.Compare(urgency(b), urgency(a)) })
	return errors.Join(failed...)
}

func urgency(err error) int {
	switch kind := job.KindOf(err); {
	case kind.KeepsInput():
		return 2
	case kind.Final():
		return 0
	}
	return 1
}
