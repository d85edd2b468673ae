package runlogs

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

const (
	// maxLine bounds a line in bytes.
	maxLine = 4 << 10
	// waiting is how many lines wait while NATS is away. What comes then is lost.
	waiting = 1000
	// ackTimeout is how long NATS has to take a line.
	ackTimeout = 10 * time.Second
	// closeTimeout is how long the end of a process waits for its last lines.
	closeTimeout = 2 * time.Second
)

// Keeper sends lines to NATS.
type Keeper struct {
	client *pipeline.Client
	logger *slog.Logger
	lines  chan *nats.Msg
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

// Keep makes a keeper that works until it is closed, or ctx ends.
func Keep(ctx context.Context, client *pipeline.Client, logger *slog.Logger) *Keeper {
	ctx, cancel := context.WithCancel(ctx)
	k := &Keeper{client: client, logger: logger, lines: make(chan *nats.Msg, waiting), cancel: cancel}
	k.ended.Go(func() { k.send(ctx) })
	return k
}

// Keep takes a line of JSON of a run. It does not wait: a line for which there is no room
// is lost.
func (k *Keeper) Keep(jobID, runID string, loop bool, line []byte) {
	message := &nats.Msg{Subject: Name{JobID: jobID, RunID: runID, Loop: loop}.subject(), Data: bounded(line)}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		metrics.LogLinesLost.Inc()
		return
	}
	select {
	case k.lines <- message:
	default:
		metrics.LogLinesLost.Inc()
	}
}

// Close sends what is left, for at most two seconds.
func (k *Keeper) Close() {
	k.mu.Lock()
	if !k.closed {
		k.closed = true
		close(k.lines)
	}
	k.mu.Unlock()
	timeout := time.AfterFunc(closeTimeout, k.cancel)
	k.ended.Wait()
	timeout.Stop()
	k.cancel()
}

// send publishes lines in their order.
func (k *Keeper) send(ctx context.Context) {
	js, err := jetstream.New(k.client.JetStream().Conn(),
		jetstream.WithPublishAsyncMaxPending(waiting),
		jetstream.WithPublishAsyncTimeout(ackTimeout),
		jetstream.WithPublishAsyncErrHandler(func(jetstream.JetStream, *nats.Msg, error) { metrics.LogLinesLost.Inc() }))
	if err != nil {
		k.logger.Error("the logs of runs are not kept", "error", err)
		return
	}
	kept := true
	for message := range k.lines {
		err := k.client.Ready(ctx)
		if err == nil {
			_, err = js.PublishMsgAsync(message, jetstream.WithRetryAttempts(0))
		}
		if err != nil {
			metrics.LogLinesLost.Inc()
		}
		if kept != (err == nil) && ctx.Err() == nil { // told once, and once again
			kept = err == nil
			if kept {
				k.logger.Info("the logs of runs are kept again")
			} else {
				k.logger.Warn("the logs of runs are not kept", "error", err)
			}
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-ctx.Done():
	}
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
		run = token(n.RunID)
	}
	return strings.Join([]string{pipeline.RunLogsRoot, token(n.JobID), run}, ".")
}

// token makes a token of a subject.
func token(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '.':
			return '='
		case r <= ' ' || r == '*' || r == '>' || r == 0x7f:
			return '_'
		}
		return r
	}, text)
}
