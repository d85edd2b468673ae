package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Jobs is how a handler manages other jobs; [Run.Jobs] gives it. Its methods may be
// called from several goroutines.
type Jobs interface {
	// Apply makes the jobs of a provider those of the set: it creates, changes and
	// removes jobs. A job that is removed is stopped gracefully, and Apply waits for
	// its end. A run of a one-shot, or of an item that its queue has started, goes on.
	//
	// A job that cannot be applied is left as it is, and the others go on: the error
	// joins what went wrong, and Applied tells what was done. After an interruption
	// apply again: what is done is not done twice.
	Apply(ctx context.Context, set Set) (Applied, error)
	// Stop ends what a job does now, see `starter jobs stop`. It is no error if the job
	// does nothing, or is not there.
	Stop(ctx context.Context, jobID, reason string) error
	// Pause keeps a recurring or continuous job from running until the end, at which it
	// resumes by itself, as `starter jobs pause --for` does. It reports whether the job is
	// paused until then: one that somebody has paused before stays as it is. It is no error if
	// the job does nothing, or is not there.
	Pause(ctx context.Context, jobID, reason string, end time.Time) (bool, error)
	// Enqueue puts a queued job into its queue, unless it is in it already. With
	// allowRerun it runs although it has completed before. Without a provider it gets [ProviderAPI]:
	// no set of another provider takes it out. The error wraps [ErrRefused] if the queue
	// answers that it does not take the job: it is drained or full, or has ended.
	Enqueue(ctx context.Context, j Job, allowRerun bool) error
	// RemoveQueue removes a queue with everything in it: what waits and its dead letters
	// go, what runs is stopped gracefully, and RemoveQueue waits for its end. A queue that
	// is not there has nothing.
	RemoveQueue(ctx context.Context, queue string) error
	// QueueItems counts what RemoveQueue would remove, and says whether the queue is there.
	QueueItems(ctx context.Context, queue string) (items int, exists bool, err error)
	// Find lists recurring jobs, and continuous jobs that have not been stopped, by id.
	// The list may lag behind by about a second.
	Find(ctx context.Context, filter Filter) ([]Summary, error)
	// Get gives the definition in force of a job. The error wraps [ErrNoJob] if there is none
	// of the id.
	Get(ctx context.Context, jobID string) (Job, error)
}

// ErrNoJob says that there is no job of an id.
var ErrNoJob = errors.New("there is no such job")

// ErrRefused says that a queue does not take a job.
var ErrRefused = errors.New("refused")

// Set is the jobs that a provider wants. A job has one provider: a set never changes
// jobs of another.
type Set struct {
	Provider Provider
	// Jobs get the provider of the set.
	Jobs []Job
	// Only narrows the set to the jobs with these ids; other jobs of the provider are
	// left as they are. Defaults to all jobs of the provider.
	Only []string
	// DryRun tells what would be done, and changes nothing.
	DryRun bool
}

// Check sorts the jobs of the set: valid ones, which get its provider, and others, which
// cannot be applied. The error is about the set as a whole.
func (s Set) Check() (valid []Job, blocked []Change, err error) {
	if err := s.Provider.Check(); err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, j := range s.Jobs {
		if len(s.Only) > 0 && !slices.Contains(s.Only, j.ID) {
			continue
		}
		if seen[j.ID] {
			valid = slices.DeleteFunc(valid, func(other Job) bool { return other.ID == j.ID })
			blocked = slices.DeleteFunc(blocked, func(other Change) bool { return other.JobID == j.ID })
			blocked = append(blocked, Change{JobID: j.ID, Action: ActionBlocked, Note: "several jobs of the set have this id"})
			continue
		}
		seen[j.ID] = true
		j.Provider = s.Provider
		if note := j.notApplicable(); note != "" {
			blocked = append(blocked, Change{JobID: j.ID, Action: ActionBlocked, Note: note})
			continue
		}
		valid = append(valid, j)
	}
	return valid, blocked, nil
}

