package alerts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// BucketName is that of the key-value bucket.
const BucketName = "ALERTS"

// Errors of a store.
var (
	// ErrChanged means that another replica has changed it first.
	ErrChanged = errors.New("another replica has changed it")
	// ErrNotFound means that there is none of the name.
	ErrNotFound = errors.New("there is none of the name")
)

// Prefixes of keys.
const (
	recordPrefix  = "alert/"
	silencePrefix = "silence/"
	replicaPrefix = "replica/"
)

// Bucket is the store in NATS. Its methods may be called at the same time.
type Bucket struct {
	pipeline *pipeline.Client

	mu sync.Mutex
	kv jetstream.KeyValue
}

// NewBucket makes a store that makes its bucket when it is needed first.
func NewBucket(p *pipeline.Client) *Bucket { return &Bucket{pipeline: p} }

func (b *Bucket) open(ctx context.Context) (jetstream.KeyValue, error) {
	if err := b.pipeline.Reach(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	kv := b.kv
	b.mu.Unlock()
	if kv != nil {
		return kv, nil
	}
	kv, err := b.pipeline.JetStream().CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: BucketName, Description: "Alerts that were told, silences, and replicas of the server", MaxValueSize: 64 << 10, MaxBytes: 64 << 20,
	})
	if err != nil {
		return nil, b.failed("open", err)
	}
	b.mu.Lock()
	b.kv = kv
	b.mu.Unlock()
	return kv, nil
}

func (b *Bucket) failed(what string, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrNoStreamResponse) {
		b.kv = nil // It is made again.
	}
	return fmt.Errorf("%s: %s bucket %s: %w", b.pipeline.Address(), what, BucketName, err)
}

// State is what the bucket holds.
type State struct {
	Records  map[string]Stored // by the names of alerts
	Silences []Silence
	Replicas []Replica
}

// Stored is a record with its revision.
type Stored struct {
	Record
	Revision uint64
}

// Read reads all.
func (b *Bucket) Read(ctx context.Context) (State, error) {
	state := State{Records: map[string]Stored{}}
	if _, err := b.open(ctx); err != nil {
		return state, err
	}
	for entry, err := range b.pipeline.Entries(ctx, BucketName, ">") {
		if err != nil {
			return state, b.failed("read", err)
		}
		state.add(entry)
	}
	return state, nil
}

// add takes an entry. What cannot be read is left out: it is of a later version.
func (s *State) add(entry jetstream.KeyValueEntry) {
	switch {
	case strings.HasPrefix(entry.Key(), recordPrefix):
		var record Record
		if json.Unmarshal(entry.Value(), &record) == nil && record.Name != "" {
			s.Records[record.Name] = Stored{record, entry.Revision()}
		}
	case strings.HasPrefix(entry.Key(), silencePrefix):
		var silence Silence
		if json.Unmarshal(entry.Value(), &silence) == nil && silence.Name != "" {
			s.Silences = append(s.Silences, silence)
		}
	case strings.HasPrefix(entry.Key(), replicaPrefix):
		var replica Replica
		if json.Unmarshal(entry.Value(), &replica) == nil && replica.Name != "" {
			replica.Renewed = entry.Created()
			s.Replicas = append(s.Replicas, replica)
		}
	}
}

// Put writes a record in place of the one with the revision; 0 means that there is none.
func (b *Bucket) Put(ctx context.Context, record Record, revision uint64) (uint64, error) {
	kv, err := b.open(ctx)
	if err != nil {
		return 0, err
	}
	value, err := json.Marshal(record)
	if err != nil {
		return 0, fmt.Errorf("alert %s: %w", record.Name, err)
	}
	if revision == 0 {
		revision, err = kv.Create(ctx, recordKey(record.Name), value)
	} else {
		revision, err = kv.Update(ctx, recordKey(record.Name), value, revision)
	}
	return revision, b.explain("write to", err)
}

// Delete removes a record with a revision.
func (b *Bucket) Delete(ctx context.Context, name string, revision uint64) error {
	kv, err := b.open(ctx)
	if err != nil {
		return err
	}
	return b.explain("delete from", kv.Purge(ctx, recordKey(name), jetstream.LastRevision(revision)))
}

func (b *Bucket) explain(what string, err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch),
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return ErrChanged
	default:
		return b.failed(what, err)
	}
}

// recordKey is the key of an alert: keys cannot have every character.
func recordKey(name string) string {
	return recordPrefix + base64.RawURLEncoding.EncodeToString([]byte(name))
}
