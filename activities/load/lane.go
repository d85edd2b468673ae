package load

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/lines"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

const (
	// ackWait is how long the server waits for an answer to a message: longer than
	// a batch takes with all its tries. A lane that starts does not wait for it, since
	// it rewinds.
	ackWait = 5 * time.Minute
	// probeSize is how many messages a mirror is tried with that was down.
	probeSize = 100
	// slowWrite is what makes a mirror a slow one, whose others do not wait for it.
	slowWrite = 250 * time.Millisecond
	// rateInterval is the least time over which points per second are counted.
	rateInterval = time.Second
)

// Reasons for a lane to begin again.
var (
	errBreakerOpened = errors.New("the mirror is down")
	errOutOfOrder    = errors.New("a message came out of order")
)

// lane loads a mirror.
type lane struct {
	lap      *lap
	mirror   InfluxMirror
	writer   *influx.Writer
	consumer *pipeline.Consumer

	parked   atomic.Bool  // takes nothing more in this lap, or is down
	slow     atomic.Bool  // the last write took long
	writing  atomic.Int64 // when the write in hand began; 0: none is
	maxBytes atomic.Int64 // of a write; falls when the server finds one too big

	mu     sync.Mutex
	state  pipeline.LoadState
	counts map[string]int64
	err    error // why the lane has ended, unless the lap is over
	rate   struct {
		since  time.Time
		points int64
	}
}

func newLane(l *lap, m InfluxMirror, writer *influx.Writer) *lane {
	w := &lane{lap: l, mirror: m, writer: writer, counts: map[string]int64{}}
	w.state.Breaker.State = pipeline.BreakerClosed
	w.maxBytes.Store(int64(l.spec.BatchBytes))
	return w
}

// work loads the mirror until the lap is over. What the mirror answers is in the
// state of its breaker; the error is about the stream.
func (w *lane) work(ctx context.Context) error {
	if err := w.open(ctx); err != nil {
		return err
	}
	for !w.lap.leaving(w) || w.lap.linger(ctx, w) {
		if w.breaker().State != pipeline.BreakerClosed {
			w.parked.Store(true)
			if !w.waitForTry(ctx) {
				break
			}
			if err := w.probe(ctx); err != nil && !errors.Is(err, errOutOfOrder) {
				return err
			}
			continue
		}
		w.parked.Store(false)
		err := w.stream(ctx)
		if err != nil && !errors.Is(err, errBreakerOpened) && !errors.Is(err, errOutOfOrder) {
			return err
		}
	}
	return ctx.Err()
}

// open opens the consumer, and goes on from what was told of the load before.
func (w *lane) open(ctx context.Context) error {
	spec := &w.lap.spec
	consumer, err := w.lap.pipeline.Consumer(ctx, pipeline.StreamPrepared, pipeline.ConsumerOptions{
		Name:    pipeline.LoadConsumer(spec.OperationMode, spec.Location, w.mirror.Name),
		Subject: pipeline.PrepSubject(spec.OperationMode, spec.Location),
		AckWait: ackWait,
		InOrder: true,
		// What may be in hand, and more.
		MaxAckPending: max(20_000, 4*(spec.BatchPoints+fetchSize)),
	})
	if err != nil {
		return err
	}
	w.consumer = consumer
	state, err := w.lap.pipeline.LoadState(ctx, spec.OperationMode, spec.Location, w.mirror.Name)
	if err != nil {
		return err
	}
	now := time.Now()
	if state.StartedAt.IsZero() {
		state.StartedAt = now.UTC()
	}
	if state.Address != "" && state.Address != w.writer.Address() {
		// Another server: what the old one said does not hold for it.
		state.Breaker, state.MaxBytes = pipeline.Breaker{State: pipeline.BreakerClosed}, 0
	}
	if state.MaxBytes > 0 && state.BatchBytes == spec.BatchBytes {
		w.maxBytes.Store(int64(state.MaxBytes))
	} else {
		state.MaxBytes = 0
	}
	state.BatchBytes = spec.BatchBytes
	state.Address, state.Job = w.writer.Address(), w.lap.run.Job().ID
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = state
	w.rate.since, w.rate.points = now, state.Points
	return nil
}

