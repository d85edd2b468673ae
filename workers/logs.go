package workers

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/dendrascience/dendra-jobs/internal/runlogs"
	"github.com/dendrascience/dendra-jobs/internal/tracing"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// RunLogs keeps the lines that handlers log.
type RunLogs interface {
	// Keep takes a line of JSON with its line break, and does not wait. The line is the
	// caller's again when it returns. A loop says that the job is continuous: its
	// iterations share a log.
	Keep(jobID, runID string, loop bool, line []byte)
}

// logFormat is how the process writes its log.
type logFormat string

const (
	logText logFormat = "text"
	logJSON logFormat = "json"
)

// String implements flag.Value.
func (f *logFormat) String() string { return string(*f) }

// Set implements flag.Value.
func (f *logFormat) Set(text string) error {
	if text != string(logText) && text != string(logJSON) {
		return fmt.Errorf("%.80q is not a log format: text or json", text)
	}
	*f = logFormat(text)
	return nil
}

func (f *logFormat) handler(w io.Writer, level slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if *f == logJSON {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}

// setLoggers gives a run its loggers: that of its handler, whose lines go to the log of the
// process and to that of the run, and that of the run alone.
func (h *host) setLoggers(ctx context.Context, r *run, workflowID string) {
	attributes := []any{
		"job_id", r.input.Job.ID, "job_type", r.input.Job.Type,
		"workflow_id", workflowID, "run_id", r.input.RunID, "attempt", r.attempt,
	}
	if traceID, spanID := tracing.IDs(ctx); traceID != "" {
		attributes = append(attributes, "trace_id", traceID, "span_id", spanID)
	}
	r.kept = slog.New(slog.DiscardHandler)
	all := []slog.Handler{h.logger.Handler()}
	if h.RunLogs != nil {
		line := &keptLine{logs: h.RunLogs, run: r}
		kept := slog.NewJSONHandler(line, nil).WithAttrs([]slog.Attr{slog.String("worker", h.identity)})
		r.kept = slog.New(redacting{kept, r.resolved.Text}).With(attributes...)
		all = append(all, kept)
	}
	r.logger = slog.New(redacting{slog.NewMultiHandler(all...), r.resolved.Text}).With(attributes...)
}

// keptLine writes lines into the log of a run. A handler of package slog makes one call
// for each.
type keptLine struct {
	logs RunLogs
	run  *run
}

// Write implements io.Writer.
func (k *keptLine) Write(line []byte) (int, error) {
	k.logs.Keep(k.run.input.Job.ID, k.run.input.RunID, k.run.input.Job.Mode() == job.ModeContinuous, line)
	return len(line), nil
}

// logEnd writes how the attempt ended into the log of the run. That of the process has
// errors from the SDK.
func (r *run) logEnd(result job.Result, err error) {
	outcome := r.outcome(err)
	if err == nil {
		r.kept.Info(runlogs.AttemptEnded, "outcome", outcome, "message", result.Message, "counts", result.Counts)
		return
	}
	class := cmp.Or(job.ClassOf(err), errclass.Unclassified)
	r.kept.Error(runlogs.AttemptEnded, "outcome", outcome, "class", class, "error", err)
}

// redacting takes the values of secrets out of what is logged.
type redacting struct {
	slog.Handler
	redact func(string) string
}

// Handle implements slog.Handler.
func (h redacting) Handle(ctx context.Context, record slog.Record) error {
	clean := slog.NewRecord(record.Time, record.Level, h.redact(record.Message), record.PC)
	record.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attribute(a))
		return true
	})
	return h.Handler.Handle(ctx, clean)
}

// WithAttrs implements slog.Handler.
func (h redacting) WithAttrs(attributes []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attributes))
	for i, a := range attributes {
		clean[i] = h.attribute(a)
	}
	return redacting{h.Handler.WithAttrs(clean), h.redact}
}

// WithGroup implements slog.Handler.
func (h redacting) WithGroup(name string) slog.Handler {
	return redacting{h.Handler.WithGroup(h.redact(name)), h.redact}
}

func (h redacting) attribute(a slog.Attr) slog.Attr {
	value, key := a.Value.Resolve(), h.redact(a.Key)
	switch value.Kind() {
	case slog.KindString:
		return slog.String(key, h.redact(value.String()))
	case slog.KindGroup:
		clean := make([]slog.Attr, 0, len(value.Group()))
		for _, inner := range value.Group() {
			clean = append(clean, h.attribute(inner))
		}
		return slog.Attr{Key: key, Value: slog.GroupValue(clean...)}
	case slog.KindAny:
		if err, ok := value.Any().(error); ok {
			return slog.String(key, h.redact(err.Error()))
		}
		// A value that holds no secret keeps its form.
		if text := fmt.Sprintf("%+v", value.Any()); h.redact(text) != text {
			return slog.String(key, h.redact(text))
		}
	}
	return slog.Attr{Key: key, Value: value}
}
