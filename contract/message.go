package contract

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/dendrascience/dendra-jobs/job"
)

// Message is an update of a workflow: a request with a typed answer, which is
// given once the change is part of the workflow's state.
type Message[In, Out any] string

// Queries.
const (
	QueryState = "state" // ContinuousState, QueueState or RunState
)

// Requests. Reason is a sentence for people, shown with the state.
type (
	// StopRequest is the input of MessageStop.
	StopRequest struct {
		Reason string `json:"reason,omitempty"`
		// Delete says that the job is no more, so that lists tell it from one that someone
		// has stopped.
		Delete bool `json:"delete,omitempty"`
	}
	// RestartRequest is the input of MessageRestart.
	RestartRequest struct {
		Reason string `json:"reason,omitempty"`
	}
	// PauseRequest is the input of MessagePause and MessagePauseQueue.
	PauseRequest struct {
		Reason string `json:"reason,omitempty"`
		// End is when the pause ends by itself; zero for never. It takes the place of the end
		// of an older pause.
		End time.Time `json:"end,omitzero"`
		// UnlessPaused leaves what is paused already as it is.
		UnlessPaused bool `json:"unless_paused,omitempty"`
	}
	// EndPauseInput is the input of the workflow EndPause and of its activity: the pause of a
	// recurring job that ends then.
	EndPauseInput struct {
		JobID string    `json:"job_id"`
		End   time.Time `json:"end"`
	}
	// ResumeRequest is the input of MessageResume and MessageResumeQueue.
	ResumeRequest struct {
		Reason string `json:"reason,omitempty"`
	}
	// TriggerRequest is the input of MessageTrigger.
	TriggerRequest struct{}
	// SetJobRequest is the input of MessageSetJob.
	SetJobRequest struct {
		Job job.Job `json:"job"`
		// Was is the definition hash of the definition to replace; with another in force
		// the message is refused. "" replaces every definition.
		Was string `json:"was,omitempty"`
		// Restart ends the current iteration instead of waiting for its end.
		Restart bool `json:"restart,omitempty"`
		// EndFailurePause lets a job go on that has paused itself after failures, and
		// that nobody else has paused.
		EndFailurePause bool `json:"end_failure_pause,omitempty"`
	}
)

// Send sends the message to a running workflow and waits for its answer.
func (m Message[In, Out]) Send(ctx context.Context, c client.Client, workflowID string, in In) (Out, error) {
	var out Out
	handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID:   workflowID,
		UpdateName:   string(m),
		Args:         []any{in},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return out, err
	}
	return out, handle.Get(ctx, &out)
}

// SendWithStart sends the message, and starts the workflow first if it does not run.
func (m Message[In, Out]) SendWithStart(ctx context.Context, c client.Client, start client.WithStartWorkflowOperation, in In) (Out, error) {
	var out Out
	handle, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateName:   string(m),
			Args:         []any{in},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return out, err
	}
	return out, handle.Get(ctx, &out)
}
