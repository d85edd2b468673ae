package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dendrascience/dendra-jobs/contract"

	"go.temporal.io/sdk/workflow"
)

// Bounds of what a queue is told beside its items. All of it is part of its state.
const (
	// MaxRequestIDBytes bounds the id of a request, and the run id of RetryOf.
	MaxRequestIDBytes = 200
	// maxPauseReason bounds the reason of a pause, or of a stop, of queues and
	// continuous jobs; a longer one is cut.
	maxPauseReason = 1000
	// maxShownID bounds the job id of an item that was refused and is shown as failed.
	maxShownID = 300
	// maxDeadBytes bounds the definitions in dead letters, and maxDeadJob one of them.
	maxDeadBytes = 256 << 10
	maxDeadJob   = 64 << 10
)

// Limits of Temporal on the start of a run, by default. Beyond them it terminates
// the workflow that wants to start the run, or refuses its task again and again:
// either would be the end of the queue, with all that waits in it.
const (
	maxIDBytes        = 1000
	maxAttributeBytes = 2 << 10
	// maxStartBytes bounds the input and the memo; the limit of either is 2 MiB.
	maxStartBytes = 1 << 20
)

// startLimitsChange names the change by which an item whose run could not be started
// fails by itself.
const startLimitsChange = "start-limits"

// startLimits asks only where it matters, since the answer costs two events.
func startLimits(ctx workflow.Context) bool {
	return workflow.GetVersion(ctx, startLimitsChange, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// cannotStart says why Temporal would not take the start of an item's run. What is
// put in by a message of this release is never so; what waits since an earlier one,
// or was written into a queue's input by hand, may be. Only what Temporal refuses is
// asked here, since what runs elsewhere must not fail when the rules of a job change.
func cannotStart(item QueueItem) error {
	j := item.Job
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("job %.80s cannot be started: %s", j.ID, fmt.Sprintf(format, args...))
	}
	for _, name := range []struct{ what, value string }{
		{"id", contract.JobWorkflowID(j.ID)}, {"type", j.Type}, {"worker type", string(j.Worker)},
	} {
		if size := len(name.value); size > maxIDBytes {
			return refuse("its %s has %d bytes, and Temporal takes %d", name.what, size, maxIDBytes)
		}
	}
	for _, own := range []string{"/_sys/", "temporal-sys-"} {
		if strings.HasPrefix(string(j.Worker), own) {
			return refuse("task queues whose name starts with %s are Temporal's own", own)
		}
	}
	for _, attribute := range []struct{ what, value string }{
		{"id", j.ID}, {"type", j.Type}, {"provider", string(j.Provider)}, {"owner", j.Options.Owner.String()},
	} {
		if size := jsonBytes(attribute.value); size > maxAttributeBytes {
			return refuse("its %s has %d bytes, and Temporal takes %d", attribute.what, size, maxAttributeBytes)
		}
	}
	if size := jsonBytes(item); size > maxStartBytes {
		return refuse("its definition has %d bytes, more than %d", size, maxStartBytes)
	}
	return nil
}

// jsonBytes is the size of a value in a payload; 0 if it has none.
func jsonBytes(value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	return len(text)
}

// strictItemsChange names the change by which items count with the size that they
// are stored with, and signaled ones are held to all rules of a definition.
const strictItemsChange = "strict-items"

// measure is the size that an item counts with: the estimate, which is near the truth
// for usual ones and keeps some room for all that is not known yet, or what it is
// stored with if that is more. It is the same before an item is sent and after.
func (i QueueItem) measure() int {
	i.Job.Spec, i.Cursor = asSent(i.Job.Spec), asSent(i.Cursor)
	return max(i.estimate(), jsonBytes(i))
}

// asSent is a JSON text as a message carries it: without white space, and with
// escapes of &, < and >.
func asSent(text json.RawMessage) json.RawMessage {
	if len(text) == 0 {
		return text
	}
	sent, err := json.Marshal(text)
	if err != nil {
		return text // Not JSON: it is never sent.
	}
	return sent
}

// sizeOf is the size that an item counts with in the queue.
func (s *QueueState) sizeOf(item QueueItem) int {
	if s.strict {
		return item.measure()
	}
	return item.size()
}

// checkSignaled holds an item that was signaled to the rules that a message is held
// to. What was found is recorded, once for all items of which it is the same, since
// the rules of a job may change between a run and its replay.
func checkSignaled(ctx workflow.Context, in EnqueueRequest) error {
	same := func(a, b any) bool { return a == b }
	var problem string
	if err := workflow.MutableSideEffect(ctx, "signaled", func(workflow.Context) any {
		if err := checkItem(in.batch().Items[0], in.RequestID); err != nil {
			return shorten(err.Error())
		}
		return ""
	}, same).Get(&problem); err != nil {
		return fmt.Errorf("job %.80s cannot be checked: %w", in.Job.ID, err)
	}
	if problem != "" {
		return errors.New(problem)
	}
	return nil
}

// checkItem refuses an item that is not right in itself. A retry has the definition
// that its job had: only what cannot be started is refused of it, since the rules of
// a job may have changed since it ran.
func checkItem(item EnqueueItem, requestID string) error {
	for _, id := range []struct{ what, value string }{{"request id", requestID}, {"retried run id", item.RetryOf}} {
		if size := len(id.value); size > MaxRequestIDBytes {
			return fmt.Errorf("job %.200s: its %s has %d bytes, more than %d", item.Job.ID, id.what, size, MaxRequestIDBytes)
		}
	}
	if item.retries() {
		if err := cannotStart(item.item()); err != nil {
			return fmt.Errorf("a retry: %w", err)
		}
	} else if problems := item.Job.Validate(); len(problems) > 0 {
		return fmt.Errorf("job %.200s: %s", item.Job.ID, problems[0])
	}
	return nil
}
