package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/iterate"
)

const (
	// fetchSize is how many messages are asked for at a time.
	fetchSize = 2000
	// fetchBytes is about how much is asked for at a time: 2,000 messages of the
	// largest size are more than a worker should hold.
	fetchBytes = 32 << 20
	// fetchWait is how long they are waited for before the run reports.
	fetchWait = 5 * time.Second
	// maxPartitions is how many objects a batch has at most, about.
	maxPartitions = 500
	// minAge is how long a batch waits at least, also if its messages are old, and
	// fetchMinWait how long a fetch waits for a backlog to go on.
	minAge       = 500 * time.Millisecond
	fetchMinWait = 200 * time.Millisecond
)

type post struct {
	pipeline *pipeline.Client
	store    *objects.Store
}

// PostToArchive makes the job type of that name. Nil clients are enough to
// describe it.
//
// For spec.IterationDuration, an iteration takes raw messages of all organizations
// and sources in the order of their stream, writes batches of them to the
// archive, and acknowledges a message when its batch is complete there.
func PostToArchive(client *pipeline.Client, store *objects.Store) job.Type {
	h := &post{pipeline: client, store: store}
	return job.NewType("PostToArchive", job.WorkerLoad,
		"Keeps the raw messages of all integrations in an S3 archive.",
		h.handle, job.ModeContinuous)
}

// cursor is where the next batch begins.
type cursor struct {
	// Bucket and Prefix are where batches go; elsewhere the archive begins anew.
	Bucket string `json:"bucket"`
	Prefix string `json:"prefix,omitempty"`

	Incarnation Incarnation `json:"incarnation"`
	Next        uint64      `json:"next"`
	// Before is when the stream took the message before that.
	Before time.Time `json:"before,omitzero"`
}

// source gives the raw messages, as a [pipeline.Consumer] does.
type source interface {
	FetchBytes(ctx context.Context, n, bytes int, wait time.Duration, stop <-chan struct{}) ([]*pipeline.Delivery, error)
	Rewind(ctx context.Context) (int, error)
	FetchInOrder(ctx context.Context, n int, wait time.Duration, stop <-chan struct{}) ([]*pipeline.Delivery, int, error)
	Ack(ctx context.Context, messages []*pipeline.Delivery) error
}

// iteration is one iteration.
type iteration struct {
	*iterate.Iteration

	spec     PostSpec
	pipeline *pipeline.Client
	consumer source
	buffer   *buffer // nil with documents
	// elsewhere says that messages were archived that this iteration was not given: they
	// were lost on their way, or another reader took them.
	elsewhere bool
	archive   Archive
	at        cursor
	alarm     error // what does not keep the archive from going on, but has to be seen
}

func (h *post) handle(ctx context.Context, run job.Run, spec PostSpec) (job.Result, error) {
	l := &iteration{
		spec: spec, pipeline: h.pipeline,
		archive: Archive{Store: h.store, Bucket: spec.Bucket, Prefix: spec.Prefix},
	}
	l.Iteration = iterate.New(run, spec.IterationDuration.Std(), l.progress)
	err := l.open(ctx)
	if err == nil {
		err = l.work(ctx)
	}
	if err == nil {
		err = l.alarm
	}
	result := job.Result{
		Message: fmt.Sprintf("%d messages archived in %d objects of bucket %s", l.Counted("messages"), l.Counted("objects"), spec.Bucket),
		Counts:  l.Counts(),
	}
	if l.at.Next > 0 {
		result.Cursor = job.EncodeJSON(l.at)
	}
	return result, keepTrying(err)
}

// keepTrying makes every error one that is worth another iteration: the messages
// are in the stream, and someone or time will mend what is wrong.
func keepTrying(err error) error {
	var failure *job.Failure
	if errors.As(err, &failure) && failure.Kind.Final() {
		return job.Retryable(failure.Class, time.Minute, "%w", err)
	}
	return err
}

// open opens the consumer. What an earlier iteration took and did not archive comes
// first, and in order.
func (l *iteration) open(ctx context.Context) error {
	var metadata map[string]string
	if l.spec.Layout == LayoutBatches {
		metadata = l.archive.ConsumerMetadata(l.spec.Generation)
	}
	consumer, err := l.pipeline.Consumer(ctx, pipeline.StreamRaw, pipeline.ConsumerOptions{
		Name:    ConsumerName(l.Job().ID, l.spec.Generation),
		Subject: pipeline.RawSubjects,
		// Nothing is answered before its batch is archived.
		AckWait:       l.spec.FlushAge.Std() + 15*time.Minute,
		MaxAckPending: l.spec.FlushMessages + 2*fetchSize,
		Metadata:      metadata,
	})
	if err != nil {
		return err
	}
	l.consumer = consumer
	rewound, err := consumer.Rewind(ctx)
	l.Count("rewound", int64(rewound))
	return err
}

// work takes one step after another, as the layout has it.
func (l *iteration) work(ctx context.Context) error {
	if l.spec.Layout == LayoutDocuments {
		return l.Loop(ctx, l.documents)
	}
	if err := l.findPlace(ctx); err != nil {
		return err
	}
	l.buffer = newBuffer(l.spec)
	// What is in the buffer when a stop comes is not acknowledged, and comes again.
	return l.Loop(ctx, l.batches)
}

