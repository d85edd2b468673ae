package extract_test

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
)

// drained says whether a consumer of the raw stream is there, and has acknowledged
// the last message of its subject.
func drained(ctx context.Context, client *pipeline.Client, name string) (bool, error) {
	stream, err := client.JetStream().Stream(ctx, pipeline.StreamRaw)
	if err != nil {
		return false, err
	}
	consumer, err := stream.Consumer(ctx, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info := consumer.CachedInfo()
	last, err := stream.GetLastMsgForSubject(ctx, info.Config.FilterSubject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return true, nil
	}
	return err == nil && info.AckFloor.Stream >= last.Sequence, err
}
