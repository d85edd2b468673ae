package schedules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	schedulepb "go.temporal.io/api/schedule/v1"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
)

// Version names the live state of a job, as [Change].Version does.
func Version(live *client.Live) (string, error) {
	switch {
	case live.Schedule != nil:
		return scheduleVersion(live)
	case live.Waiting != nil:
		return itemVersion(live.Waiting), nil
	}
	return workflowVersion(live), nil
}

// scheduleVersion names what a live schedule is, apart from its pause and from
// what the server counts: two schedules of the same version start the same runs
// at the same times.
func scheduleVersion(live *client.Live) (string, error) {
	return versionOf(live.DefinitionHash, live.Job, live.Input, live.ScheduleWithoutSkips())
}

// wantedVersion is the version of a schedule once it is as wanted.
func wantedVersion(j job.Job, wanted *schedulepb.Schedule) (string, error) {
	hash, err := j.DefinitionHash()
	if err != nil {
		return "", err
	}
	return versionOf(hash, j, "", wanted)
}

func versionOf(attribute string, j job.Job, input string, s *schedulepb.Schedule) (string, error) {
	hash, err := j.DefinitionHash()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, part := range []string{attribute, hash, input} {
		_, _ = fmt.Fprintf(h, "%q ", part) // A hash takes everything.
	}
	for _, setting := range settings(s) {
		_, _ = fmt.Fprintf(h, "%s=%q ", setting.name, setting.value)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// workflowVersion names the live state under a job's workflow id: a loop with its
// definition, or the latest run.
func workflowVersion(live *client.Live) string {
	switch {
	case live == nil:
		return ""
	case live.Workflow.Open() && live.Workflow.Type == contract.ContinuousJobType:
		return "loop " + live.DefinitionHash
	case live.Workflow.Open():
		return "running " + live.Workflow.RunID
	default:
		return "ended " + live.Workflow.RunID
	}
}

// itemVersion names a waiting item of a queue.
func itemVersion(item *contract.QueueItem) string {
	return "item " + strconv.FormatInt(item.Sequence, 10) + " of " + item.Job.Queue()
}
