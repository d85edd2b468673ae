package integration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

const (
	// maxLogMessage is what the platform takes.
	maxLogMessage = 4000
	// maxLogEntries is how many entries are written at a time.
	maxLogEntries = 100
)

// logKind begins the ids of entries.
type logKind string

const (
	logJobs   logKind = "jobs"
	logTables logKind = "tables"
)

// logEntry is an entry of the log of a config, by a run. What it is about makes its id, so that a
// retry writes none twice.
func logEntry(run job.Run, kind logKind, config string, level platformv1.LogLevel, text string, about ...string) *platformv1.LogEntry {
	sum := sha256.Sum256([]byte(config + "\n" + strings.Join(about, "\n")))
	return &platformv1.LogEntry{
		Id: string(kind) + "-" + hex.EncodeToString(sum[:16]), ConfigId: config, Time: timestamppb.New(time.Now()), Level: level,
		Message: job.Cut(text, maxLogMessage), JobId: run.Job().ID, RunId: run.ID(),
	}
}

// writeLog writes entries. A config that is gone has no log.
func writeLog(ctx context.Context, api *platform.Client, entries []*platformv1.LogEntry) error {
	for some := range slices.Chunk(entries, maxLogEntries) {
		_, err := api.Integrations.CreateLogEntries(ctx, &platformv1.CreateLogEntriesRequest{LogEntries: some})
		if err != nil {
			return platform.Explain(err)
		}
	}
	return nil
}
