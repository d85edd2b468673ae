package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

const (
	// ackWait is how long the server waits for an answer to a message. A write
	// that takes longer says so in between.
	ackWait = 90 * time.Second
	// fetchSize is how many messages are asked for at a time.
	fetchSize = 500
)

// Option changes what the job type works with.
type Option func(*liveInflux)

// WithHTTPClient sets what requests to InfluxDB are made with.
func WithHTTPClient(client *http.Client) Option { return func(h *liveInflux) { h.http = client } }

type liveInflux struct {
	pipeline *pipeline.Client
	http     *http.Client
}

// LiveInflux makes the job type LiveLoadInfluxV1. A nil client is enough to
// describe it.
//
// An iteration is a lap: for spec.Lap it takes messages, writes their points in
// batches, and acknowledges a message when each of its points is stored, kept in
// quarantine, or counted as older than the database keeps. When InfluxDB or the
// pipeline fails, the iteration fails, nothing more is acknowledged, and the next
// one takes the same messages again, in the order of the stream.
func LiveInflux(client *pipeline.Client, options ...Option) job.Type {
	h := &liveInflux{pipeline: client}
	for _, option := range options {
		option(h)
	}
	return job.NewType("LiveLoadInfluxV1", job.WorkerLoad,
		"Loads the prepared messages of a location into InfluxDB 1.x.",
		h.handle, job.ModeContinuous)
}

func (h *liveInflux) handle(ctx context.Context, run job.Run, spec LiveInfluxSpec) (job.Result, error) {
	spec = spec.withDefaults()
	config := influx.Config{URL: spec.InfluxURL, Username: spec.Username, HTTPClient: h.http}
	if spec.Password != "" {
		password, err := run.Secret(spec.Password)
		if err != nil {
			return job.Result{}, err
		}
		config.Password = password
	}
	writer, err := influx.NewWriter(config)
	if err != nil {
		return job.Result{}, job.Final(job.ClassInvalidSpec, "job %s: %w", run.Job().ID, err)
	}
	l := &lap{
		run: run, spec: spec, pipeline: h.pipeline, writer: writer,
		maxBytes: spec.BatchBytes, counts: map[string]int64{},
	}
	err = l.drive(ctx)
	return l.result(), err
}

// lap is one iteration.
type lap struct {
	run      job.Run
	spec     LiveInfluxSpec
	pipeline *pipeline.Client
	consumer *pipeline.Consumer
	writer   *influx.Writer

	maxBytes int // of a write; falls when the server finds one too big
	counts   map[string]int64
}

func (l *lap) drive(ctx context.Context) error {
	var err error
	l.consumer, err = l.pipeline.Consumer(ctx, pipeline.StreamPrepared, pipeline.ConsumerOptions{
		Name:    ConsumerName(l.spec.OperationMode, l.spec.Location),
		Subject: pipeline.PrepSubject(l.spec.OperationMode, l.spec.Location),
		AckWait: ackWait,
		// Twice a batch and what a fetch may be over it.
		MaxAckPending: max(20_000, 2*(l.spec.BatchPoints+fetchSize)),
	})
	if err != nil {
		return err
	}
	// What an earlier lap took and did not finish comes first, and in order.
	rewound, err := l.consumer.Rewind(ctx)
	if err != nil {
		return err
	}
	l.counts["rewound"] = int64(rewound)

	end := time.Now().Add(l.spec.Lap.Std())
	for time.Now().Before(end) && !l.stopping() {
		messages, err := l.gather(ctx)
		if err != nil {
			return err
		}
		if len(messages) == 0 {
			continue
		}
		if err := l.load(ctx, messages); err != nil {
			return err
		}
		l.run.Checkpoint(job.Progress{
			Done:    l.counts["points"],
			Message: fmt.Sprintf("%d messages, %d points to %s", l.counts["messages"], l.counts["points"], l.writer.Address()),
		}, nil)
	}
	return nil
}

func (l *lap) stopping() bool {
	select {
	case <-l.run.Stopping():
		return true
	default:
		return false
	}
}

// gather takes messages until they are enough for a write or the first of them
// has waited for spec.BatchAge, or the job is to stop.
func (l *lap) gather(ctx context.Context) ([]jetstream.Msg, error) {
	var messages []jetstream.Msg
	var size int
	deadline := time.Now().Add(max(l.spec.BatchAge.Std(), pipeline.MinFetch))
	for len(messages) < l.spec.BatchPoints && size < l.maxBytes {
		wait := time.Until(deadline)
		if len(messages) > 0 && wait < pipeline.MinFetch {
			break
		}
		n := min(fetchSize, l.spec.BatchPoints-len(messages))
		fetched, err := l.consumer.Fetch(ctx, n, wait, l.run.Stopping())
		if err != nil {
			if len(messages) > 0 {
				break // these can be written; the next fetch will tell again
			}
			return nil, err
		}
		for _, message := range fetched {
			size += len(message.Data())
		}
		messages = append(messages, fetched...)
		if len(fetched) < n {
			break
		}
	}
	return messages, nil
}

// load stores the points of messages and acknowledges the messages. After a
// failure it acknowledges those that are complete, and gives back the others.
func (l *lap) load(ctx context.Context, messages []jetstream.Msg) error {
	batch := newBatch(l, messages)
	err := batch.store(ctx)

	var done, open []jetstream.Msg
	for _, item := range batch.items {
		if item.open == 0 {
			done = append(done, item.message)
		} else {
			open = append(open, item.message)
		}
	}
	if ackErr := l.consumer.Ack(ctx, done); ackErr != nil {
		return ackErr // the stream is away, whatever the database said
	}
	l.counts["messages"] += int64(len(done))
	if err == nil {
		return nil
	}
	for _, message := range open {
		// The next lap rewinds to them; this only spares a server without rewinding
		// the wait for ackWait.
		if nakErr := message.Nak(); nakErr != nil {
			break
		}
		l.counts["naks"]++
	}
	return l.failure(ctx, err)
}

// Classes of errors of a lap. None of them is final: the messages are kept, and
// someone or time will mend it.
const (
	ClassUnreachable = "InfluxUnreachable" // no answer, or too busy
	ClassConfig      = "InfluxConfig"      // credentials, permissions, retention policy
	ClassLimits      = "InfluxLimits"      // too many series or values of a tag, cache full
)

// limitsWait is how long a full server is left alone.
const limitsWait = time.Minute

func (l *lap) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var failed *influx.Error
	if !errors.As(err, &failed) {
		return err
	}
	switch failed.Kind {
	case influx.KindTransient:
		return job.Retryable(ClassUnreachable, failed.RetryAfter, "location %s: %w", l.spec.Location, err)
	case influx.KindLimits:
		return job.Retryable(ClassLimits, max(failed.RetryAfter, limitsWait),
			"location %s waits, since InfluxDB is at a limit of its configuration: %w", l.spec.Location, err)
	}
	return job.Retryable(ClassConfig, failed.RetryAfter, "location %s: %w", l.spec.Location, err)
}

func (l *lap) result() job.Result {
	return job.Result{
		Message: fmt.Sprintf("%d messages, %d points in %d writes to %s",
			l.counts["messages"], l.counts["points"], l.counts["batches"], l.writer.Address()),
		Counts: l.counts,
	}
}
