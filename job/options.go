package job

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Options are the settings that a job has in every mode.
type Options struct {
	// Description is one line for people, of at most MaxDescriptionBytes; it is shown
	// in the Web UI.
	Description string `json:"description,omitempty" help:"one line for people, shown in the Web UI; at most 1,000 bytes"`
	// Owner is the organization or user the job belongs to, of at most MaxOwnerBytes.
	Owner Owner `json:"owner,omitzero" help:"the organization or user that the job belongs to: organization:NAME or user:NAME, at most 128 bytes"`
	// Tags are free labels to find jobs by: at most 32, with names and values of at most
	// 128 bytes.
	Tags map[string]string `json:"tags,omitempty" help:"free labels to find jobs by, each a string: at most 32, with names and values of at most 128 bytes"`
	// Paused keeps a recurring or continuous job from running, and a one-shot
	// or queued job from being started. Defaults to false.
	Paused bool `json:"paused,omitempty" help:"keeps a recurring or continuous job from running, and a one-shot or queued job from being started"`
	// RunTimeout is the longest that one attempt of a run may take, counted
	// from the moment a worker takes it: a run that waits for a worker is not
	// lost. The handler is then asked to stop, and cut off StopGracePeriod later; what
	// it returns in between counts. Defaults to one hour.
	RunTimeout Duration `json:"run_timeout" minimum:"PT0.001S" maximum:"P3650D" help:"the longest an attempt may take. Then its handler is asked to stop, and cut off stop_grace_period later. What it returns till then counts"`
	// HeartbeatTimeout is how long a worker may be silent before its run is
	// given to another. Workers report every third of it by themselves.
	// Defaults to 15 seconds.
	HeartbeatTimeout Duration `json:"heartbeat_timeout" minimum:"PT1S" maximum:"P3650D" help:"how long a worker may be silent before its run is given to another"`
	// MaxRetryCount is how often a failed run is tried again. In continuous
	// mode it counts failed iterations in a row, after which the job pauses
	// itself. Defaults to 3, and in continuous mode to no limit (-1).
	MaxRetryCount int `json:"max_retry_count" minimum:"-1" maximum:"1000000" help:"how often a failed run is tried again; -1 means no limit, the default in continuous mode, where failed iterations in a row are counted"`
	// RetryBackoff is the wait before a retry.
	RetryBackoff Backoff `json:"retry_backoff" help:"the wait before a retry; what is left out has its default, not what is inherited"`
	// StopGracePeriod is the time a handler has to save its position and
	// return once it was asked to stop; after it the run is cut off. Defaults
	// to 10 seconds.
	StopGracePeriod Duration `json:"stop_grace_period" minimum:"PT0.001S" maximum:"P3650D" help:"the time a handler has to save its position and return once it was asked to stop"`
	// Bind lists tags that a service must have to get the job's runs. Defaults
	// to none: any worker of the type does.
	Bind map[string]string `json:"bind,omitempty" help:"tags that a service, a live worker process, must have to get the job's runs; every service has the tags host and name"`
	// Failover says what becomes of a bound run whose service dies. Defaults to
	// requeue.
	Failover Failover `json:"failover,omitempty" enum:"requeue,wait,fail" default:"requeue" help:"a bound run whose service dies: another service with the tags takes it over, it waits for its service, or it fails"`
	// FailoverAfter is how long a bound run waits for its service to return
	// before it is failed over. A service that dies counts as away only after the
	// timeout of its worker process, which is 15 seconds by default. Defaults to 30 seconds.
	FailoverAfter Duration `json:"failover_after,omitzero" minimum:"PT1S" default:"PT30S" help:"how long a bound run waits for its service before failover acts. Not less than the --service-timeout of its workers, 15 s by default"`
	// Freshness is how old the latest success of a recurring or continuous job may be
	// before the watchdog tells. Defaults to no limit.
	Freshness Duration `json:"freshness,omitzero" minimum:"PT1S" maximum:"P3650D" example:"PT1H" help:"how old the latest success may be before the watchdog tells; of recurring and continuous jobs; without it there is no limit"`
	// Deadline is the time of day by which a recurring or continuous job has a success
	// each day, or else the watchdog tells. Defaults to none.
	Deadline *Deadline `json:"deadline,omitempty" help:"the time by which there is a success each day, or else the watchdog tells; of recurring and continuous jobs"`
}

// Backoff is an exponential wait with a cap.
type Backoff struct {
	// Initial is the first wait. Defaults to one second.
	Initial Duration `json:"initial" minimum:"PT0.001S" maximum:"P3650D" help:"the wait before the first retry"`
	// Max is the longest wait. Defaults to one minute.
	Max Duration `json:"max" minimum:"PT0.001S" maximum:"P3650D" help:"the longest wait; not shorter than initial"`
	// Coefficient multiplies the wait after each failure. Defaults to 2.
	Coefficient float64 `json:"coefficient" minimum:"1" maximum:"1000" help:"what the wait is multiplied by after each failure"`
}

// Wait is the time to wait after the given number of failures in a row: Initial
// after the first, and never more than Max.
func (b Backoff) Wait(failures int) time.Duration {
	if b.Initial <= 0 {
		return 0
	}
	wait := float64(b.Initial) * math.Pow(b.Coefficient, float64(max(failures-1, 0)))
	return time.Duration(min(wait, float64(b.Max)))
}

// Unlimited as a MaxRetryCount means that there is no limit.
const Unlimited = -1

// DefaultOptions are the options of a job of the given mode that sets none.
func DefaultOptions(mode Mode) Options {
	retries := 3
	if mode == ModeContinuous {
		retries = Unlimited
	}
	return Options{
		RunTimeout:       Duration(time.Hour),
		HeartbeatTimeout: Duration(15 * time.Second),
		MaxRetryCount:    retries,
		RetryBackoff: Backoff{
			Initial:     Duration(time.Second),
			Max:         Duration(time.Minute),
			Coefficient: 2,
		},
		StopGracePeriod: Duration(10 * time.Second),
	}
}

// Owner is an organization or a user, not both. In text and in JSON it is
// organization:NAME or user:NAME.
type Owner struct {
	Organization string
	User         string
}

// String writes organization:NAME, user:NAME or "".
func (o Owner) String() string {
	switch {
	case o.Organization != "":
		return "organization:" + o.Organization
	case o.User != "":
		return "user:" + o.User
	}
	return ""
}

// ParseOwner reads organization:NAME or user:NAME.
func ParseOwner(text string) (Owner, error) {
	kind, name, found := strings.Cut(text, ":")
	if found && name != "" {
		switch kind {
		case "organization":
			return Owner{Organization: name}, nil
		case "user":
			return Owner{User: name}, nil
		}
	}
	return Owner{}, fmt.Errorf("%.80q is not an owner: write organization:NAME or user:NAME", text)
}

// MarshalText writes what String writes.
func (o Owner) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what [ParseOwner] reads; no text means no owner.
func (o *Owner) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*o = Owner{}
		return nil
	}
	parsed, err := ParseOwner(string(text))
	if err != nil {
		return err
	}
	*o = parsed
	return nil
}
