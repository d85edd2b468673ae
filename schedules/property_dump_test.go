package schedules_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
)

// liveState is what there is under job ids and in queues, as the raw API tells it,
// in lines that two servers agree on.
func (w *world) liveState(ids, queues []string) []string {
	w.Helper()
	var lines []string
	for _, id := range ids {
		lines = append(lines, w.scheduleLines(id)...)
		lines = append(lines, w.workflowLines(id)...)
	}
	for _, queue := range queues {
		lines = append(lines, w.queueLines(queue)...)
	}
	return lines
}

func (w *world) scheduleLines(id string) []string {
	w.Helper()
	answer, err := w.client.Temporal().WorkflowService().DescribeSchedule(w.Context(), &workflowservice.DescribeScheduleRequest{
		Namespace: w.client.Namespace(), ScheduleId: "job/" + id,
	})
	if isNotFound(err) {
		return nil
	}
	require.NoError(w, err)
	prefix := "schedule " + id + ": "
	schedule := answer.GetSchedule()
	start := schedule.GetAction().GetStartWorkflow()
	// When a schedule was paused and resumed is history.
	delete(start.GetMemo().GetFields(), contract.MemoPauses)
	lines := []string{
		prefix + "input " + payloads(start.GetInput().GetPayloads()...),
		prefix + "run memo " + fields(start.GetMemo().GetFields()),
		prefix + "run attributes " + fields(start.GetSearchAttributes().GetIndexedFields()),
		prefix + "attributes " + fields(answer.GetSearchAttributes().GetIndexedFields()),
		prefix + "memo " + fields(answer.GetMemo().GetFields()),
	}
	// What has been written out is not to be shown as bytes again.
	start.Input, start.Memo, start.SearchAttributes = nil, nil, nil
	// So is why it was resumed.
	if state := schedule.GetState(); state != nil && !state.GetPaused() {
		state.Notes = ""
	}
	text, err := protojson.Marshal(schedule)
	require.NoError(w, err)
	return append(lines, prefix+canonical(w, text))
}

// workflowLines tell of a loop all that it is, and of the run of a job that runs
// once its spec: what else it was defined by may change without running it again.
func (w *world) workflowLines(id string) []string {
	w.Helper()
	answer, err := w.client.Temporal().DescribeWorkflowExecution(w.Context(), "job/"+id, "")
	if isNotFound(err) {
		return nil
	}
	require.NoError(w, err)
	info := answer.GetWorkflowExecutionInfo()
	if info.GetType().GetName() != "ContinuousJob" || info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil
	}
	prefix := "loop " + id + ": "
	attributes := map[string]*commonpb.Payload{}
	for name, value := range info.GetSearchAttributes().GetIndexedFields() {
		if strings.HasPrefix(name, "Job") {
			attributes[name] = value
		}
	}
	return []string{
		// One that was paused once says that it is not; others say nothing.
		prefix + strings.TrimSuffix("memo "+fields(info.GetMemo().GetFields()), ` paused={"paused":false}`),
		prefix + "attributes " + fields(attributes),
		prefix + "task queue " + info.GetTaskQueue(),
	}
}

// queueLines tell what waits in a queue, in no order: an apply puts several items
// into it at once. An item that waits already keeps its place, and with it the
// definition, as long as its spec is the same.
func (w *world) queueLines(name string) []string {
	w.Helper()
	answer, err := w.client.Temporal().QueryWorkflow(w.Context(), "queue/"+name, "", "state")
	if isNotFound(err) {
		return nil
	}
	require.NoError(w, err)
	var state struct {
		Paused  bool
		Waiting []struct{ Job job.Job }
	}
	require.NoError(w, answer.Get(&state))
	var lines []string
	for _, item := range state.Waiting {
		lines = append(lines, "waits in "+name+": "+item.Job.ID+" "+string(item.Job.Spec))
	}
	slices.Sort(lines)
	return lines
}

// quiet waits until the runs of a set's jobs that run once have ended.
func (w *world) quiet(jobs []job.Job) {
	w.Helper()
	stacktest.WaitFor(w, "the runs to end", func() (bool, error) {
		for _, j := range jobs {
			runs := (j.Mode() == job.ModeOneShot || j.Mode() == job.ModeQueued && !isHeld(j.Queue())) && !j.Options.Paused
			if !runs {
				continue
			}
			answer, err := w.client.Temporal().DescribeWorkflowExecution(w.Context(), "job/"+j.ID, "")
			if err != nil {
				return false, err
			}
			info := answer.GetWorkflowExecutionInfo()
			if info.GetType().GetName() != "RunJob" || info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
				return false, nil
			}
			if j.Mode() != job.ModeQueued {
				continue
			}
			state, err := w.client.Queues.State(w.Context(), j.Queue())
			if errors.Is(err, client.ErrNotFound) {
				continue // The job ran before, outside a queue.
			}
			if err != nil || state.Running != nil || len(state.Waiting) > 0 {
				return false, err
			}
		}
		return true, nil
	})
}

func isNotFound(err error) bool {
	var notFound *serviceerror.NotFound
	return errors.As(err, &notFound)
}

func payloads(list ...*commonpb.Payload) string {
	var texts []string
	for _, payload := range list {
		texts = append(texts, string(payload.GetData()))
	}
	return strings.Join(texts, " ")
}

func fields(of map[string]*commonpb.Payload) string {
	var texts []string
	for name, payload := range of {
		texts = append(texts, name+"="+payloads(payload))
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// canonical writes JSON with its keys in order: protojson varies its white space.
func canonical(w *world, text []byte) string {
	w.Helper()
	var value any
	require.NoError(w, json.Unmarshal(text, &value))
	again, err := json.Marshal(value)
	require.NoError(w, err)
	return string(again)
}
