package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect/v2"
)

// Exit codes, as rootHelp lists them.
const (
	exitOK      = 0
	exitFailed  = 1
	exitChanges = 2
	exitMisused = 2
)

// errTimeout is the cause of a command's context that ended by --timeout.
var errTimeout = errors.New("timeout")

// errChanges makes a plan that is not empty end with its exit code. It is not shown.
var errChanges = errors.New("there are changes")

// errIncomplete says that setup has left something to do. The table shows what.
var errIncomplete = errors.New("the setup is not complete")

// exit shows an error and gives the exit code.
func (i *invocation) exit(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errChanges):
		return exitChanges
	}
	for _, line := range i.sentences(err) {
		i.note("starter: %s", line)
	}
	if wrong, ok := errors.AsType[*usageError](err); ok && !wrong.changes {
		return exitMisused
	}
	return exitFailed
}

// sentences turns an error into lines, one for each of the errors that it joins.
func (i *invocation) sentences(err error) []string {
	if i.ended(err) {
		return []string{i.why()}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // Only errors.Join itself, not what wraps it.
		var lines []string
		for _, one := range joined.Unwrap() {
			for _, line := range i.sentences(one) {
				if !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		}
		return lines
	}
	if text := i.ofServer(err); text != "" {
		return []string{clean(text)}
	}
	if _, ofAPI := errors.AsType[*connect.Error](err); ofAPI {
		return []string{clean(hinted(err))}
	}
	return []string{clean(err.Error())}
}

// why is why the command's own context has ended.
func (i *invocation) why() string {
	if errors.Is(context.Cause(i.ctx), errTimeout) {
		return fmt.Sprintf("gave up after %s (--timeout)", i.timeout)
	}
	return "interrupted"
}

// ended reports whether err is due to the end of the command's own context.
func (i *invocation) ended(err error) bool {
	if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !mayEnd(err) {
		return false
	}
	// The server knows the deadline of a call, and its clock may be ahead.
	if deadline, ok := i.ctx.Deadline(); ok && time.Until(deadline) < time.Second {
		<-i.ctx.Done()
	}
	return i.ctx.Err() != nil
}

// mayEnd reports whether an error of the Job API may be due to the end of the caller's context.
func mayEnd(err error) bool {
	failed, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return false
	}
	switch failed.Code() {
	case connect.CodeCanceled, connect.CodeDeadlineExceeded, connect.CodeUnavailable:
		return true
	}
	return false
}
