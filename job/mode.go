package job

import "time"

// Mode says when and how often a job runs.
type Mode string

// The four modes. A job has exactly one.
const (
	ModeOneShot    Mode = "one-shot"   // once
	ModeContinuous Mode = "continuous" // again and again until stopped
	ModeRecurring  Mode = "recurring"  // on an interval or at the times of a cron text
	ModeQueued     Mode = "queued"     // once, in order, alone in its queue
)

// Modes lists every mode in the order of the documentation.
func Modes() []Mode {
	return []Mode{ModeOneShot, ModeContinuous, ModeRecurring, ModeQueued}
}

// OneShot runs a job once per definition: again only when its type, spec or time
// changes, or when someone asks.
type OneShot struct {
	// At is when the run begins. It waits in Temporal until then; one that is past
	// when the job is applied means at once. Defaults to at once.
	At time.Time `json:"at,omitzero" help:"when the run begins; at once if that is past when the job is applied, and by default"`
}

// Continuous runs a job again and again until it is stopped.
type Continuous struct {
	// Interval is the wait between the end of one iteration and the start of
	// the next. Required; its least value keeps a fast handler from a hot loop.
	Interval Duration `json:"interval" minimum:"PT0.01S" example:"PT1S" help:"the wait between the end of one iteration and the start of the next"`
	// RestartOnChange has a changed definition taken over at once: the current
	// iteration is ended gracefully, and the next goes on at its cursor. Without it
	// the current iteration ends by itself first. Defaults to false.
	RestartOnChange bool `json:"restart_on_change,omitempty" default:"false" help:"a changed definition ends the current iteration gracefully; its cursor is kept"`
}

// Queued runs a job once, in order of acceptance and alone in a named queue.
type Queued struct {
	// Queue is the name of the queue: [a-z0-9] first, then [a-z0-9._-], at
	// most 64 characters. Required.
	Queue string `json:"queue" example:"photos" help:"name of the queue: a-z or 0-9 first, then also '.', '_' and '-'; at most 64 characters"`
	// OnFailure is what the failure of this job does to its queue: continue
	// with the next item, or halt until someone resumes or skips. Defaults to
	// what is set for the queue, which is continue unless someone has set it.
	OnFailure OnFailure `json:"on_failure,omitempty" enum:"continue,halt" help:"whether the queue runs the next item when this job fails, or halts; by default as set for the queue, else continue"`
}

// At is when a one-shot begins; zero if at once, and in every other mode.
func (t Trigger) At() time.Time {
	if t.OneShot == nil {
		return time.Time{}
	}
	return t.OneShot.At
}

// OnFailure says what the failure of an item does to its queue.
type OnFailure string

// The failure policies.
const (
	OnFailureContinue OnFailure = "continue" // the next item runs
	OnFailureHalt     OnFailure = "halt"     // nothing runs until someone resumes or skips
)

// Valid reports whether o is a failure policy.
func (o OnFailure) Valid() bool { return o == OnFailureContinue || o == OnFailureHalt }

// Trigger holds the mode of a job with its settings: exactly one field is set.
type Trigger struct {
	OneShot    *OneShot    `json:"one_shot,omitempty" help:"runs once; again only when its type, spec or time changes, or when someone asks"`
	Continuous *Continuous `json:"continuous,omitempty" help:"runs again and again until it is stopped"`
	Recurring  *Recurring  `json:"recurring,omitempty" help:"starts on an interval, or at the times of a cron text"`
	Queued     *Queued     `json:"queued,omitempty" help:"runs once, in order, alone in its queue"`
}

// Mode names the mode that is set, or "" when none is.
func (t Trigger) Mode() Mode {
	switch {
	case t.OneShot != nil:
		return ModeOneShot
	case t.Continuous != nil:
		return ModeContinuous
	case t.Recurring != nil:
		return ModeRecurring
	case t.Queued != nil:
		return ModeQueued
	}
	return ""
}

// Queue names the queue of a queued job, or "" in every other mode.
func (t Trigger) Queue() string {
	if t.Queued == nil {
		return ""
	}
	return t.Queued.Queue
}

// keys lists the JSON keys of the modes that are set.
func (t Trigger) keys() []string {
	var keys []string
	for _, mode := range []struct {
		key string
		set bool
	}{
		{"one_shot", t.OneShot != nil},
		{"continuous", t.Continuous != nil},
		{"recurring", t.Recurring != nil},
		{"queued", t.Queued != nil},
	} {
		if mode.set {
			keys = append(keys, mode.key)
		}
	}
	return keys
}
