package load

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/lines"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

const (
	// ackWait is how long the server waits for an answer to a message: longer than
	// a batch takes with all its attempts. A mirror writer that starts does not wait for it, since
	// it rewinds.
	ackWait = 5 * time.Minute
	// probeSize is how many messages a mirror is tried with that was down.
	probeSize = 100
	// slowWrite is what makes a mirror a slow one, whose others do not wait for it.
	slowWrite = 250 * time.Millisecond
	// claimFor is how long a mirror belongs to the job that last reported on it;
	// it does so every few seconds.
	claimFor = 30 * time.Second
	// mostNotNoted is how many acknowledgements in a row may have no effect.
	mostNotNoted = 5
	// rateInterval is the least time over which points per second are counted.
	rateInterval = time.Second
)

// Reasons for a mirror writer to begin again.
var (
	errBreakerOpened = errors.New("the mirror is down")
	errOutOfOrder    = errors.New("a message came out of order")
	errAckNotNoted   = errors.New("an acknowledgement was not noted")
	errIterationOver = errors.New("the iteration is over with a batch half done")
)

// source gives the messages of a location, in order: a [pipeline.Consumer].
type source interface {
	Rewind(ctx context.Context) (int, error)
	Order() pipeline.Order
	FetchBytes(ctx context.Context, n, bytes int, wait time.Duration, stop <-chan struct{}) ([]*pipeline.Delivery, error)
	Ack(ctx context.Context, messages []*pipeline.Delivery) error
	AckNoted(ctx context.Context, message *pipeline.Delivery) (bool, error)
}

// mirrorWriter loads a mirror.
type mirrorWriter struct {
	iteration *iteration
	mirror    influx.Mirror
	config    influx.Config // without what connect adds
	address   string        // of the server
	writer    *influx.Writer
	consumer  source

	waiting  atomic.Bool  // takes nothing more in this iteration, or is down
	slow     atomic.Bool  // the last write took long
	writing  atomic.Int64 // when the write in hand began; 0: none is
	maxBytes atomic.Int64 // of a write; falls when the server finds one too big

	shares [partsOfWrite][]byte // the parts of the write in hand

	told map[[3]string]bool // fields (database, measurement, field) that were dropped and are in the log

	putting  sync.Mutex // one write of the state at a time
	mu       sync.Mutex
	state    pipeline.LoadState
	notNoted int   // acknowledgements in a row that had no effect
	err      error // why the mirror writer has ended, unless the iteration is over
	rate     struct {
		since  time.Time
		points int64
	}
}

func newMirrorWriter(l *iteration, m influx.Mirror, config influx.Config, address string) *mirrorWriter {
	w := &mirrorWriter{iteration: l, mirror: m, config: config, address: address}
	w.state.Breaker.State = pipeline.BreakerClosed
	w.maxBytes.Store(int64(l.spec.BatchBytes))
	return w
}

