package nats

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
	for name, subject := range map[string]string{
		"RAW":        "dendra.raw.v1.>",
		"PREPARED":   "dendra.prep.v1.>",
		"QUARANTINE": "dendra.quarantine.v1.>",
	} {
		if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
			Name: name, Subjects: []string{subject}, Storage: jetstream.FileStorage,
		}); err != nil {
			return fmt.Errorf("stream %s: %w", name, err)
		}
	}
	if _, err := js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: "bookmarks", Storage: jetstream.FileStorage,
	}); err != nil {
		return fmt.Errorf("key-value bucket bookmarks: %w", err)
	}
	return nil
}
