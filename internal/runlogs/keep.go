package runlogs

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// maxLine bounds a line in bytes.
const maxLine = 4 << 10

// Keeper sends lines to NATS.
type Keeper struct{ *pipeline.Sender }

// Keep makes a keeper that works until it is closed, or ctx ends.
func Keep(ctx context.Context, client *pipeline.Client, logger *slog.Logger) *Keeper {
	return &Keeper{pipeline.NewSender(ctx, client, logger, "the logs of runs", func() { metrics.LogLinesLost.Inc() })}
}

// Keep takes a line of JSON of a run. It does not wait: a line for which there is no room
// is lost.
func (k *Keeper) Keep(jobID, runID string, loop bool, line []byte) {
	k.Send(Name{JobID: jobID, RunID: runID, Loop: loop}.subject(), bounded(line))
}

// bounded is a copy of a line without its line break. The message of one that is too long
// is cut, and its attributes go, apart from those that say whose it is.
func bounded(line []byte) []byte {
	line = bytes.TrimRight(line, "\n")
	if len(line) <= maxLine {
		return bytes.Clone(line)
	}
	var long Line
	if err := json.Unmarshal(line, &long); err != nil {
		return bytes.Clone(line[:maxLine])
	}
	long.Message = job.Cut(long.Message, maxLine/4)
	for name, value := range long.Attributes {
		if len(value) > maxLine/16 {
			long.Attributes[name], _ = json.Marshal("(too long)")
		}
	}
	short, err := json.Marshal(long)
	if err != nil || len(short) > maxLine {
		long.Attributes = nil
		short, _ = json.Marshal(long) // which has no error: it was decoded
	}
	return short
}

// Name says whose log a log is.
type Name struct {
	JobID string
	RunID string // of no meaning if Loop
	// Loop says that the job is continuous. All its iterations have one log.
	Loop bool
}

// subject is dendra.run_logs.v1.JOB.RUN. A job's id has dots, and no "=".
func (n Name) subject() string {
	run := "iterations"
	if !n.Loop {
		run = pipeline.Token(n.RunID)
	}
	return strings.Join([]string{pipeline.RunLogsRoot, pipeline.Token(n.JobID), run}, ".")
}
