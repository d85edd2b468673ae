package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/archive"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// Classes of errors, besides those of the archive itself.
const (
	// ClassStreamWentBack means that the stream does not hold what was archived
	// from it, under numbers that it will give, or has given, to other messages.
	ClassStreamWentBack = "StreamWentBack"
	// ClassIncomplete means that messages of a batch were gone from the stream
	// before they were archived, though they had been there when it was begun.
	ClassIncomplete = "ArchiveIncomplete"
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
	// minAge is how long a batch gathers at least, also if its messages are old, and
	// linger how long a fetch waits for a backlog to go on.
	minAge = 500 * time.Millisecond
	linger = 200 * time.Millisecond
)

type post struct {
	pipeline *pipeline.Client
	store    *objects.Store
}

// PostToArchive makes the job type of that name. Nil clients are enough to
// describe it.
//
// An iteration is a lap: for spec.IterationDuration it takes raw messages of all organizations
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

	Life archive.Life `json:"life"`
	Next uint64       `json:"next"`
	// Before is when the stream took the message before that.
	Before time.Time `json:"before,omitzero"`
}

// lap is one iteration.
type lap struct {
	run      job.Run
	spec     PostSpec
	pipeline *pipeline.Client
	consumer *pipeline.Consumer
	archive  archive.Archive
	at       cursor
	alarm    error // what does not keep the archive from going on, but has to be seen
	counts   map[string]int64
}

func (h *post) handle(ctx context.Context, run job.Run, spec PostSpec) (job.Result, error) {
	l := &lap{
		run: run, spec: spec, pipeline: h.pipeline, counts: map[string]int64{},
		archive: archive.Archive{Store: h.store, Bucket: spec.Bucket, Prefix: spec.Prefix},
	}
	work := l.batches
	if spec.Layout == LayoutDocuments {
		work = l.documents
	}
	err := l.open(ctx)
	if err == nil {
		err = work(ctx)
	}
	if err == nil {
		err = l.alarm
	}
	result := job.Result{
		Message: fmt.Sprintf("%d messages archived in %d objects of bucket %s", l.counts["messages"], l.counts["objects"], spec.Bucket),
		Counts:  l.counts,
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
	if errors.As(err, &failure) && failure.Final {
		return job.Retryable(failure.Class, time.Minute, "%w", err)
	}
	return err
}

// open opens the consumer. What an earlier lap took and did not archive comes
// first, and in order.
func (l *lap) open(ctx context.Context) error {
	var metadata map[string]string
	if l.spec.Layout == LayoutBatches {
		metadata = l.archive.ConsumerMetadata(l.spec.Generation)
	}
	var err error
	l.consumer, err = l.pipeline.Consumer(ctx, pipeline.StreamRaw, pipeline.ConsumerOptions{
		Name:    ConsumerName(l.run.Job().ID, l.spec.Generation),
		Subject: pipeline.RawSubjects,
		// Nothing is answered before its batch is archived.
		AckWait:       l.spec.FlushAge.Std() + 15*time.Minute,
		MaxAckPending: l.spec.FlushMessages + 2*fetchSize,
		Metadata:      metadata,
	})
	if err != nil {
		return err
	}
	rewound, err := l.consumer.Rewind(ctx)
	l.counts["rewound"] = int64(rewound)
	return err
}

// batches gathers and archives until the lap is over.
func (l *lap) batches(ctx context.Context) error {
	if err := l.findPlace(ctx); err != nil {
		return err
	}
	end := time.Now().Add(l.spec.IterationDuration.Std())
	batch := newGathering(l.spec)
	for !job.Stopped(l.run) {
		if batch.empty() && !time.Now().Before(end) {
			break
		}
		n := max(1, min(fetchSize, l.spec.FlushMessages-len(batch.messages)))
		fetched, err := l.consumer.FetchBytes(ctx, n, fetchBytes, batch.wait(end), l.run.Stopping())
		if err != nil {
			return err
		}
		old, err := batch.add(fetched, l.at.Next)
		if err != nil {
			return err
		}
		if len(old) > 0 {
			// Archived before they could be acknowledged.
			if err := l.checkStream(ctx); err != nil {
				return err
			}
			if err := l.consumer.Ack(ctx, old); err != nil {
				return err
			}
		}
		// With more to come at once, an old message need not hurry.
		if batch.full() || (batch.due() && len(fetched) < n) {
			if err := l.archiveBatch(ctx, batch); err != nil {
				return err
			}
		}
		l.report(len(batch.messages))
	}
	// What was gathered when a stop came is not acknowledged, and comes again.
	return nil
}

func (l *lap) report(waiting int) {
	l.run.Checkpoint(job.Progress{
		Done:    l.counts["messages"],
		Message: fmt.Sprintf("messages archived, up to number %d of stream %s, %d gathered", l.at.Next-1, pipeline.StreamRaw, waiting),
	}, l.at)
}

// findPlace says where the next batch begins, and completes what was begun.
func (l *lap) findPlace(ctx context.Context) error {
	state, err := l.pipeline.StreamState(ctx, pipeline.StreamRaw)
	if err != nil {
		return err
	}
	life := archive.NewLife(pipeline.StreamRaw, state.Created, l.spec.Generation)
	if _, err := l.run.Cursor(&l.at); err != nil {
		return err
	}
	place := cursor{Bucket: l.spec.Bucket, Prefix: l.spec.Prefix, Life: life, Next: 1}
	if l.at.Bucket != place.Bucket || l.at.Prefix != place.Prefix || l.at.Life != life || l.at.Next == 0 {
		l.at = place
		last, found, err := l.archive.LastBatch(ctx, life)
		if err != nil {
			return err
		}
		if found {
			l.at.Next = last.First // it may not be complete
		}
	}
	for {
		settled, found, err := l.archive.Batch(ctx, life, l.at.Next)
		if err != nil {
			return err
		}
		if !found {
			return l.checkStream(ctx)
		}
		if err := l.complete(ctx, settled); err != nil {
			return err
		}
	}
}

// checkStream makes sure that the numbers from l.at.Next on are new: that the
// stream did not lose its tail, as a power failure may do, and count from there
// again.
func (l *lap) checkStream(ctx context.Context) error {
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
		return job.Retryable(ClassStreamWentBack, time.Minute,
			"stream %s on nats %s ends with message %d, and messages up to %d are archived: %s",
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
		return job.Retryable(ClassStreamWentBack, time.Minute,
			"message %d of stream %s on nats %s is of %s, and the archived one of %s, so that the stream gave numbers twice: %s",
			archived, pipeline.StreamRaw, l.pipeline.Address(), taken.Format(time.RFC3339Nano), l.at.Before.Format(time.RFC3339Nano), advice)
	}
	return nil
}