// Enqueueable is the job as it is put into its queue: with a provider. The error says why
// it cannot be.
func (j Job) Enqueueable() (Job, error) {
	if j.Provider == "" {
		j.Provider = ProviderAPI
	}
	note := j.notApplicable()
	if note == "" && j.Mode() != ModeQueued {
		note = fmt.Sprintf("its mode is %s, not %s", j.Mode(), ModeQueued)
	}
	if note != "" {
		return j, fmt.Errorf("job %s cannot be put into a queue: %s", j.ID, note)
	}
	return j, nil
}

// notApplicable says why a job cannot be applied, "" if it can.
func (j Job) notApplicable() string {
	var notes []string
	if j.Worker == "" {
		notes = append(notes, "it names no worker type")
	}
	for _, problem := range j.Validate() {
		notes = append(notes, problem.String())
	}
	return strings.Join(notes, "; ")
}

// Action is what apply does with a job.
type Action string

// The actions.
const (
	ActionCreate  Action = "create"
	ActionUpdate  Action = "update"
	ActionDelete  Action = "delete"
	ActionBlocked Action = "blocked" // it cannot be applied
)

// Change is what Apply did, or would do, with one job.
type Change struct {
	Action Action `json:"action"`
	JobID  string `json:"job_id"`
	// Note says why the job is blocked, or what else people should know.
	Note string `json:"note,omitempty"`
	// Err says why the change failed.
	Err error `json:"-"`
}

// Applied tells what Apply did, or would do.
type Applied struct {
	// Changes are what was done or tried, and jobs that are blocked.
	Changes []Change
	// Unchanged counts the jobs that were as the set wants them.
	Unchanged int
}

// Err joins what keeps the jobs from being as the set wants them.
func (a Applied) Err() error {
	var errs []error
	for _, change := range a.Changes {
		switch {
		case change.Err != nil:
			errs = append(errs, change.Err)
		case change.Action == ActionBlocked:
			errs = append(errs, fmt.Errorf("job %s cannot be applied: %s", change.JobID, change.Note))
		}
	}
	return errors.Join(errs...)
}

// Filter narrows what Find gives. Empty fields do not.
type Filter struct {
	// Provider means itself and the providers under it: "integration" means
	// "integration.CONFIG" too.
	Provider Provider
	Type     string
	Owner    Owner
	// State asks for the state of the jobs too, which takes further calls.
	State bool
}

// Matches reports whether the filter lets a job through.
func (f Filter) Matches(found Summary) bool {
	return (f.Provider == "" || found.Provider.IsUnder(f.Provider)) &&
		(f.Type == "" || f.Type == found.Type) &&
		(f.Owner == Owner{} || f.Owner == found.Owner)
}

// Summary is a job as lists show it.
type Summary struct {
	ID       string
	Type     string
	Mode     Mode
	Provider Provider
	Owner    Owner
	// DefinitionHash is that of the definition in force.
	DefinitionHash string
	// Paused and Failing are set if the filter asked for the state.
	Paused bool
	// Failing is nil unless the latest runs, or iterations, failed.
	Failing *Failing
}

// Failing is how a recurring or continuous job fails.
type Failing struct {
	// Failures counts the failed runs in a row of a recurring job.
	Failures int
	// Since is the end of the first run, or iteration, in a row that failed.
	Since time.Time
	// Class and Error are those of the last run, or of the first iteration, that failed.
	Class, Error string
}

// IntegrationProvider is the provider of the jobs that the orchestrator of an
// integration config makes: integration.CONFIG.
func IntegrationProvider(config string) Provider {
	return ProviderIntegration + "." + Provider(config)
}

// Check reports why p cannot be a provider.
func (p Provider) Check() error {
	if config, ok := strings.CutPrefix(string(p), string(IntegrationProvider(""))); ok {
		return CheckKey("integration config", config)
	}
	return CheckKey("provider", string(p))
}

// IsUnder reports whether p is the provider top, or one under it.
func (p Provider) IsUnder(top Provider) bool {
	return p == top || strings.HasPrefix(string(p), string(top)+".")
}

// HasID is the note of a job that is blocked since a job of provider p has its id.
func (p Provider) HasID() string {
	return fmt.Sprintf("a job of provider %s has this id: stop or delete that one first", p)
}
