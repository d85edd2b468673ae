package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Rates keeps what processes that share a limit of a vendor have to know of each
// other, in the bucket [BucketRates], and the clock that they share: the server's.
type Rates struct {
	client *Client

	mu     sync.Mutex
	bucket jetstream.KeyValue
	clock  clockReading
}

// clockReading is what the server's clock said at a moment of ours.
type clockReading struct{ server, local time.Time }

const (
	// ratesWait is how long one request about rates may take: whoever asks has
	// another way, and should not wait long.
	ratesWait = 2 * time.Second
	// clockAge is how long a reading of the server's clock is used.
	clockAge = time.Minute
)

// Rates gives access to shared rates.
func (c *Client) Rates() *Rates { return &c.rates }

// open gives the bucket. Unlike other methods of the client it does not wait for a
// connection.
func (r *Rates) open(ctx context.Context) (jetstream.KeyValue, error) {
	c := r.client
	if !c.dialed.Load() || !c.nc.IsConnected() {
		return nil, job.Fail(errclass.PipelineUnreachable, "%s: there is no connection", c.address)
	}
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bucket == nil {
		bucket, err := c.js.KeyValue(ctx, BucketRates)
		if err != nil {
			return nil, c.failed(ctx, "open bucket "+BucketRates, err)
		}
		r.bucket = bucket
	}
	return r.bucket, nil
}

// Load reads the value of a key and its revision: nil and 0 if there is none.
func (r *Rates) Load(ctx context.Context, key string) ([]byte, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, ratesWait)
	defer cancel()
	bucket, err := r.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	entry, err := bucket.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, r.client.failed(ctx, fmt.Sprintf("read %s/%s", BucketRates, key), err)
	}
	return entry.Value(), entry.Revision(), nil
}

// Store writes the value of a key that was read with a revision. It reports false,
// and writes nothing, if the key has another revision by now.
func (r *Rates) Store(ctx context.Context, key string, value []byte, revision uint64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, ratesWait)
	defer cancel()
	bucket, err := r.open(ctx)
	if err != nil {
		return false, err
	}
	if revision == 0 {
		_, err = bucket.Create(ctx, key, value)
	} else {
		_, err = bucket.Update(ctx, key, value, revision)
	}
	switch {
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		return false, nil
	case err != nil:
		return false, r.client.failed(ctx, fmt.Sprintf("write %s/%s", BucketRates, key), err)
	}
	return true, nil
}

// Now is the time on the server's clock, as exact as half of a request's way there
// and back. The server is asked once a minute; what passes in between is measured
// here, so that it does not matter how our clock is set.
func (r *Rates) Now(ctx context.Context) (time.Time, error) {
	r.mu.Lock()
	clock := r.clock
	r.mu.Unlock()
	if !clock.local.IsZero() && time.Since(clock.local) < clockAge {
		return clock.server.Add(time.Since(clock.local)), nil
	}
	ctx, cancel := context.WithTimeout(ctx, ratesWait)
	defer cancel()
	if _, err := r.open(ctx); err != nil {
		return time.Time{}, err
	}
	asked := time.Now()
	stream, err := r.client.js.Stream(ctx, "KV_"+BucketRates)
	if err != nil {
		return time.Time{}, r.client.failed(ctx, "look at bucket "+BucketRates, err)
	}
	trip := time.Since(asked)
	reading := clockReading{server: stream.CachedInfo().TimeStamp, local: asked.Add(trip / 2)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock = reading
	return reading.server.Add(time.Since(reading.local)), nil
}