// work loads the mirror until the iteration is over. What the mirror answers is in the
// state of its breaker; the error is about the stream.
func (w *mirrorWriter) work(ctx context.Context) error {
	if err := w.open(ctx); err != nil {
		return err
	}
	if w.breaker().State == pipeline.BreakerClosed {
		if err := w.connect(ctx); err != nil {
			w.failed(err, nil)
		}
	}
	for !w.iteration.draining(w) || w.iteration.awaitEnd(ctx, w) {
		if w.breaker().State != pipeline.BreakerClosed {
			w.waiting.Store(true)
			if !w.waitForTry(ctx) {
				break
			}
			if err := w.retryable(ctx, w.probe(ctx)); err != nil {
				return err
			}
			continue
		}
		w.waiting.Store(false)
		if err := w.retryable(ctx, w.stream(ctx)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// retryable returns nil if the mirror writer can begin again after an error, and what ends it if it
// cannot. An acknowledgement without effect costs a write of what has been written, so
// that each one after the first is followed by a wait, as a failure of the mirror is.
func (w *mirrorWriter) retryable(ctx context.Context, err error) error {
	if err != nil && !beginsAgain(err) {
		return err
	}
	if !errors.Is(err, errAckNotNoted) {
		return nil
	}
	w.mu.Lock()
	n := w.notNoted
	w.mu.Unlock()
	spec := &w.iteration.spec
	switch {
	case n < 2:
		return nil
	case n < mostNotNoted && w.wait(ctx, time.Now().Add(w.iteration.backoff.wait(n-1))):
		return nil
	case ctx.Err() != nil || w.iteration.stopping():
		return ctx.Err()
	}
	return job.Fail(errclass.AckNotNoted,
		"location %s (%s) is not loaded into mirror %s, since the last %d acknowledgements to consumer %s had no effect",
		spec.Location, spec.OperationMode, w.mirror.Name, n, w.consumerName())
}

// beginsAgain reports whether the mirror writer can go on when it has begun again.
func beginsAgain(err error) bool {
	return errors.Is(err, errBreakerOpened) || errors.Is(err, errOutOfOrder) || errors.Is(err, errAckNotNoted) || errors.Is(err, errIterationOver)
}

// connect makes the writer, unless there is one. A secret that this worker has not
// is a fault of this mirror alone.
func (w *mirrorWriter) connect(ctx context.Context) error {
	if w.writer != nil {
		return nil
	}
	failed := func(err error) error {
		return &influx.Error{Kind: influx.KindConfig, Address: w.address, Text: err.Error()}
	}
	config := w.config
	if w.mirror.Password != "" {
		password, err := w.iteration.Secret(w.mirror.Password, w.mirror.InfluxURL)
		if err != nil {
			return failed(err)
		}
		config.Password = password
	}
	switch w.mirror.Gzip {
	case influx.GzipAlways:
		config.Gzip = true
	case influx.GzipNever:
	default:
		config.Gzip = !influx.Local(ctx, config.URL)
	}
	writer, err := influx.NewWriter(config)
	if err != nil {
		return failed(err)
	}
	w.writer = writer
	return nil
}

// open claims the load, and opens its consumer.
func (w *mirrorWriter) open(ctx context.Context) error {
	if err := w.claim(ctx); err != nil {
		return err
	}
	spec := &w.iteration.spec
	consumer, err := w.iteration.pipeline.Consumer(ctx, pipeline.StreamPrepared, pipeline.ConsumerOptions{
		Name:    w.consumerName(),
		Subject: pipeline.PrepSubject(spec.OperationMode, spec.Location),
		AckWait: ackWait,
		InOrder: true,
		// What may be in hand, and more.
		MaxAckPending: max(20_000, 4*(spec.BatchPoints+fetchSize)),
	})
	w.consumer = consumer
	return err
}

func (w *mirrorWriter) consumerName() string {
	return pipeline.LoadConsumer(w.iteration.spec.OperationMode, w.iteration.spec.Location, w.mirror.Name)
}

// claim goes on from the last state of the load, unless another job wrote that
// just now: of one consumer, each would get a part of the messages.
func (w *mirrorWriter) claim(ctx context.Context) error {
	spec, id := &w.iteration.spec, w.iteration.Job().ID
	var state pipeline.LoadState
	for claimed := false; !claimed; {
		var err error
		state, err = w.iteration.pipeline.LoadState(ctx, spec.OperationMode, spec.Location, w.mirror.Name)
		if err != nil {
			return err
		}
		now := time.Now().UTC()
		// A time far ahead is one of a wrong clock.
		if age := now.Sub(state.UpdatedAt); state.Job != "" && state.Job != id && age.Abs() < claimFor {
			return job.FailAfter(errclass.TwoLoaders, claimFor-age,
				"job %s does not load location %s (%s) into mirror %s, since job %s does, and each would get a part of the messages",
				id, spec.Location, spec.OperationMode, w.mirror.Name, state.Job)
		}
		w.retryFrom(&state)
		state.Job, state.UpdatedAt = id, now
		if state.StartedAt.IsZero() {
			state.StartedAt = now
		}
		if claimed, err = w.iteration.pipeline.ClaimLoad(ctx, state); err != nil {
			return err
		}
	}
	if state.MaxBytes > 0 {
		w.maxBytes.Store(int64(state.MaxBytes))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = state
	w.rate.since, w.rate.points = time.Now(), state.Points
	return nil
}

// retryFrom keeps of a state what still holds.
func (w *mirrorWriter) retryFrom(state *pipeline.LoadState) {
	if state.Address != "" && state.Address != w.address {
		// Another server: what the old one said does not hold for it.
		state.Breaker, state.MaxBytes, state.Recent = pipeline.Breaker{State: pipeline.BreakerClosed}, 0, pipeline.Tally{}
	}
	if state.BatchBytes != w.iteration.spec.BatchBytes {
		state.MaxBytes = 0
	}
	state.BatchBytes, state.Address = w.iteration.spec.BatchBytes, w.address
}

// waitForTry waits until the mirror may be tried again, and reports false when the
// iteration ends before.
func (w *mirrorWriter) waitForTry(ctx context.Context) bool {
	return w.wait(ctx, w.breaker().RetryAt)
}

// wait waits for a time, and reports false when the iteration ends before.
func (w *mirrorWriter) wait(ctx context.Context, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-w.iteration.Stopping():
			return false
		case <-w.iteration.over:
			return false
		case <-ctx.Done():
			return false
		case <-time.After(max(time.Until(w.iteration.End()), slowWrite)):
			if w.iteration.draining(w) {
				return false
			}
		}
	}
}

// probe asks the mirror whether it is there, and gives it small batches, from the
// first message that it has not, until it has stored one.
func (w *mirrorWriter) probe(ctx context.Context) error {
	w.mu.Lock()
	w.state.Breaker.State = pipeline.BreakerTrying
	w.mu.Unlock()
	err := w.connect(ctx)
	if err == nil {
		err = w.writer.Ping(ctx)
	}
	var held *pipeline.HeldMessage
	if err == nil {
		held, err = w.tryBatches(ctx)
	}
	var failed *influx.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed):
		w.failed(err, held)
		return nil
	}
	return err
}

