package workflows

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dendrascience/dendra-jobs/contract"
)

// Bounds of what messages bring beside items. All of it is part of the state.
const (
	// maxPauseReason bounds the reason of a pause, or of a stop, of queues and
	// continuous jobs; a longer one is cut.
	maxPauseReason = contract.MaxPauseReason
	// maxShownID bounds the job id of an item that was refused and is shown as failed.
	maxShownID = 300
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

// cannotStart says why no run of an item could be started, "" if one can. The start
// would be refused by Temporal, or by the workflow.
func cannotStart(item contract.EnqueueItem) string {
	j, options := item.Job, item.Job.Options
	if j.ID == "" || j.Type == "" || j.Worker == "" || options.RunTimeout <= 0 || options.HeartbeatTimeout <= 0 ||
		options.StopGracePeriod <= 0 || options.RetryBackoff.Initial <= 0 || options.RetryBackoff.Coefficient < 1 {
		return "its definition is not complete"
	}
	for _, name := range []struct{ what, value string }{
		{"id", contract.JobWorkflowID(j.ID)}, {"type", j.Type}, {"worker type", string(j.Worker)},
	} {
		if size := len(name.value); size > maxIDBytes {
			return fmt.Sprintf("its %s has %d bytes, and Temporal takes %d", name.what, size, maxIDBytes)
		}
	}
	for _, own := range []string{"/_sys/", "temporal-sys-"} {
		if strings.HasPrefix(string(j.Worker), own) {
			return fmt.Sprintf("task queues whose name starts with %s are Temporal's own", own)
		}
	}
	for _, attribute := range []struct{ what, value string }{
		{"id", j.ID}, {"type", j.Type}, {"provider", string(j.Provider)}, {"owner", options.Owner.String()},
	} {
		if size := jsonBytes(attribute.value); size > maxAttributeBytes {
			return fmt.Sprintf("its %s has %d bytes, and Temporal takes %d", attribute.what, size, maxAttributeBytes)
		}
	}
	if size := item.Size(); size > maxStartBytes {
		return fmt.Sprintf("its definition has %d bytes, more than %d", size, maxStartBytes)
	}
	return ""
}

// jsonBytes is the size of a text in a payload.
func jsonBytes(value string) int {
	text, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	return len(text)
}
