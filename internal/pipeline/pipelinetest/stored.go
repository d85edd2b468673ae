package pipelinetest

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Messages are all messages of a subject that a stream has.
func Messages(t testing.TB, client *pipeline.Client, stream, subject string) []jetstream.Msg {
	t.Helper()
	consumer, err := client.JetStream().CreateConsumer(t.Context(), stream,
		jetstream.ConsumerConfig{FilterSubject: subject, AckPolicy: jetstream.AckNonePolicy})
	if err != nil {
		t.Fatal(err)
	}
	pending := int(consumer.CachedInfo().NumPending)
	if pending == 0 {
		return nil
	}
	batch, err := consumer.Fetch(pending, jetstream.FetchMaxWait(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	var messages []jetstream.Msg
	for message := range batch.Messages() {
		messages = append(messages, message)
	}
	if err := batch.Error(); err != nil || len(messages) != pending {
		t.Fatalf("%d messages of %d: %v", len(messages), pending, err)
	}
	return messages
}

// Hold makes a location whose only message blocks its mirror, as a loader leaves it, and
// returns the number of the message.
func Hold(t testing.TB, client *pipeline.Client, location string) uint64 {
	t.Helper()
	ctx, subject := t.Context(), pipeline.PrepSubject(pipeline.OperationLive, location)
	if err := client.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := client.JetStream().CreateOrUpdateConsumer(ctx, pipeline.StreamPrepared, jetstream.ConsumerConfig{
		Durable: pipeline.LoadConsumer(pipeline.OperationLive, location, ""), FilterSubject: subject, AckPolicy: jetstream.AckAllPolicy,
	}); err != nil {
		t.Fatal(err)
	}
	ack, err := client.JetStream().Publish(ctx, subject, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.PutLoadState(ctx, pipeline.LoadState{
		Operation: pipeline.OperationLive, Location: location, Mirror: pipeline.DefaultMirror, UpdatedAt: time.Now(),
		Breaker: pipeline.Breaker{
			State: pipeline.BreakerOpen, Since: time.Now(), Failures: 5, Class: errclass.RefusedPoint, Reason: "it refuses the message",
			Held: &pipeline.HeldMessage{Subject: subject, Sequence: ack.Sequence, Time: time.Now()},
		},
	}); err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}

// Shrink bounds what a stream holds, in bytes.
func Shrink(t testing.TB, client *pipeline.Client, name string, size int64) {
	t.Helper()
	if err := client.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	stream, err := client.JetStream().Stream(t.Context(), name)
	if err == nil {
		config := stream.CachedInfo().Config
		config.MaxBytes = size
		_, err = client.JetStream().UpdateStream(t.Context(), config)
	}
	if err != nil {
		t.Fatalf("bound stream %s: %v", name, err)
	}
}
