package contract

import (
	"encoding/json"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// ContinuousOutput is the result of a continuous job that was stopped, and the detail of
// the end of one that was canceled.
type ContinuousOutput struct {
	Iterations int64 `json:"iterations"`
	// Failed, Interrupted and LostWorkers are those of the state.
	Failed      int64            `json:"failed"`
	Interrupted int64            `json:"interrupted,omitempty"`
	LostWorkers int64            `json:"lost_workers,omitempty"`
	Totals      map[string]int64 `json:"totals,omitempty"`
	Reason      string           `json:"reason,omitempty"`
	// Cursor is the position that the last iteration left behind: the job goes on there
	// when it is started again.
	Cursor json.RawMessage `json:"cursor,omitempty"`
}

// Messages of ContinuousJob. Each answers with the state after the change; one that
// would change nothing is refused with the state, see [ErrorTypeUnchanged].
const (
	// MessageStop ends the job: gracefully, after the current iteration heard it.
	MessageStop Message[StopRequest, ContinuousState] = "stop"
	// MessageRestart ends the current iteration and starts the next at once.
	MessageRestart Message[RestartRequest, ContinuousState] = "restart"
	// MessagePause ends the current iteration and starts no more until resumed.
	MessagePause Message[PauseRequest, ContinuousAnswer] = "pause"
	// MessageResume lets a paused job go on, and forgets its failures.
	MessageResume Message[ResumeRequest, ContinuousAnswer] = "resume"
	// MessageTrigger starts the next iteration without waiting for the interval.
	MessageTrigger Message[TriggerRequest, ContinuousState] = "trigger"
	// MessageSetJob takes over a new definition from the next iteration on.
	MessageSetJob Message[SetJobRequest, ContinuousState] = "set_job"
)

// ErrorTypeUnchanged is the type of the error with which ContinuousJob refuses a
// message that would change nothing. The detail is the state, a [ContinuousState]: it
// is the answer to the message.
const ErrorTypeUnchanged = "Unchanged"

// ErrorTypeOtherDefinition is the type of the error of MessageSetJob when the
// definition in force is not the one to replace.
const ErrorTypeOtherDefinition = "OtherDefinition"

// Phase says what a continuous job is doing.
type Phase string

// The phases.
const (
	PhaseRunning  Phase = "running" // an iteration runs
	PhaseWaiting  Phase = "waiting" // for the interval to pass
	PhaseFailing  Phase = "failing" // the last iteration failed; waiting to try again
	PhasePaused   Phase = "paused"
	PhaseStopping Phase = "stopping" // asked to stop; the handler has its grace period
	PhaseStopped  Phase = "stopped"
)

// ContinuousState is everything a continuous job remembers: the input that
// continue-as-new carries on, and the answer to QueryState.
type ContinuousState struct {
	Job job.Job `json:"job"`
	// Phase says what the job is doing now.
	Phase Phase `json:"phase"`
	// Iterations counts the finished iterations since the job was started;
	// Failed those that failed, and ConsecutiveFailures those since the last
	// that succeeded.
	Iterations          int64 `json:"iterations"`
	Failed              int64 `json:"failed"`
	ConsecutiveFailures int   `json:"consecutive_failures"`
	// FailingSince is when the job went over to failing, as its memo has it.
	FailingSince time.Time `json:"failing_since,omitzero"`
	// Interrupted counts the iterations that were cut short: stopped, restarted, or
	// handed over by a worker that shut down. They neither failed nor succeeded.
	Interrupted int64 `json:"interrupted,omitempty"`
	// LostWorkers counts the iterations whose worker died, and ConsecutiveLost
	// those in a row. They do not count as failed unless there are more than
	// maxLostWorkers in a row.
	LostWorkers     int64 `json:"lost_workers,omitempty"`
	ConsecutiveLost int   `json:"consecutive_lost,omitempty"`
	// Totals adds up the counts of all iterations.
	Totals map[string]int64 `json:"totals,omitempty"`
	// Recent holds the last iterations, oldest first.
	Recent []Iteration `json:"recent,omitempty"`
	// Cursor is the position that the last iteration left behind.
	Cursor json.RawMessage `json:"cursor,omitempty"`
	// Binding is the service of a bound job.
	Binding Binding `json:"binding,omitzero"`
	// EndedAt is the end of the last iteration. Zero means that the next one is
	// due at once.
	EndedAt time.Time `json:"ended_at,omitzero"`
	// NextAt is when the next iteration is due, while the job waits.
	NextAt time.Time `json:"next_at,omitzero"`
	// LastSuccess is the end of the last iteration that succeeded.
	LastSuccess time.Time `json:"last_success,omitzero"`
	// LastError is the error of the last iteration that was not cut short, if it
	// failed or its worker died.
	LastError string `json:"last_error,omitempty"`

	// What messages have set and the loop has not acted on yet.
	Paused      bool   `json:"paused,omitempty"`
	PauseReason string `json:"pause_reason,omitempty"`
	// PauseEnd is when the pause ends by itself; zero for never.
	PauseEnd time.Time `json:"pause_end,omitzero"`
	// PausedItself says that the job has paused itself, and nobody else has.
	PausedItself bool   `json:"paused_itself,omitempty"`
	Stop         bool   `json:"stop,omitempty"`
	StopReason   string `json:"stop_reason,omitempty"`
	// Deleted says that the job is stopped since it is no more.
	Deleted bool `json:"deleted,omitempty"`
	Restart bool `json:"restart,omitempty"`
	Trigger bool `json:"trigger,omitempty"`

	// Generation counts the workflow runs, each continued as new.
	Generation int `json:"generation"`
}

// ContinuousAnswer is the state of a job after a pause or a resume, and what it was before.
type ContinuousAnswer struct {
	ContinuousState
	Before Before `json:"before,omitzero"`
}

// Iteration is one finished iteration of a continuous job.
type Iteration struct {
	Number   int64            `json:"number"`
	Start    time.Time        `json:"start"`
	Duration job.Duration     `json:"duration"`
	Worker   string           `json:"worker,omitempty"`
	Message  string           `json:"message,omitempty"`
	Counts   map[string]int64 `json:"counts,omitempty"`
	Class    string           `json:"class,omitempty"` // of the error
	Error    string           `json:"error,omitempty"`
	// Stopped says that it was cut short, Lost that its worker died.
	Stopped bool `json:"stopped,omitempty"`
	Lost    bool `json:"lost,omitempty"`
}

// End is when it ended.
func (it Iteration) End() time.Time { return it.Start.Add(it.Duration.Std()) }

// NewContinuousState is the state of a job that was not started before.
func NewContinuousState(j job.Job) ContinuousState {
	state := ContinuousState{Job: j, Phase: PhaseWaiting}
	if j.Options.Paused {
		state.Paused, state.PauseReason, state.Phase = true, "paused in its definition", PhasePaused
	}
	return state
}

// BacksOff reports whether the latest iterations failed, or lost their workers, so that the
// next one waits longer: there is something for MessageResume to forget.
func (s *ContinuousState) BacksOff() bool { return s.ConsecutiveFailures > 0 || s.ConsecutiveLost > 0 }
