package nats

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// EnsureStreams makes the streams and the key-value bucket that the pipeline
// uses; those that exist are left as they are.
func EnsureStreams(ctx context.Context, url string) error {
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return pipeline.Ensure(ctx, js, pipeline.StreamSettings{})
}