// tryBatches writes small batches until one is stored or the iteration is over. That the
// mirror answers a ping says nothing of writes: as long as no message waits, or none
// that can be written, it is not known to work. The message that someone wants skipped
// goes to quarantine instead. It returns the one that the mirror refuses, if it is
// known, with the error.
func (w *mirrorWriter) tryBatches(ctx context.Context) (*pipeline.HeldMessage, error) {
	if err := w.rewind(ctx); err != nil {
		return nil, err
	}
	skip, err := w.iteration.pipeline.SkipAsked(ctx, w.consumerName())
	if err != nil {
		return nil, err
	}
	order := w.consumer.Order()
	decoder := lines.NewDecoder(w.iteration.rules)
	n := min(probeSize, w.iteration.spec.BatchPoints)
	for w.breaker().State != pipeline.BreakerClosed && !w.iteration.draining(w) {
		wait := min(w.iteration.spec.BatchAge.Std(), max(time.Until(w.iteration.End()), slowWrite))
		messages, err := w.consumer.FetchBytes(ctx, n, w.iteration.pipeline.MaxFetchBytes(), wait, w.iteration.Stopping())
		if err != nil {
			return nil, err
		}
		if !order.Follows(messages) {
			return nil, errOutOfOrder
		}
		b := newBatch(w)
		b.skip = skip
		for _, message := range messages {
			b.add(decoder, message)
		}
		err = b.store(ctx)
		if ackErr := w.acknowledge(ctx, b); ackErr != nil {
			return nil, ackErr
		}
		w.noteWrite(b, err)
		if err != nil {
			return b.heldMessage(), err
		}
	}
	return nil, nil
}

