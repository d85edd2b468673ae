package archive

import (
	"context"
	"slices"

	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// archiveBatch archives what was buffered, and acknowledges it.
func (l *iteration) archiveBatch(ctx context.Context, g *buffer) error {
	for !g.empty() {
		of := Range{First: l.at.Next, Last: g.last()}
		if from, to, holes := g.holes(of.First, of.Last); holes {
			// The stream does not hold them, or they were acknowledged though they are not
			// archived, or another reads with the same consumer: only the stream can tell.
			missing, all, err := l.pipeline.Range(ctx, pipeline.StreamRaw, from, to,
				pipeline.Limit{Messages: l.spec.FlushMessages, Bytes: l.spec.FlushBytes})
			if err != nil {
				return err
			}
			for _, m := range missing {
				g.keep(m)
			}
			l.elsewhere = l.elsewhere || len(missing) > 0
			if !all {
				of.Last = missing[len(missing)-1].Sequence // the rest is for the next batch
			}
		}
		if err := l.archiveRange(ctx, of, g.upTo(of.Last)); err != nil {
			return err
		}
		done := g.drop(l.at.Next - 1)
		l.Save()
		if len(done) > 0 {
			if err := l.consumer.Ack(ctx, done); err != nil {
				return err
			}
		}
		if !g.full() {
			return nil
		}
	}
	return nil
}

// archiveRange makes a batch of a range and writes it, or completes the one that was
// recorded there by another run.
func (l *iteration) archiveRange(ctx context.Context, of Range, messages []pipeline.Stored) error {
	batch, err := Build(l.at.Incarnation, of, messages)
	if err != nil {
		return job.Fail(errclass.ArchiveDamaged, "archive messages %s of stream %s: %w", of, pipeline.StreamRaw, err)
	}
	if err := l.checkStream(ctx); err != nil {
		return err
	}
	recorded, ours, err := l.archive.WriteRecord(ctx, batch)
	if err != nil {
		return err
	}
	if !ours {
		return l.complete(ctx, recorded)
	}
	if err := l.write(ctx, batch); err != nil {
		return err
	}
	l.advance(batch)
	return nil
}

// write writes the objects of a batch.
func (l *iteration) write(ctx context.Context, batch Batch) error {
	for _, o := range batch.Objects {
		written, err := l.archive.Put(ctx, o)
		switch {
		case job.ClassOf(err) == errclass.ArchiveConflict:
			l.raise(err)
			l.Count("conflicts", 1)
			continue
		case err != nil:
			return err
		}
		if !written {
			l.Count("found", 1)
			continue
		}
		l.Count("objects", 1)
		l.Count("messages", o.Messages)
		l.Count("bytes", o.Bytes)
		l.Count("stored_bytes", o.Size)
		metrics.ArchiveObjects.Inc()
		metrics.ArchiveMessages.Add(o.Messages)
		metrics.ArchiveBytes.Add(o.Bytes)
		metrics.ArchiveStored.Add(o.Size)
	}
	return nil
}

// complete writes what is not there yet of a batch that was recorded before.
func (l *iteration) complete(ctx context.Context, recorded Batch) error {
	messages, _, err := l.pipeline.Range(ctx, pipeline.StreamRaw, recorded.First, recorded.Last, pipeline.Limit{})
	if err != nil {
		return err
	}
	made, err := Build(recorded.Incarnation, recorded.Range, messages)
	if err != nil {
		return job.Fail(errclass.ArchiveDamaged, "archive messages %s of stream %s: %w", recorded.Range, pipeline.StreamRaw, err)
	}
	rest := map[string]Object{} // made of fewer messages than were there at first
	made.Objects = slices.DeleteFunc(made.Objects, func(o Object) bool {
		same := slices.ContainsFunc(recorded.Objects, func(s Object) bool {
			return s.Key == o.Key && s.ContentSHA256 == o.ContentSHA256
		})
		if !same {
			rest[o.Key] = o
		}
		return !same
	})
	if err := l.write(ctx, made); err != nil {
		return err
	}
	for _, o := range recorded.Objects {
		if slices.ContainsFunc(made.Objects, func(m Object) bool { return m.Key == o.Key }) {
			continue
		}
		// It cannot be made again, because messages are gone since.
		if err := l.require(ctx, o, rest); err != nil {
			return err
		}
	}
	l.advance(recorded)
	l.Save()
	return nil
}

// require makes sure that an object is in the archive, or keeps what is left of it
// and raises an alarm.
func (l *iteration) require(ctx context.Context, o Object, rest map[string]Object) error {
	found, err := l.archive.Has(ctx, o)
	if err != nil || found {
		return err
	}
	kept := "none of them is left"
	if left, some := rest[o.Key]; some {
		key, err := l.archive.Keep(ctx, left)
		if err != nil {
			return err
		}
		kept = "what is left is kept as " + key
	}
	l.Count("incomplete", 1)
	l.raise(job.Fail(errclass.ArchiveIncomplete,
		"object %s/%s%s is not in the archive as it should be, and stream %s does not hold all of its messages any more: %s",
		l.archive.Bucket, l.archive.Prefix, o.Key, pipeline.StreamRaw, kept))
	return nil
}

func (l *iteration) advance(batch Batch) {
	l.Count("batches", 1)
	l.Count("replays", batch.Replays)
	for _, r := range batch.Gone {
		l.Count("gone", int64(r.Count()))
		l.Logger().Warn("the stream does not hold these messages any more", "stream", pipeline.StreamRaw, "numbers", r.String())
	}
	l.at.Next, l.at.Before = batch.Last+1, batch.To
}

// raise has an error seen without keeping the archive from going on: it is logged
// now, and the iteration fails with it at its end.
func (l *iteration) raise(err error) {
	l.Logger().Error("archive", "error", err.Error())
	if l.alarm == nil {
		l.alarm = err
	}
}
