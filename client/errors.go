package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

// Errors that callers distinguish.
var (
	// ErrNotFound says that there is no such job, run or queue.
	ErrNotFound = errors.New("not found")
	// ErrNotOurs says that something else holds a name of ours.
	ErrNotOurs = errors.New("not ours")
	// ErrMoved says that something has changed since it was looked at.
	ErrMoved = errors.New("plan again")
	// ErrTooLate says that the server took a change after the time that it was for.
	ErrTooLate = errors.New("too late to skip")
	// ErrNoWorker says that no worker answered in time.
	ErrNoWorker = errors.New("no worker answers")
	// ErrSlow says that the server itself did not answer in time.
	ErrSlow = errors.New("temporal does not answer in time")
	// ErrOutcomeUnknown ends a request that may still be carried out, so that it must not be
	// made again.
	ErrOutcomeUnknown = errors.New("it is not known whether the server took the request: look at what it did before you ask again")
	// ErrNoServices says that the server lacks what services are made of.
	ErrNoServices = errors.New("this Temporal has no standalone activities, which services are made of: it has to be " +
		temporalclient.ServicesSince + " or newer")
	// ErrNotInQueue says that a queue is there, and a job is not in it.
	ErrNotInQueue = fmt.Errorf("%w in the queue", ErrNotFound)
)

// absentError says, in one sentence, that there is nothing to act on: it is an [ErrNotFound].
type absentError struct{ text string }

// Error implements error.
func (e *absentError) Error() string { return e.text }

// Is implements what errors.Is asks for.
func (e *absentError) Is(target error) bool { return target == ErrNotFound } //nolint:errorlint // It is asked about one error.

func absentErrorf(format string, args ...any) error {
	return &absentError{fmt.Sprintf(format, args...)}
}

// StateError says, in one sentence, that an action does not fit the state of what it is for.
type StateError struct{ text string }

// Error implements error.
func (e *StateError) Error() string { return e.text }

func stateErrorf(format string, args ...any) error { return &StateError{fmt.Sprintf(format, args...)} }

// answerTimeout is how long a message or query may wait for a worker. A workflow task
// that is lost on its way to a worker is given out anew after ten seconds.
const answerTimeout = 15 * time.Second

// explain turns a server's answer about something named into one sentence.
func explain(what string, err error) error {
	var notFound *serviceerror.NotFound
	var invalid *serviceerror.InvalidArgument
	var app *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrSlow):
		return fmt.Errorf("%s: %w", what, err)
	case errors.As(err, &invalid) && strings.Contains(invalid.Message, "RunId"):
		return fmt.Errorf("%s: %w", what, ErrNotFound) // What is no run id names no run.
	case errors.As(err, &app) && app.Type() == contract.ErrorTypeNotInQueue:
		return fmt.Errorf("%s: %w", what, ErrNotInQueue)
	case errors.As(err, &notFound):
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	case unanswered(err):
		return fmt.Errorf("%s: %w within %s: is a worker of its type running?", what, ErrNoWorker, answerTimeout)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// unanswered reports whether no worker took a query or message in time. Which error
// that gives depends on who noticed first: the client, the server, or the part
// of the server that knows when a worker last asked for work.
func unanswered(err error) bool {
	var update *sdk.WorkflowUpdateServiceTimeoutOrCanceledError
	var late *serviceerror.DeadlineExceeded
	var canceled *serviceerror.Canceled
	var refused *serviceerror.FailedPrecondition
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &update) ||
		errors.As(err, &late) || errors.As(err, &canceled) ||
		errors.As(err, &refused) && strings.Contains(refused.Message, "no poller seen")
}

// ofServer makes an error of a call that no worker has to answer, and that took too
// long, say so.
func ofServer(ctx context.Context, err error) error {
	var late *serviceerror.DeadlineExceeded
	var canceled *serviceerror.Canceled
	if ctx.Err() == nil && (errors.As(err, &late) || errors.As(err, &canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return ErrSlow
	}
	return err
}

func isNotFound(err error) bool {
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound)
}

// isUnreadable reports whether Temporal cannot read a part of a request that is its own. It has no
// class for that: what its parser says comes without one.
func isUnreadable(err error) bool {
	code := serviceerror.ToStatus(err).Code()
	return isInvalid(err) || code == codes.Internal || code == codes.Unknown && !errors.Is(err, ErrSlow)
}

func isInvalid(err error) bool {
	var invalid *serviceerror.InvalidArgument
	return errors.As(err, &invalid)
}
