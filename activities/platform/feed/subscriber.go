package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/iterate"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Spec is the part of a spec that all subscribers have.
type Spec struct {
	Concurrency       int          `json:"concurrency,omitempty" minimum:"1" maximum:"64" default:"8" help:"changes that are handled at the same time; those of one resource never are"`
	ResyncEvery       job.Duration `json:"resync_every,omitzero" minimum:"PT1S" default:"P1D" help:"time after which all resources are looked at again"`
	IterationDuration job.Duration `json:"iteration_duration,omitzero" maximum:"PT12H" default:"PT1M" help:"how long an iteration works before it reports: shorter than run_timeout"`
}

// Subscriber is what one job type does with changes.
type Subscriber struct {
	// Kinds are the kinds of resources that it is told of.
	Kinds []platformv1.ResourceKind
	// Handle does what follows from a change. It is called again for the same change
	// after a crash, and for changes that it has seen before, so that it has to be
	// idempotent. A resource that a snapshot found has the operation READ.
	//
	// The kind of the error decides. A permanent one, or a transient one that comes five
	// times, puts the change into quarantine. The others never do: after five tries the
	// iteration fails, and the next one begins with this change.
	Handle func(ctx context.Context, change *platformv1.Change) error
	// Quarantine keeps a change that cannot be handled, with the reason.
	Quarantine func(ctx context.Context, change *platformv1.Change, reason error) error
}

// silence is how long the feed may send nothing. It sends a checkpoint every ten seconds.
const silence = 35 * time.Second

// saveInterval is how often the position is saved.
const saveInterval = time.Second

// Run follows the feed for an iteration of a continuous job. The position is the job's
// cursor: it is saved when everything before it is finished.
func (s Subscriber) Run(ctx context.Context, run job.Run, client *platform.Client, spec Spec) (job.Result, error) {
	if err := platform.Need(client); err != nil {
		return job.Result{}, err
	}
	sub := &subscription{Subscriber: s, client: client, resyncEvery: spec.ResyncEvery.Std(), concurrency: spec.Concurrency}
	if _, err := run.Cursor(&sub.position); err != nil {
		return job.Result{}, err
	}
	sub.Iteration = iterate.New(run, spec.IterationDuration.Std(), sub.report)
	err := sub.Loop(ctx, sub.stream)
	progress, cursor := sub.report(sub.Counts())
	return job.Result{Message: progress.Message, Counts: sub.Counts(), Cursor: job.EncodeJSON(cursor)}, err
}

// position is where a subscriber is in the feed. Without a token it begins with a
// snapshot.
type position struct {
	Token string `json:"token,omitempty"`
	// Snapshot is when the last snapshot was finished, zero while one is under way.
	Snapshot time.Time `json:"snapshot,omitzero"`
}

// subscription is an iteration of a subscriber.
type subscription struct {
	*iterate.Iteration
	Subscriber
	client      *platform.Client
	resyncEvery time.Duration
	concurrency int

	mu       sync.Mutex
	position position
	window   *window   // of the stream that is followed, nil between streams
	left     int       // what the last window has left unfinished
	oldest   time.Time // time of the oldest of these
	newest   time.Time
	upToDate bool // the last response was a checkpoint
	resync   bool // the next stream shall begin with a snapshot
}

// stream follows one stream until the iteration is over. A feed that no longer has what
// follows the position begins anew, with a snapshot.
func (s *subscription) stream(ctx context.Context) (iterate.Next, error) {
	fresh := s.begin()
	err := s.follow(ctx, fresh)
	if s.settle(); err == nil {
		return iterate.More, nil // Loop knows whether the iteration is over.
	}
	switch platform.Reason(err) {
	case platformv1.ErrorReason_ERROR_REASON_TOO_OLD, platformv1.ErrorReason_ERROR_REASON_TOKEN_INVALID:
		s.Logger().Warn("the change feed no longer has what follows the position", "error", err)
		s.Count("too_old", 1)
		s.mu.Lock()
		s.position.Token = ""
		s.mu.Unlock()
		if !fresh { // A snapshot that is too old by its end is begun by the next iteration.
			return iterate.More, nil
		}
	}
	return iterate.Done, err
}

// begin decides where the next stream begins. It says whether that is a snapshot.
func (s *subscription) begin() (fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fresh = s.position.Token == ""; fresh {
		s.position = position{}
		s.Count("snapshots", 1)
	}
	s.upToDate = false
	return fresh
}

// advance takes over the position of the window.
func (s *subscription) advance() {
	if s.window == nil {
		return
	}
	token, checkpoint := s.window.position()
	if token == "" {
		return
	}
	s.position.Token = token
	if checkpoint && s.position.Snapshot.IsZero() {
		s.position.Snapshot = time.Now().UTC()
	}
}

// resyncDue reports whether all resources are to be looked at again now. Changes that were
// made until then are handled first: a snapshot does not tell of them.
func (s *subscription) resyncDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	unfinished, _ := s.window.unfinished()
	s.resync = s.upToDate && unfinished == 0 && !s.position.Snapshot.IsZero() && time.Since(s.position.Snapshot) >= s.resyncEvery
	return s.resync
}

