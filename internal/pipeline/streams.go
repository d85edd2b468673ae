package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Names of what JetStream holds.
const (
	StreamRaw        = "RAW"
	StreamPrepared   = "PREPARED"
	StreamQuarantine = "QUARANTINE"
	BucketBookmarks  = "bookmarks"
	BucketRates      = "rates"
)

// duplicateWindow is how long the server drops a repeated message id. It covers
// the retries of a run; later repeats reach the consumers, which do not mind.
const duplicateWindow = 10 * time.Minute

func streamConfigs() []jetstream.StreamConfig {
	const day = 24 * time.Hour
	return []jetstream.StreamConfig{
		{
			Name:        StreamRaw,
			Description: "What vendors said, in their own terms",
			Subjects:    []string{rawRoot + ".>"},
			MaxAge:      90 * day,
			Duplicates:  duplicateWindow,
			Storage:     jetstream.FileStorage,
			Compression: jetstream.S2Compression,
		},
		{
			// Not a work queue, since every mirror of a location consumes all of it,
			// and not by interest, since data may come before its loader does.
			Name:        StreamPrepared,
			Description: "Points on their way to a location's databases",
			Subjects:    []string{prepRoot + ".>"},
			MaxAge:      30 * day,
			Duplicates:  duplicateWindow,
			Storage:     jetstream.FileStorage,
			Compression: jetstream.S2Compression,
		},
		{
			// Kept until someone decides.
			Name:        StreamQuarantine,
			Description: "What could be neither prepared nor stored, with the reason",
			Subjects:    []string{quarantineRoot + ".>"},
			Storage:     jetstream.FileStorage,
			Compression: jetstream.S2Compression,
		},
	}
}

func bucketConfigs() []jetstream.KeyValueConfig {
	return []jetstream.KeyValueConfig{
		{
			Bucket:      BucketBookmarks,
			Description: "How far each source was read and durably published",
			History:     8, // the last few positions explain an incident
			Storage:     jetstream.FileStorage,
		},
		{
			Bucket:      BucketRates,
			Description: "When requests to vendors were made, for those who share a limit",
			TTL:         2 * time.Hour, // longer than any window, and any wait that a vendor asks for
			Storage:     jetstream.FileStorage,
		},
	}
}

// Ensure creates the streams and the buckets that are missing. Those
// that exist are left as they are, so that an operator's settings stay. It is
// safe to call from many processes at once.
func Ensure(ctx context.Context, js jetstream.JetStream) error {
	for _, config := range streamConfigs() {
		_, err := js.Stream(ctx, config.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			_, err = js.CreateStream(ctx, config)
		}
		if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return fmt.Errorf("stream %s: %w", config.Name, err)
		}
	}
	for _, config := range bucketConfigs() {
		_, err := js.KeyValue(ctx, config.Bucket)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			_, err = js.CreateKeyValue(ctx, config)
		}
		if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
			return fmt.Errorf("bucket %s: %w", config.Bucket, err)
		}
	}
	return nil
}
