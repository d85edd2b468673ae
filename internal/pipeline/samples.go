package pipeline

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Samples keep the samples of the status page's charts, by the names of their series, in a
// bucket that is made when it is written first.
type Samples struct{ client *Client }

// NewSamples makes the store of a client.
func NewSamples(c *Client) *Samples { return &Samples{c} }

// BucketSamples holds samples of charts.
const BucketSamples = "SAMPLES"

// sampleAge is a day longer than charts go back.
const sampleAge = 8 * 24 * time.Hour

// Load reads all series. Without a bucket there are none.
func (s *Samples) Load(ctx context.Context) (map[string][]byte, error) {
	if err := s.client.Reach(ctx); err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for entry, err := range s.client.Entries(ctx, BucketSamples, ">") {
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, s.failed("read", err)
		}
		if name, err := base64.RawURLEncoding.DecodeString(entry.Key()); err == nil {
			all[string(name)] = entry.Value()
		}
	}
	return all, nil
}

// Save writes a series.
func (s *Samples) Save(ctx context.Context, name string, value []byte) error {
	if err := s.client.Reach(ctx); err != nil {
		return err
	}
	kv, err := s.client.js.KeyValue(ctx, BucketSamples)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = s.client.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: BucketSamples, Description: "Samples of the charts of the status page", MaxValueSize: 256 << 10, MaxBytes: 64 << 20, TTL: sampleAge,
		})
	}
	if err != nil {
		return s.failed("open", err)
	}
	_, err = kv.Put(ctx, base64.RawURLEncoding.EncodeToString([]byte(name)), value)
	return s.failed("write to", err)
}

func (s *Samples) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s bucket %s: %w", s.client.Address(), what, BucketSamples, err)
}