// settle takes over the position of a stream that has ended.
func (s *subscription) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.left, s.oldest = s.window.unfinished()
	s.window = nil
	if s.resync {
		s.position.Token, s.upToDate, s.resync = "", false, false
	}
}

// follow follows a stream. What is in hand is finished before it returns.
func (s *subscription) follow(ctx context.Context, fresh bool) error {
	w := newWindow(ctx, s.concurrency, s.Stopping())
	w.handle, w.quarantine, w.count = s.Handle, s.Quarantine, s.Count
	s.mu.Lock()
	s.window = w
	token := s.position.Token
	s.mu.Unlock()
	request := &platformv1.StreamChangesRequest{Kinds: s.Kinds, Start: &platformv1.StreamChangesRequest_ResumeToken{ResumeToken: token}}
	if fresh {
		request.Start = &platformv1.StreamChangesRequest_Snapshot{Snapshot: true}
	}
	reading, cancel := context.WithCancel(ctx)
	responses := receive(reading, s.client, request)
	err := s.fillWindow(ctx, w, responses)
	cancel()
	w.close()
	for range responses { // Its end is the end of the reader.
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(w.failure(), err)
}

// received is a response of the feed, or the error that ended it.
type received struct {
	response *platformv1.StreamChangesResponse
	err      error
}

// receive reads a stream until it ends or ctx does.
func receive(ctx context.Context, client *platform.Client, request *platformv1.StreamChangesRequest) <-chan received {
	responses := make(chan received)
	send := func(r received) error {
		select {
		case responses <- r:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	group, _ := job.NewGroup(ctx)
	group.Go(func() error {
		defer close(responses)
		err := job.Safely(func() error { return read(ctx, client, request, send) })
		return send(received{err: err})
	})
	return responses
}

// read sends what a stream brings until it ends. The error says why it did.
func read(ctx context.Context, client *platform.Client, request *platformv1.StreamChangesRequest, send func(received) error) error {
	stream, err := client.Changes.StreamChanges(ctx, request)
	if err != nil {
		return platform.Explain(err)
	}
	defer func() { _ = stream.Close() }()
	for {
		response, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return job.Fail(errclass.PlatformUnreachable, "the Platform API ended the change feed")
		}
		if err != nil {
			return platform.Explain(err)
		}
		if err := send(received{response: response}); err != nil {
			return err
		}
	}
}

// fillWindow puts what is received into the window until the iteration is over, a snapshot is
// due, or the feed or a change fails.
func (s *subscription) fillWindow(ctx context.Context, w *window, responses <-chan received) error {
	save, deadline := time.NewTicker(saveInterval), time.NewTimer(s.Left())
	quiet := time.NewTimer(silence)
	defer save.Stop()
	defer deadline.Stop()
	defer quiet.Stop()
	for {
		incoming, silent := responses, quiet.C
		if w.full() {
			incoming, silent = nil, nil
			quiet.Reset(silence)
		}
		select {
		case r := <-incoming:
			quiet.Reset(silence)
			if r.err != nil {
				return r.err
			}
			s.note(r.response)
			w.add(r.response)
			if r.response.GetChange() == nil && s.resyncDue() {
				return nil
			}
		case <-w.changed:
			if w.failure() != nil || s.resyncDue() {
				return nil
			}
		case <-save.C:
			s.Save()
			if s.resyncDue() {
				return nil
			}
		case <-silent:
			return job.Fail(errclass.PlatformUnreachable, "the change feed of the Platform API has sent nothing for %s", silence)
		case <-deadline.C:
			return nil
		case <-s.Stopping():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// note counts a response.
func (s *subscription) note(response *platformv1.StreamChangesResponse) {
	change := response.GetChange()
	switch {
	case change == nil:
	case change.GetOperation() == platformv1.Operation_OPERATION_READ:
		s.Count("reads", 1)
	default:
		s.Count("changes", 1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upToDate = change == nil
	if change != nil {
		s.newest = change.GetTime().AsTime()
	}
}

// report is what a checkpoint says.
func (s *subscription) report(counts map[string]int64) (job.Progress, any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unfinished, oldest := s.left, s.oldest
	if s.advance(); s.window != nil {
		unfinished, oldest = s.window.unfinished()
	}
	if unfinished == 0 {
		oldest = s.newest
	}
	text := fmt.Sprintf("%d changes, %d resources read", counts["changes"], counts["reads"])
	switch {
	case unfinished == 0 && s.upToDate:
		text += ", up to date"
	case !oldest.IsZero():
		text += fmt.Sprintf(", %s behind, %d in hand", max(0, time.Since(oldest)).Round(time.Second), unfinished)
	}
	if n := counts["quarantined"]; n > 0 {
		text += fmt.Sprintf(", %d in quarantine", n)
	}
	return job.Progress{Done: counts["changes"] + counts["reads"], Message: text}, s.position
}
