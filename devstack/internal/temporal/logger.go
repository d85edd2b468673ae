package temporal

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

var discard = slog.New(slog.DiscardHandler)

// fatal carries the first fatal message of the server.
type fatal struct{ occurred chan error }

func newFatal() *fatal { return &fatal{occurred: make(chan error, 1)} }

// report hands err over and never returns: the server takes it for granted
// that the process is gone after a fatal message.
func (f *fatal) report(err error) {
	select {
	case f.occurred <- err:
	default:
	}
	select {}
}

// logger passes the server's messages on.
type logger struct {
	to      *slog.Logger
	fatal   *fatal
	serving *atomic.Bool // between the end of the start and the begin of the stop
}

var _ log.WithLogger = (*logger)(nil)

func (l *logger) Debug(msg string, tags ...tag.Tag) { l.log(slog.LevelDebug, msg, tags) }
func (l *logger) Info(msg string, tags ...tag.Tag)  { l.log(slog.LevelInfo, msg, tags) }

// Warn logs as information: the server warns of a host that lost another, which
// at the start and the stop of a single process is the order of things.
func (l *logger) Warn(msg string, tags ...tag.Tag) { l.log(slog.LevelInfo, msg, tags) }

// Error logs an error, or as information what only says that a caller went
// away or that the services of a starting or stopping server miss each other.
// A start that fails says so itself.
func (l *logger) Error(msg string, tags ...tag.Tag) {
	level := slog.LevelError
	if !l.serving.Load() || canceled(tags) {
		level = slog.LevelInfo
	}
	l.log(level, msg, tags)
}

// DPanic is a message about a broken invariant that only a debug build panics on.
func (l *logger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }

// Panic panics, as the server's callers recover from it.
func (l *logger) Panic(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	panic(msg) //nolint:forbidigo // what the interface asks for
}

// Fatal reports the end of the server and blocks.
func (l *logger) Fatal(msg string, tags ...tag.Tag) {
	l.log(slog.LevelError, msg, tags)
	for _, t := range tags {
		if t.Key() == "error" {
			msg = fmt.Sprintf("%s: %v", msg, t.Value())
		}
	}
	l.fatal.report(fmt.Errorf("%s", msg))
}

// With returns a logger that adds tags to each message.
func (l *logger) With(tags ...tag.Tag) log.Logger {
	return &logger{to: slog.New(l.to.Handler().WithAttrs(attrs(tags))), fatal: l.fatal, serving: l.serving}
}

func (l *logger) log(level slog.Level, msg string, tags []tag.Tag) {
	if ctx := context.Background(); l.to.Enabled(ctx, level) {
		l.to.LogAttrs(ctx, level, msg, attrs(tags)...)
	}
}

func canceled(tags []tag.Tag) bool {
	for _, t := range tags {
		if t.Key() == "error" && strings.Contains(fmt.Sprint(t.Value()), context.Canceled.Error()) {
			return true
		}
	}
	return false
}

func attrs(tags []tag.Tag) []slog.Attr {
	list := make([]slog.Attr, 0, len(tags))
	for _, t := range tags {
		list = append(list, slog.Any(t.Key(), t.Value()))
	}
	return list
}
