package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Names of what JetStream holds.
const (
	StreamRaw        = "RAW"
	StreamPrepared   = "PREPARED"
	StreamQuarantine = "QUARANTINE"
	// StreamRunLogs holds the last lines of the logs of runs; see package runlogs.
	StreamRunLogs = "RUN_LOGS"
	// StreamChanges holds what people and programs changed; see package changes.
	StreamChanges   = "CHANGES"
	BucketBookmarks = "bookmarks"
	BucketRates     = "rates"
	// BucketReverseSync holds what reverse sync knows about documents of Release 2.
	BucketReverseSync = "reverse_sync"
)

// duplicateWindow is how long the server drops a repeated message id. It covers
// the retries of a run; later repeats reach the consumers, which do not mind. The server
// holds all ids of that time in memory, about 200 bytes each: the window of a
// long import must not have millions.
const duplicateWindow = 2 * time.Minute

func (s StreamSettings) streams() []jetstream.StreamConfig {
	streams := []jetstream.StreamConfig{
		{
			Name:        StreamRaw,
			Description: "What vendors said, in their own terms",
			Subjects:    []string{rawRoot + ".>"},
			MaxAge:      cmp.Or(s.RawMaxAge, 90*day),
			MaxBytes:    cmp.Or(s.RawMaxBytes, 4<<30),
			Duplicates:  duplicateWindow,
		},
		{
			// Not a work queue, since every mirror of a location consumes all of it,
			// and not by interest, since data may come before its loader does.
			Name:        StreamPrepared,
			Description: "Points on their way to a location's databases",
			Subjects:    []string{prepRoot + ".>"},
			MaxAge:      cmp.Or(s.PreparedMaxAge, 30*day),
			MaxBytes:    cmp.Or(s.PreparedMaxBytes, 2<<30),
			Duplicates:  duplicateWindow,
		},
		{
			// For someone to decide. Its bounds are against a source that sends nothing else.
			Name:        StreamQuarantine,
			Description: "What could be neither prepared nor stored, with the reason",
			Subjects:    []string{quarantineRoot + ".>"},
			MaxAge:      cmp.Or(s.QuarantineMaxAge, 365*day),
			MaxBytes:    cmp.Or(s.QuarantineMaxBytes, 512<<20),
		},
		{
			// A subject has the lines of a run, so that none takes the room of another.
			Name:              StreamRunLogs,
			Description:       "The last lines of the logs of runs",
			Subjects:          []string{RunLogsRoot + ".>"},
			MaxAge:            cmp.Or(s.RunLogsMaxAge, 7*day),
			MaxBytes:          cmp.Or(s.RunLogsMaxBytes, 1<<30),
			MaxMsgsPerSubject: MaxRunLogLines,
		},
		{
			// A subject has the changes of one job, or of one other object.
			Name:              StreamChanges,
			Description:       "What people and programs changed by the Job API",
			Subjects:          []string{ChangesRoot + ".>"},
			MaxAge:            ChangesMaxAge,
			MaxBytes:          256 << 20,
			MaxMsgsPerSubject: MaxChanges,
		},
	}
	for n := range streams {
		streams[n].Replicas, streams[n].Placement = s.Replicas, s.placement()
		streams[n].Storage, streams[n].Compression = jetstream.FileStorage, jetstream.S2Compression
	}
	return streams
}

// ChangesRoot begins the subjects of [StreamChanges]. MaxChanges is how many changes it keeps of
// each object, and ChangesMaxAge how long.
const (
	ChangesRoot   = "dendra.changes.v1"
	MaxChanges    = 200
	ChangesMaxAge = 180 * day
)

// RunLogsRoot begins the subjects of [StreamRunLogs], and MaxRunLogLines is how many
// lines it keeps of a run.
const (
	RunLogsRoot    = "dendra.run_logs.v1"
	MaxRunLogLines = 1000
)

func (s StreamSettings) buckets() []jetstream.KeyValueConfig {
	configs := []jetstream.KeyValueConfig{
		{
			Bucket:      BucketBookmarks,
			Description: "How far each source was read and durably published",
			History:     8, // the last few positions explain an incident
		},
		{
			Bucket:      BucketRates,
			Description: "When requests to vendors were made, for those who share a limit",
			TTL:         2 * time.Hour, // longer than any window, and any wait that a vendor asks for
		},
		{
			Bucket:       BucketLoads,
			Description:  "How the loads of locations into their mirrors are doing",
			TTL:          loadStateAge,
			MaxValueSize: maxLoadState,
		},
		{
			Bucket:      BucketReverseSync,
			Description: "The fields of each document of Release 2 that were last in line with Release 3",
			Compression: true,
		},
	}
	for i := range configs {
		configs[i].Storage, configs[i].Replicas, configs[i].Placement = jetstream.FileStorage, s.Replicas, s.placement()
	}
	return configs
}

// namesWait is how long the names of the streams are waited for.
const namesWait = 5 * time.Second

// Ensure creates the streams and the buckets that are missing. Those
// that exist are left as they are, so that an operator's settings stay. It is
// safe to call from many processes at once.
//
// In a cluster the names come from its leader. A stream itself does not answer while
// it has no leader, and to wait for each of them would take a minute.
func Ensure(ctx context.Context, js jetstream.JetStream, settings StreamSettings) error {
	names, err := streamNames(ctx, js)
	if err != nil {
		return fmt.Errorf("list streams: %w", err)
	}
	for _, config := range settings.streams() {
		if slices.Contains(names, config.Name) {
			continue
		}
		if _, err := js.CreateStream(ctx, config); err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return fmt.Errorf("stream %s: %w", config.Name, err)
		}
	}
	for _, config := range settings.buckets() {
		if slices.Contains(names, "KV_"+config.Bucket) {
			continue
		}
		if _, err := js.CreateKeyValue(ctx, config); err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
			return fmt.Errorf("bucket %s: %w", config.Bucket, err)
		}
	}
	return nil
}

func streamNames(ctx context.Context, js jetstream.JetStream) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, namesWait)
	defer cancel()
	var names []string
	list := js.StreamNames(ctx)
	for name := range list.Name() {
		names = append(names, name)
	}
	return names, list.Err()
}
