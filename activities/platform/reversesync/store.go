package reversesync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// records keeps the record of each entity in a bucket of NATS.
type records struct {
	bucket jetstream.KeyValue
	client *pipeline.Client
}

func openRecords(ctx context.Context, client *pipeline.Client) (*records, error) {
	if err := client.Ready(ctx); err != nil {
		return nil, err
	}
	r := &records{client: client}
	var err error
	r.bucket, err = client.JetStream().KeyValue(ctx, pipeline.BucketReverseSync)
	return r, r.failed(ctx, "open", err)
}

func (r *records) failed(ctx context.Context, do string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return job.Fail(errclass.PipelineUnreachable, "%s: %s bucket %s: %w", r.client.Address(), do, pipeline.BucketReverseSync, err)
}

// key is that of an entity's record. A key has dots only between its parts.
func key(kind, id string) string { return kind + "." + strings.ReplaceAll(id, ".", "=") }

func parseKey(text string) (kind, id string) {
	kind, id, _ = strings.Cut(text, ".")
	return kind, strings.ReplaceAll(id, "=", ".")
}

// revised is a record as it was read.
type revised struct {
	Record
	revision uint64 // 0: there was none
}

func (r *records) get(ctx context.Context, kind, id string) (revised, error) {
	entry, err := r.bucket.Get(ctx, key(kind, id))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return revised{}, nil
	}
	if err != nil {
		return revised{}, r.failed(ctx, "read "+key(kind, id)+" of", err)
	}
	record, err := r.decode(entry.Key(), entry.Value())
	return revised{record, entry.Revision()}, err
}

func (r *records) decode(key string, value []byte) (Record, error) {
	var record Record
	if err := json.Unmarshal(value, &record); err != nil {
		return record, fmt.Errorf("%s: %s of bucket %s cannot be read: %w", r.client.Address(), key, pipeline.BucketReverseSync, err)
	}
	return record, nil
}

// errStale means that another syncer has written the record meanwhile.
var errStale = errors.New("the record was written by another syncer meanwhile")

// put writes a record that was of this revision when it was read, and returns the
// revision that it has then. The error is errStale if it has another one by now.
func (r *records) put(ctx context.Context, kind, id string, record Record, revision uint64) (written uint64, err error) {
	value := job.EncodeJSON(record)
	if revision == 0 {
		written, err = r.bucket.Create(ctx, key(kind, id), value)
	} else {
		written, err = r.bucket.Update(ctx, key(kind, id), value, revision)
	}
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return 0, errStale
	}
	return written, r.failed(ctx, "write "+key(kind, id)+" of", err)
}

// encoded is a record that takes less memory.
type encoded struct {
	value    []byte
	revision uint64
}

// each calls take with the record of each entity that a pattern of keys takes. The
// server sends them all at once.
func (r *records) each(ctx context.Context, pattern string, take func(kind, id string, record encoded) error) error {
	for entry, err := range r.client.Entries(ctx, pipeline.BucketReverseSync, pattern) {
		if err != nil {
			return r.failed(ctx, "read", err)
		}
		kind, id := parseKey(entry.Key())
		if err := take(kind, id, encoded{entry.Value(), entry.Revision()}); err != nil {
			return err
		}
	}
	return nil
}
