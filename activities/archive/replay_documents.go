package archive

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// maxDocument bounds a document; it is more than a message may have.
const maxDocument = 16 << 20

// documentPattern finds the hour in the key of a document: …/YYYY/MM/DD/HH/mm_….json, or
// …/YYYY/MM/DD/HH.json of Release 2.
var documentPattern = regexp.MustCompile(`/(\d{4}/\d\d/\d\d/\d\d)(?:/[^/]+)?\.json$`)

// documentHour is the hour in the key of a document; false if it has none.
func documentHour(key string) (time.Time, bool) {
	found := documentPattern.FindStringSubmatch(key)
	if found == nil {
		return time.Time{}, false
	}
	hour, err := time.Parse("2006/01/02/15", found[1])
	return hour, err == nil
}

// allDocuments publishes the documents of a folder, in the order of their keys: those of
// a table one after the other, each in the order of its records.
func (r *replaying) allDocuments(ctx context.Context) error {
	folder := r.spec.Prefix + r.spec.Documents
	after := ""
	if r.at.Key != "" {
		after = r.spec.Prefix + r.at.Key
	}
	var keys []string
	for info, err := range r.archive.Store.ListAfter(ctx, r.spec.Bucket, folder, after) {
		if err != nil {
			return err
		}
		hour, ok := documentHour(info.Key)
		if !ok || !hour.Add(time.Hour).After(r.spec.From) || !hour.Before(r.spec.To) {
			continue
		}
		keys = append(keys, info.Key)
		if len(keys) == replayChunk {
			if err := r.documents(ctx, keys); err != nil {
				return err
			}
			keys = keys[:0]
		}
	}
	return r.documents(ctx, keys)
}

// documents publishes documents, and notes the last of them.
func (r *replaying) documents(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	bodies := make([][]byte, len(keys))
	reads, reading := job.NewGroup(ctx)
	reads.SetLimit(documentsAtOnce)
	for i, key := range keys {
		reads.Go(func() (err error) {
			bodies[i], _, err = r.archive.Store.Get(reading, r.spec.Bucket, key, maxDocument)
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return err
	}
	var chunk []pipeline.Outgoing
	for i, key := range keys {
		body, header := pipeline.MarkReplay(bodies[i], r.at.At)
		message := pipeline.Outgoing{Subject: r.subject, Body: body, Header: header, ID: pipeline.ID("replay", r.run.ID(), key)}
		if err := r.pipeline.CheckSize(message); err != nil {
			r.run.Logger().Warn("a document is not published", "object", key, "error", err)
			r.at.Counts["too_large"]++
			continue
		}
		chunk = append(chunk, message)
	}
	if err := r.publish(ctx, chunk); err != nil {
		return err
	}
	r.at.Key = strings.TrimPrefix(keys[len(keys)-1], r.spec.Prefix)
	r.at.Counts["objects"] += int64(len(keys))
	r.run.Checkpoint(job.Progress{
		Done: r.at.Counts["messages"], Message: "messages published again, up to " + r.at.Key,
	}, r.at)
	if job.Stopped(r.run) {
		return job.ErrStopped
	}
	return nil
}

// noDocuments says why there was nothing to publish.
func (r *replaying) noDocuments(ctx context.Context) (string, error) {
	folder := r.spec.Prefix + r.spec.Documents
	for _, err := range r.archive.Store.List(ctx, r.spec.Bucket, folder) {
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("nothing published: no document under %s/%s is of that time", r.spec.Bucket, folder), nil
	}
	return "", job.Fail(errclass.NotArchived, "there is no object under %s/%s", r.spec.Bucket, folder)
}
