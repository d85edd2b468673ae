package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// DefaultBucket is the bucket of an archive that names none.
const DefaultBucket = "archive"

const (
	maxObject = 512 << 20
	maxRecord = 64 << 20
)

// Archive is an archive in a bucket.
type Archive struct {
	Store  *objects.Store
	Bucket string
	// Prefix goes before every key: "" or text that ends with a slash.
	Prefix string
}

// Metadata of a consumer that says which archive it feeds.
const (
	metadataBucket     = "dendra-archive-bucket"
	metadataPrefix     = "dendra-archive-prefix"
	metadataGeneration = "dendra-archive-generation"
)

// ConsumerMetadata is what the consumer of this archive's job carries, so that an
// audit finds it.
func (a Archive) ConsumerMetadata(generation int) map[string]string {
	return map[string]string{metadataBucket: a.Bucket, metadataPrefix: a.Prefix, metadataGeneration: strconv.Itoa(generation)}
}

// ConsumerPrefix is what the names of consumers begin with that feed an archive.
const ConsumerPrefix = "archive-"

// IsConsumer reports whether a consumer of the raw stream feeds an archive, of any layout.
func IsConsumer(c pipeline.ConsumerState) bool {
	return strings.HasPrefix(c.Name, ConsumerPrefix) && c.Subject == pipeline.RawSubjects
}

// feeds reports whether a consumer feeds a generation of this archive.
func (a Archive) feeds(c pipeline.ConsumerState, generation int) bool {
	return c.Metadata[metadataBucket] == a.Bucket && c.Metadata[metadataPrefix] == a.Prefix &&
		c.Metadata[metadataGeneration] == strconv.Itoa(generation)
}

// Batch reads the record of the batch that begins with a number; false if there
// is none.
func (a Archive) Batch(ctx context.Context, incarnation Incarnation, first uint64) (Batch, bool, error) {
	key := batchKey(incarnation, first)
	data, _, err := a.Store.Get(ctx, a.Bucket, a.Prefix+key, maxRecord)
	if job.ClassOf(err) == errclass.ObjectMissing {
		return Batch{}, false, nil
	}
	if err != nil {
		return Batch{}, false, err
	}
	batch, err := decodeBatch(key, data)
	if err != nil {
		return Batch{}, false, a.damaged(key, err)
	}
	return batch, true, nil
}

func decodeBatch(key string, data []byte) (Batch, error) {
	var batch Batch
	if err := json.Unmarshal(data, &batch); err != nil {
		return batch, fmt.Errorf("it is no record of a batch: %w", err)
	}
	if batchKey(batch.Incarnation, batch.First) != key {
		return batch, fmt.Errorf("it is the record of batch %s of %s", batch.Range, batch.Incarnation)
	}
	return batch, batch.check()
}

func (a Archive) damaged(key string, err error) error {
	return job.Fail(errclass.ArchiveDamaged, "object %s/%s%s is damaged: %w", a.Bucket, a.Prefix, key, err)
}

// LastBatch reads the record of a stream's last batch; false if there is none.
func (a Archive) LastBatch(ctx context.Context, incarnation Incarnation) (Batch, bool, error) {
	newest := ""
	for info, err := range a.Store.List(ctx, a.Bucket, a.Prefix+batchPrefix(incarnation)) {
		if err != nil {
			return Batch{}, false, err
		}
		newest = strings.TrimPrefix(info.Key, a.Prefix)
	}
	_, first, ok := parseBatchKey(newest)
	if !ok {
		return Batch{}, false, nil
	}
	return a.Batch(ctx, incarnation, first)
}

// WriteRecord writes the record of a batch, unless there is one for its first number.
// It returns the record that stands, and whether it is this one.
func (a Archive) WriteRecord(ctx context.Context, batch Batch) (Batch, bool, error) {
	text, err := batch.encode()
	if err != nil {
		return Batch{}, false, err
	}
	_, _, err = a.Store.PutNew(ctx, objects.Object{
		Bucket: a.Bucket, Key: a.Prefix + batchKey(batch.Incarnation, batch.First), Data: text, ContentType: "application/json",
	})
	var conflict *objects.ConflictError
	if err == nil {
		return batch, true, nil
	}
	if !errors.As(err, &conflict) {
		return Batch{}, false, err
	}
	other, found, err := a.Batch(ctx, batch.Incarnation, batch.First)
	if err == nil && !found {
		err = job.Fail(errclass.ObjectMissing, "the record of the batch from number %d of %s was removed from bucket %s a moment ago",
			batch.First, batch.Incarnation, a.Bucket)
	}
	return other, false, err
}

