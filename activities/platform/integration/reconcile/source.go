package reconcile

import (
	"context"
	"fmt"

	"github.com/dendrascience/dendra-jobs/job"
)

// OrchestratorType is the job type of the one job of provider integration that an enabled
// config has. That job makes the others.
const OrchestratorType = "OrchestrateIntegration"

// OrchestratorSpec is the spec of jobs of [OrchestratorType].
type OrchestratorSpec struct {
	ConfigID string `json:"config_id" minLength:"1" help:"the integration config whose jobs it makes"`
	// Revision has a change reach the job at once, whose trigger has restart_on_change.
	Revision   string       `json:"revision,omitempty" help:"changes with what the jobs follow from; ReconcileJobs sets it"`
	Window     job.Duration `json:"window,omitzero" minimum:"PT1S" maximum:"PT12H" default:"PT5M" help:"time after which everything is looked at again: shorter than run_timeout"`
	CheckEvery job.Duration `json:"check_every,omitzero" minimum:"PT0.1S" maximum:"PT1H" default:"PT30S" help:"how often the state of the jobs is looked at"`
}

// OrchestratorID is the id of that job.
func OrchestratorID(config string) string { return job.ID(OrchestratorType, config) }

// Config is an integration config of the platform.
type Config struct {
	ID      string
	Version int64
	// Enabled says that the user has enabled it.
	Enabled bool
	// Job is the orchestrator that the config shall have, nil if it shall have none.
	Job *job.Job
	// Findings say why an enabled config has no job.
	Findings string
	// Condition is what the platform was told last, the zero value if it never was.
	Condition Condition
	// Orchestrated says that the platform has conditions that an orchestrator wrote.
	Orchestrated bool
}

// Condition is the state of the orchestrator of a config. It is for programs; Message is
// for people.
type Condition struct {
	Scheduled bool
	Reason    Reason
	Message   string // at most maxMessage bytes
	// Version is that of the config that the condition is about.
	Version int64
}

// maxMessage is what the platform takes.
const maxMessage = 1000

// Reason says in one word why a config has its orchestrator, or has not.
type Reason string

// The reasons.
const (
	ReasonApplied  Reason = "Applied"             // the job is as the platform wants it
	ReasonDisabled Reason = "Disabled"            // the user has disabled it
	ReasonNoJobs   Reason = "NothingRegistered"   // it is enabled, and the platform registers no job for it
	ReasonInvalid  Reason = "InvalidRegistration" // the platform has to change what it wants
	ReasonBlocked  Reason = "Blocked"             // a job of another provider has the id
	ReasonFailed   Reason = "ApplyFailed"         // it is tried again
)

// gone reports whether the config shall have no orchestrator, and has none.
func (c Condition) gone() bool { return c.Reason == ReasonDisabled || c.Reason == ReasonNoJobs }

// Source is the platform, as far as reconciliation needs it.
type Source interface {
	// Configs lists all configs, or gives an error.
	Configs(ctx context.Context) ([]Config, error)
	// SetCondition tells the platform the state of the orchestrator of a config. Conditions
	// that an orchestrator wrote go with it.
	SetCondition(ctx context.Context, config string, condition Condition) error
	// Hints calls look with configs that have changed, or with none if it cannot tell
	// which, until ctx ends or it gives an error. It may call look for nothing.
	Hints(ctx context.Context, look func(configs ...string)) error
}

// problem says why the job of a config cannot be applied, "" if it can.
func (c *Config) problem() string {
	if c.Job == nil {
		return ""
	}
	if c.Job.ID != OrchestratorID(c.ID) {
		return fmt.Sprintf("the job of config %s has the id %.160q, not %s", c.ID, c.Job.ID, OrchestratorID(c.ID))
	}
	_, blocked, err := job.Set{Provider: job.IntegrationProvider(c.ID), Jobs: []job.Job{*c.Job}}.Check()
	switch {
	case err != nil:
		return err.Error()
	case len(blocked) > 0:
		return blocked[0].Note
	}
	return ""
}

// invalid is the condition of a config whose job cannot be applied.
func (c *Config) invalid(problem string) Condition {
	return Condition{Reason: ReasonInvalid, Message: job.Cut(problem, maxMessage), Version: c.Version}
}

// applied is the condition of a config whose job was applied, or was not.
func (c *Config) applied(done job.Applied, err error) Condition {
	condition := c.outcome(done, err)
	condition.Version = c.Version
	return condition
}

func (c *Config) outcome(done job.Applied, err error) Condition {
	switch {
	case err != nil:
		for _, change := range done.Changes {
			if change.Action == job.ActionBlocked {
				return Condition{Reason: ReasonBlocked, Message: job.Cut(change.Note, maxMessage)}
			}
		}
		return Condition{Reason: ReasonFailed, Message: job.Cut(err.Error(), maxMessage)}
	case c.Job == nil && c.Enabled && c.Findings != "":
		return Condition{Reason: ReasonNoJobs, Message: job.Cut("the platform registers no job for this config: "+c.Findings, maxMessage)}
	case c.Job == nil && c.Enabled:
		return Condition{Reason: ReasonNoJobs, Message: "configs of this type have no jobs"}
	case c.Job == nil:
		return Condition{Reason: ReasonDisabled}
	}
	return Condition{Scheduled: true, Reason: ReasonApplied}
}
