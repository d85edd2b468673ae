package workflows

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// recentIterations is how many iterations ContinuousJob keeps to show.
const recentIterations = 20

// maxTotals bounds the names of counts that are added up; those of further names
// are added up as one.
const (
	maxTotals   = 200
	otherTotals = "others"
)

// shownIterations is how many of them the Web UI shows.
const shownIterations = 5

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
	// FailingSince is when the job went over to failing, as its memo tells.
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
	// PausedItself says that the job has paused itself, and nobody else has.
	PausedItself bool   `json:"paused_itself,omitempty"`
	Stop         bool   `json:"stop,omitempty"`
	StopReason   string `json:"stop_reason,omitempty"`
	Restart      bool   `json:"restart,omitempty"`
	Trigger      bool   `json:"trigger,omitempty"`

	// Generation counts the workflow runs, each continued as new.
	Generation int `json:"generation"`
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

// end is when the iteration ended.
func (it Iteration) end() time.Time { return it.Start.Add(it.Duration.Std()) }

// NewContinuousState is the state of a job that was not started before.
func NewContinuousState(j job.Job) ContinuousState {
	state := ContinuousState{Job: j, Phase: PhaseWaiting}
	if j.Options.Paused {
		state.Paused, state.PauseReason, state.Phase = true, "paused in its definition", PhasePaused
	}
	return state
}

func (s *ContinuousState) record(it Iteration) {
	it.Message, it.Error = shorten(it.Message), shorten(it.Error)
	s.Iterations++
	switch {
	case it.Stopped:
		s.Interrupted++
	case it.Error == "":
		s.forgetFailures()
		s.LastError = ""
		s.LastSuccess = it.end()
	default:
		s.fail(it)
	}
	for _, name := range workflow.DeterministicKeys(it.Counts) {
		if s.Totals == nil {
			s.Totals = map[string]int64{}
		}
		total := name
		if _, known := s.Totals[name]; !known && len(s.Totals) >= maxTotals {
			total = otherTotals
		}
		s.Totals[total] += it.Counts[name]
	}
	s.Recent = append(s.Recent, it)
	if extra := len(s.Recent) - recentIterations; extra > 0 {
		s.Recent = append([]Iteration(nil), s.Recent[extra:]...)
	}
}

// fail takes in an iteration that failed, or whose worker died: that is not the
// job's fault as long as it does not happen again and again.
func (s *ContinuousState) fail(it Iteration) {
	s.LastError = it.Error
	if it.Lost {
		s.LostWorkers++
		s.ConsecutiveLost++
		if s.ConsecutiveLost <= maxLostWorkers {
			return
		}
	} else {
		s.ConsecutiveLost = 0
	}
	s.Failed++
	s.ConsecutiveFailures++
}

// BacksOff says that the latest iterations failed, or lost their workers, so that the
// next one waits longer: there is something for MessageResume to forget.
func (s *ContinuousState) BacksOff() bool { return s.ConsecutiveFailures > 0 || s.ConsecutiveLost > 0 }

// AlsoFor stands between the reasons for which several have paused something, the
// first of them first.
const AlsoFor = "; also: "

// pauseItself pauses the job after its failures. A pause that someone has asked for
// meanwhile keeps its reason: whoever resumes the job has to know of both.
func (s *ContinuousState) pauseItself(lastError string) {
	reason := fmt.Sprintf("%d iterations in a row failed, the last one: %s", s.ConsecutiveFailures, shorten(lastError))
	s.PausedItself = !s.Paused
	if s.Paused && s.PauseReason != "" {
		const room = maxPauseReason - len(AlsoFor)
		reason = job.Cut(reason, max(room/2, room-len(s.PauseReason)))
		reason = job.Cut(s.PauseReason, room-len(reason)) + AlsoFor + reason
	}
	s.Paused, s.PauseReason = true, job.Cut(reason, maxPauseReason)
}

func (s *ContinuousState) forgetFailures() { s.ConsecutiveFailures, s.ConsecutiveLost = 0, 0 }

// exhausted says that the job has failed more often in a row than its retries allow.
func (s *ContinuousState) exhausted() bool {
	limit := s.Job.Options.MaxRetryCount
	return limit != job.Unlimited && s.ConsecutiveFailures > limit
}

// due is when the next iteration should start.
func (s *ContinuousState) due() time.Time {
	if s.EndedAt.IsZero() {
		return time.Time{}
	}
	wait := s.Job.Continuous.Interval.Std()
	if inVain := max(s.ConsecutiveFailures, s.ConsecutiveLost); inVain > 0 {
		wait = max(wait, s.Job.Options.RetryBackoff.Wait(inVain))
	}
	return s.EndedAt.Add(wait)
}

// details is the text that the Web UI shows for the running workflow. The progress is
// that of the iteration that runs.
func (s *ContinuousState) details(progress string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · `%s` · continuous, every %s · **%s**\n\n", s.Job.ID, s.Job.Type, s.Job.Continuous.Interval, s.Phase)
	if s.Paused {
		fmt.Fprintf(&b, "Paused: %s\n\n", s.PauseReason)
	}
	if s.Phase == PhaseRunning {
		fmt.Fprintf(&b, "Iteration %d runs: %s%s\n\n", s.Iterations+1, whereProgressIs, progress)
	}
	fmt.Fprintf(&b, "%d iterations, %d failed\n", s.Iterations, s.Failed)
	if s.Interrupted > 0 {
		fmt.Fprintf(&b, "\nCut short: %d\n", s.Interrupted)
	}
	if s.LostWorkers > 0 {
		fmt.Fprintf(&b, "\nLost workers: %d, %d in a row\n", s.LostWorkers, s.ConsecutiveLost)
	}
	if s.LastError != "" {
		fmt.Fprintf(&b, "\nLast error: %s\n", s.LastError)
	}
	b.WriteString(s.Binding.details())
	for i := len(s.Recent) - 1; i >= 0 && i >= len(s.Recent)-shownIterations; i-- {
		it := s.Recent[i]
		text := it.Message
		if it.Error != "" {
			text = it.Class + ": " + it.Error
		}
		fmt.Fprintf(&b, "\n- #%d at %s, took %s: %s", it.Number, it.Start.UTC().Format(time.TimeOnly), it.Duration.Std().Round(time.Millisecond), text)
	}
	return b.String()
}