// Put writes an object of a batch that [Build] made, unless it is there. It
// reports whether this call wrote it. When it is there with other content it stays
// as it is, this content is kept under raw/v1/conflicts/, and the error is of
// class [errclass.ArchiveConflict].
func (a Archive) Put(ctx context.Context, o Object) (bool, error) {
	_, written, err := a.Store.PutNew(ctx, a.object(o))
	var conflict *objects.ConflictError
	if err == nil || !errors.As(err, &conflict) {
		return written, err
	}
	// Another release of the compressor may write other bytes for the same lines.
	same, err := a.Has(ctx, o)
	if err != nil || same {
		return false, err
	}
	kept, err := a.Keep(ctx, o)
	if err != nil {
		return false, err
	}
	return false, job.Fail(errclass.ArchiveConflict,
		"object %s/%s%s has other content (sha256 %s) than the stream (sha256 %s): it was not overwritten, and what the stream has is kept as %s",
		a.Bucket, a.Prefix, o.Key, conflict.Existing.SHA256, o.SHA256, kept)
}

// Keep writes an object that [Build] made under raw/v1/conflicts/, and returns
// its key there.
func (a Archive) Keep(ctx context.Context, o Object) (string, error) {
	object := a.object(o)
	object.Key = a.Prefix + conflictKey(o.Key, o.SHA256)
	_, _, err := a.Store.PutNew(ctx, object)
	return object.Key, err
}

func (a Archive) object(o Object) objects.Object {
	return objects.Object{
		Bucket: a.Bucket, Key: a.Prefix + o.Key, Data: o.data, ContentType: "application/zstd",
		Metadata: map[string]string{"content-sha256": o.ContentSHA256, "messages": fmt.Sprint(o.Messages)},
	}
}

// Has reports whether an object is there with the lines that its batch's record says. It reads
// them: what an object says of its content is a claim of whoever wrote it.
func (a Archive) Has(ctx context.Context, o Object) (bool, error) {
	data, _, err := a.Store.Get(ctx, a.Bucket, a.Prefix+o.Key, maxObject)
	if job.ClassOf(err) == errclass.ObjectMissing {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	content, err := decompress(data)
	return err == nil && objects.Hash(content) == o.ContentSHA256, nil
}

// Filter selects messages.
type Filter struct {
	// Organization and Source; "" for all. A source needs an organization.
	Organization string
	Source       string
	// From and To bound when the stream took a message: From is included, To is
	// not. Zero for no bound.
	From, To time.Time
}

// Takes reports whether a time is within the filter's bounds.
func (f Filter) Takes(t time.Time) bool {
	return (f.From.IsZero() || !t.Before(f.From)) && (f.To.IsZero() || t.Before(f.To))
}

// Match is an object that may hold messages of a filter.
type Match struct {
	Data
	Key  string
	Size int64
}

// Find yields the objects that may hold messages of a filter, and come after a
// key unless that is "". The objects of an organization's source are in the order
// of time, and of the stream. After an error it ends.
func (a Archive) Find(ctx context.Context, f Filter, after string) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		prefix := a.Prefix + DataPrefix(f.Organization, f.Source)
		if after != "" {
			after = a.Prefix + after
		}
		if f.Source != "" && !f.From.IsZero() {
			after = max(after, prefix+f.From.UTC().Truncate(time.Hour).Format(hourLayout))
		}
		for info, err := range a.Store.ListAfter(ctx, a.Bucket, prefix, after) {
			if err != nil {
				yield(Match{}, err)
				return
			}
			key := strings.TrimPrefix(info.Key, a.Prefix)
			data, ok := ParseDataKey(key)
			if !ok || (!f.From.IsZero() && !data.Hour.Add(time.Hour).After(f.From)) {
				continue
			}
			if !f.To.IsZero() && !data.Hour.Before(f.To) {
				if f.Source != "" {
					return // all that follows is later
				}
				continue
			}
			if !yield(Match{Data: data, Key: key, Size: info.Size}, nil) {
				return
			}
		}
	}
}

// Read gives the lines of an object, checked against the hash that it carries.
func (a Archive) Read(ctx context.Context, key string) ([]byte, error) {
	data, info, err := a.Store.Get(ctx, a.Bucket, a.Prefix+key, maxObject)
	if err != nil {
		return nil, err
	}
	if info.SHA256 != "" && objects.Hash(data) != info.SHA256 {
		return nil, a.damaged(key, errors.New("its content does not have the hash that it was written with"))
	}
	content, err := decompress(data)
	if err != nil {
		return nil, a.damaged(key, err)
	}
	return content, nil
}

// Messages yields the messages of an object in their order, from what [Archive.Read]
// gives. After an error it ends.
func (a Archive) Messages(key string, content []byte) iter.Seq2[pipeline.Stored, error] {
	return func(yield func(pipeline.Stored, error) bool) {
		for line := range bytes.Lines(content) {
			m, err := ParseLine(line)
			if err != nil {
				yield(m, a.damaged(key, err))
				return
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}