// rewind makes what was taken and not finished come first, and in order.
func (w *mirrorWriter) rewind(ctx context.Context) error {
	n, err := w.consumer.Rewind(ctx)
	if err != nil {
		return err
	}
	w.count("rewound", int64(n))
	return nil
}

// stream loads batch after batch: while one is written, the next is decoded, the
// one after it fetched, and the one before acknowledged. It ends with the iteration, or
// with an error, after which what was in hand is forgotten: it comes again when
// the mirror writer begins again.
func (w *mirrorWriter) stream(ctx context.Context) error {
	if err := w.rewind(ctx); err != nil {
		return err
	}
	whole := ctx // for what has to be finished
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := newFetcher(w)
	acks := make(chan *batch)
	stages, _ := job.NewGroup(ctx)
	var ackErr error
	stages.Go(func() error { return f.fetch(ctx) })
	stages.Go(func() error {
		f.encode(ctx)
		return nil
	})
	stages.Go(func() error {
		for b := range acks {
			if ackErr == nil {
				ackErr = job.Safely(func() error { return w.acknowledge(whole, b) })
			}
			if ackErr != nil {
				cancel() // nothing more gets in
			}
			f.recycle(b)
		}
		return nil
	})
	err := w.write(whole, f.batches, acks)
	cancel()
	close(acks)
	fetchErr := stages.Wait()
	return cmp.Or(err, ackErr, fetchErr)
}

// write writes batches until there are no more, or one cannot be written.
func (w *mirrorWriter) write(ctx context.Context, batches <-chan *batch, acks chan<- *batch) error {
	for b := range batches {
		if w.slow.Load() && w.iteration.draining(w) {
			return nil // the rest would take too long
		}
		if err := w.persist(ctx, b); err != nil {
			return err
		}
		acks <- b
	}
	return nil
}

// persist stores a batch, and tries again until it is stored or the breaker opens.
func (w *mirrorWriter) persist(ctx context.Context, b *batch) error {
	for {
		err := b.store(ctx)
		w.noteWrite(b, err)
		if err == nil {
			return nil
		}
		// What is stored, or refused for good, need not come again.
		if ackErr := w.acknowledge(ctx, b); ackErr != nil {
			return ackErr
		}
		var failed *influx.Error
		if ctx.Err() != nil || !errors.As(err, &failed) {
			return err
		}
		w.failed(err, b.heldMessage())
		if w.down() || !w.waitForTry(ctx) {
			return errBreakerOpened
		}
		b.stayAlive()
	}
}

// acknowledge answers the messages of a batch that are done with, up to the first that
// is not: an answer counts for all before it.
func (w *mirrorWriter) acknowledge(ctx context.Context, b *batch) error {
	var done []*pipeline.Delivery
	kept, last := 0, 0
	for i := range b.items {
		it := &b.items[i]
		if it.open > 0 {
			break
		}
		if !it.answered {
			it.answered = true
			done = append(done, it.message)
			if it.kept > 0 && !w.counted().Covers(it.message.Stored) {
				kept, last = kept+it.kept, i
			}
		}
	}
	if len(done) == 0 {
		return nil
	}
	if kept > 0 {
		w.countKept(ctx, kept, b.items[last].message.Stored)
	}
	if err := w.consumer.Ack(ctx, done); err != nil {
		return err
	}
	noted, err := w.consumer.AckNoted(ctx, done[len(done)-1])
	if err != nil {
		return err
	}
	if !noted {
		w.mu.Lock()
		w.notNoted++
		n := w.notNoted
		w.mu.Unlock()
		w.iteration.Logger().Warn("an acknowledgement had no effect; what is not acknowledged is loaded again", "mirror", w.mirror.Name, "in_a_row", n)
		return errAckNotNoted
	}
	w.mu.Lock()
	w.notNoted = 0
	w.state.Messages += int64(len(done))
	w.mu.Unlock()
	w.iteration.Count("messages", int64(len(done)))
	w.iteration.Save()
	return nil
}