// batches is the step that fetches messages, and archives them when they are enough or
// have waited long enough. What has been fetched is archived also after the deadline.
func (l *iteration) batches(ctx context.Context) (iterate.Next, error) {
	b := l.buffer
	n := max(1, min(fetchSize, l.spec.FlushMessages-len(b.messages)))
	fetched, err := l.consumer.FetchBytes(ctx, n, fetchBytes, b.wait(l.End()), l.Stopping())
	if err != nil {
		return iterate.Done, err
	}
	if err := l.acknowledgeOld(ctx, b.add(fetched, l.at.Next)); err != nil {
		return iterate.Done, err
	}
	// With more to come at once, an old message need not hurry.
	if b.full() || (b.due() && len(fetched) < n) {
		if err := l.archiveBatch(ctx, b); err != nil {
			return iterate.Done, err
		}
	}
	if !b.empty() {
		return iterate.Unfinished, nil
	}
	if l.elsewhere || len(fetched) == 0 {
		return iterate.More, l.askAgain(ctx)
	}
	return iterate.More, nil
}

// askAgain has messages delivered again that nobody has acknowledged, while this iteration
// holds none: they were lost on their way, or another reader took them. By themselves they
// come only when AckWait is over.
func (l *iteration) askAgain(ctx context.Context) error {
	l.elsewhere = false
	rewound, err := l.consumer.Rewind(ctx)
	l.Count("rewound", int64(rewound))
	return err
}

// acknowledgeOld acknowledges what was archived before it could be acknowledged.
func (l *iteration) acknowledgeOld(ctx context.Context, old []*pipeline.Delivery) error {
	if len(old) == 0 {
		return nil
	}
	if err := l.checkStream(ctx); err != nil {
		return err
	}
	return l.consumer.Ack(ctx, old)
}

// progress is what a checkpoint says, and where the next batch begins.
func (l *iteration) progress(counts map[string]int64) (job.Progress, any) {
	if l.spec.Layout == LayoutDocuments {
		return job.Progress{Done: counts["messages"], Message: "messages archived as documents"}, nil
	}
	waiting := 0
	if l.buffer != nil {
		waiting = len(l.buffer.messages)
	}
	return job.Progress{
		Done:    counts["messages"],
		Message: fmt.Sprintf("messages archived, up to number %d of stream %s, %d waiting", l.at.Next-1, pipeline.StreamRaw, waiting),
	}, l.at
}

// findPlace says where the next batch begins, and completes what was begun.
func (l *iteration) findPlace(ctx context.Context) error {
	state, err := l.pipeline.StreamState(ctx, pipeline.StreamRaw)
	if err != nil {
		return err
	}
	incarnation := NewIncarnation(pipeline.StreamRaw, state.Created, l.spec.Generation)
	if _, err := l.Cursor(&l.at); err != nil {
		return err
	}
	place := cursor{Bucket: l.spec.Bucket, Prefix: l.spec.Prefix, Incarnation: incarnation, Next: 1}
	if l.at.Bucket != place.Bucket || l.at.Prefix != place.Prefix || l.at.Incarnation != incarnation || l.at.Next == 0 {
		l.at = place
		last, found, err := l.archive.LastBatch(ctx, incarnation)
		if err != nil {
			return err
		}
		if found {
			l.at.Next = last.First // it may not be complete
		}
	}
	for {
		recorded, found, err := l.archive.Batch(ctx, incarnation, l.at.Next)
		if err != nil {
			return err
		}
		if !found {
			return l.checkStream(ctx)
		}
		if err := l.complete(ctx, recorded); err != nil {
			return err
		}
	}
}

// checkStream makes sure that the numbers from l.at.Next on are new: that the
// stream did not lose its tail, as a power failure may do, and count from there
// again.
func (l *iteration) checkStream(ctx context.Context) error {
	if l.at.Next == 1 {
		return nil
	}
	archived := l.at.Next - 1
	const advice = "archiving waits, and nothing is lost, until the job's generation is raised"
	state, err := l.pipeline.StreamState(ctx, pipeline.StreamRaw)
	if err != nil {
		return err
	}
	if state.Last < archived {
		return job.FailAfter(errclass.StreamWentBack, time.Minute,
			"stream %s on %s ends with message %d, and messages up to %d are archived: %s",
			pipeline.StreamRaw, l.pipeline.Address(), state.Last, archived, advice)
	}
	if l.at.Before.IsZero() {
		return nil
	}
	taken, found, err := l.pipeline.TimeOf(ctx, pipeline.StreamRaw, archived)
	if err != nil {
		return err
	}
	if found && !taken.Equal(l.at.Before) {
		return job.FailAfter(errclass.StreamWentBack, time.Minute,
			"message %d of stream %s on %s is of %s, and the archived one of %s, so that the stream gave numbers twice: %s",
			archived, pipeline.StreamRaw, l.pipeline.Address(), taken.Format(time.RFC3339Nano), l.at.Before.Format(time.RFC3339Nano), advice)
	}
	return nil
}