// waitForTry waits until the mirror may be tried again, and reports false when the
// lap ends before.
func (w *lane) waitForTry(ctx context.Context) bool {
	timer := time.NewTimer(time.Until(w.breaker().RetryAt))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-w.lap.run.Stopping():
			return false
		case <-w.lap.over:
			return false
		case <-ctx.Done():
			return false
		case <-time.After(max(time.Until(w.lap.end), slowWrite)):
			if w.lap.leaving(w) {
				return false
			}
		}
	}
}

// probe asks the mirror whether it is there, and gives it a small batch: the first
// messages that it has not.
func (w *lane) probe(ctx context.Context) error {
	w.mu.Lock()
	w.state.Breaker.State = pipeline.BreakerTrying
	w.mu.Unlock()
	err := w.writer.Ping(ctx)
	if err == nil {
		var failed *influx.Error
		if err = w.tryBatch(ctx); err != nil && !errors.As(err, &failed) {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.failed(err)
		return nil
	}
	w.succeeded()
	return nil
}

func (w *lane) tryBatch(ctx context.Context) error {
	if err := w.rewind(ctx); err != nil {
		return err
	}
	messages, err := w.consumer.FetchBytes(ctx, min(probeSize, w.lap.spec.BatchPoints), w.fetchBytes(), pipeline.MinFetch, w.lap.run.Stopping())
	if err != nil {
		return err
	}
	order := order{delivered: w.consumer.Before()}
	if err := order.check(messages); err != nil {
		return err
	}
	b := newBatch(w)
	decoder := lines.NewDecoder()
	for _, message := range messages {
		b.add(decoder, message)
	}
	err = b.store(ctx)
	if ackErr := w.acknowledge(ctx, b); ackErr != nil {
		return ackErr
	}
	return err
}

// rewind makes what was taken and not finished come first, and in order.
func (w *lane) rewind(ctx context.Context) error {
	n, err := w.consumer.Rewind(ctx)
	if err != nil {
		return err
	}
	w.count("rewound", int64(n))
	return nil
}

// stream loads batch after batch: while one is written, the next is decoded, the
// one after it fetched, and the one before acknowledged. It ends with the lap, or
// with an error, after which what was in hand is forgotten: it comes again when
// the lane begins again.
func (w *lane) stream(ctx context.Context) error {
	if err := w.rewind(ctx); err != nil {
		return err
	}
	whole := ctx // for what has to be finished
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := newFeed(w)
	acks := make(chan *batch)
	var stages sync.WaitGroup
	var fetchErr, ackErr error
	stages.Go(func() { fetchErr = f.fetch(ctx) })
	stages.Go(func() { f.encode(ctx) })
	stages.Go(func() {
		for b := range acks {
			if ackErr == nil {
				ackErr = w.acknowledge(whole, b)
			}
			if ackErr != nil {
				cancel() // nothing more gets in
			}
			f.recycle(b)
		}
	})
	err := w.write(whole, f.batches, acks)
	cancel()
	close(acks)
	stages.Wait()
	switch {
	case err != nil:
		return err
	case ackErr != nil:
		return ackErr
	case fetchErr != nil:
		return fetchErr
	}
	return nil
}

// write writes batches until there are no more, or one cannot be written.
func (w *lane) write(ctx context.Context, batches <-chan *batch, acks chan<- *batch) error {
	for b := range batches {
		if w.slow.Load() && w.lap.leaving(w) {
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
func (w *lane) persist(ctx context.Context, b *batch) error {
	for {
		err := b.store(ctx)
		if err == nil {
			w.succeeded()
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
		w.failed(err)
		if w.down() || !w.waitForTry(ctx) {
			return errBreakerOpened
		}
		b.stayAlive()
	}
}

// acknowledge answers the messages of a batch that are done with: up to the first
// that is not, where an answer counts for all before it.
func (w *lane) acknowledge(ctx context.Context, b *batch) error {
	var done []jetstream.Msg
	for i := range b.items {
		it := &b.items[i]
		if it.open > 0 && w.consumer.InOrder() {
			break
		}
		if it.open == 0 && !it.answered {
			it.answered = true
			done = append(done, it.message)
		}
	}
	if len(done) == 0 {
		return nil
	}
	if err := w.consumer.Ack(ctx, done); err != nil {
		return err
	}
	w.mu.Lock()
	w.counts["messages"] += int64(len(done))
	w.state.Messages += int64(len(done))
	w.mu.Unlock()
	w.lap.checkpoint()
	return nil
}
