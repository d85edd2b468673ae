package temporalclient

import (
	"go.temporal.io/sdk/log"
)

// pollFailed and stopping are what a worker of the SDK says when it is stopped while it asks for
// a task.
const (
	pollFailed = "Failed to poll for task."
	stopping   = "worker stopping"
)

// stopsSilently is a logger for which a worker that was told to stop is no reason to warn.
type stopsSilently struct{ log.Logger }

// Warn implements [log.Logger].
func (l stopsSilently) Warn(message string, keyvals ...any) {
	for _, value := range keyvals {
		if err, ok := value.(error); ok && message == pollFailed && err.Error() == stopping {
			l.Debug(message, keyvals...)
			return
		}
	}
	l.Logger.Warn(message, keyvals...)
}

// With implements [log.WithLogger].
func (l stopsSilently) With(keyvals ...any) log.Logger {
	return stopsSilently{log.With(l.Logger, keyvals...)}
}
