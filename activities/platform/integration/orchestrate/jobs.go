package orchestrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/schema"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Registration is a job that a config wants.
type Registration = platformv1.IntegrationJobRegistration

// Config is an enabled config with the jobs that it wants.
type Config struct {
	ID            string
	Registrations []*Registration
}

// Input is all that the jobs of a config follow from.
type Input struct {
	Config
	// TypeID is its integration type.
	TypeID string
	// RefersTo are the configs that it refers to, and Referring those that refer to it,
	// both in the order of ids.
	RefersTo, Referring []Config
	// Stations are those that the config and the referring ones belong to, by id, each
	// with all others of the platform whose measurements have the same names.
	Stations map[string][]*platformv1.Station
}

// Plan is the jobs of a config.
type Plan struct {
	Jobs []job.Job
	// Joined are jobs of other configs that do the work of jobs that it wants.
	Joined []Joined
	// Problems keep jobs from being there.
	Problems []Problem
	// Keep are the ids of jobs with which something is wrong: what runs goes on until it
	// is mended.
	Keep []string
	// LeftOut are configs that refer to it whose part of a job cannot be taken.
	LeftOut []LeftOut
}

// Joined is a job of another config.
type Joined struct {
	JobType, Config string
}

// JobID is the id of the job.
func (j Joined) JobID() string { return job.ID(j.JobType, j.Config) }

// Problem is why a job is not there.
type Problem struct {
	Reason  Reason
	Message string
}

// LeftOut is a config whose part of a job is not taken.
type LeftOut struct {
	Config, JobType, Message string
}

// Planner plans the jobs of configs.
type Planner struct {
	types map[string]job.Type
}

// NewPlanner makes a planner that knows these job types. Others have to name their worker.
func NewPlanner(types ...job.Type) *Planner {
	p := &Planner{types: map[string]job.Type{}}
	for _, typ := range types {
		p.types[typ.Name] = typ
	}
	return p
}

// Plan plans the jobs of a config.
func (p *Planner) Plan(in Input) Plan {
	w := &work{Planner: p, in: in}
	for _, r := range in.Registrations {
		var owners []Config
		for _, other := range in.RefersTo {
			if other.registered(r.GetJobType()) != nil {
				owners = append(owners, other)
			}
		}
		if problem := w.checkStation(r, in.Config, in.RefersTo...); problem != nil {
			w.refuse(r, *problem)
			continue
		}
		switch len(owners) {
		case 0:
			w.own(r)
		case 1:
			w.join(r, owners[0])
		default:
			w.invalid(r, "%s could be part of config %s or of config %s: refer to one of them", r.GetJobType(), owners[0].ID, owners[1].ID)
		}
	}
	return w.plan
}

// Apply brings the jobs about.
func (p Plan) Apply(ctx context.Context, jobs job.Jobs, config string) (job.Applied, error) {
	return Apply(ctx, jobs, job.Set{Provider: job.IntegrationProvider(config), Jobs: p.Jobs}, p.Keep...)
}

func (c Config) registered(jobType string) *Registration {
	for _, r := range c.Registrations {
		if r.GetJobType() == jobType {
			return r
		}
	}
	return nil
}

// work is the planning of one config.
type work struct {
	*Planner
	in   Input
	plan Plan
}

// problem notes a problem, once.
func (w *work) problem(reason Reason, format string, args ...any) {
	p := Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
	if !slices.Contains(w.plan.Problems, p) {
		w.plan.Problems = append(w.plan.Problems, p)
	}
}

// invalid notes why there is no job of a registration.
func (w *work) invalid(r *Registration, format string, args ...any) {
	w.refuse(r, Problem{ReasonInvalid, fmt.Sprintf(format, args...)})
}

// refuse notes what is wrong with a registration.
func (w *work) refuse(r *Registration, p Problem) {
	w.problem(p.Reason, "%s", p.Message)
	w.plan.Keep = append(w.plan.Keep, job.ID(r.GetJobType(), w.in.ID))
}

// join leaves a job to the config that it is part of.
func (w *work) join(r *Registration, owner Config) {
	jobType := r.GetJobType()
	joined := appended(specOf(owner.registered(jobType)), r)
	if err := w.check(jobType, joined); err != nil {
		w.invalid(r, "%s cannot be part of config %s: %s", jobType, owner.ID, err)
		return
	}
	for _, other := range w.in.Referring {
		if other.registered(jobType) != nil {
			w.problem(ReasonInvalid, "%s of config %s cannot be part of this config, where it is part of config %s: refer to that one", jobType, other.ID, owner.ID)
		}
	}
	w.plan.Joined = append(w.plan.Joined, Joined{JobType: jobType, Config: owner.ID})
}

// own makes a job, with what other configs add to it.
func (w *work) own(r *Registration) {
	jobType := r.GetJobType()
	var parts []*Registration
	for _, other := range w.in.Referring {
		part := other.registered(jobType)
		if part == nil {
			continue
		}
		if problem := w.checkStation(part, other, w.in.Config); problem != nil {
			w.plan.LeftOut = append(w.plan.LeftOut, LeftOut{Config: other.ID, JobType: jobType, Message: problem.Message})
			continue
		}
		parts = append(parts, part)
	}
	spec, leftOut := w.spec(r, parts)
	w.plan.LeftOut = append(w.plan.LeftOut, leftOut...)
	for _, key := range slices.Sorted(maps.Keys(r.GetSpec().GetFields())) {
		if list, ok := spec[key].([]any); ok && len(list) == 0 {
			w.problem(WaitingFor(key), "%s waits for %s: no enabled config that refers to this one adds any", jobType, key)
			return
		}
	}
	j, err := w.job(r, spec)
	if err != nil {
		w.invalid(r, "%s", err)
		return
	}
	w.plan.Jobs = append(w.plan.Jobs, j)
}

// spec is that of a job with the parts of other configs, without those that it would not
// be valid with.
func (w *work) spec(r *Registration, parts []*Registration) (map[string]any, []LeftOut) {
	whole := appended(specOf(r), parts...)
	if len(parts) == 0 || w.check(r.GetJobType(), whole) == nil {
		return whole, nil
	}
	spec := specOf(r)
	var leftOut []LeftOut
	for _, part := range parts {
		more := appended(spec, part)
		if err := w.check(r.GetJobType(), more); err != nil {
			leftOut = append(leftOut, LeftOut{Config: part.GetConfigId(), JobType: r.GetJobType(), Message: err.Error()})
			continue
		}
		spec = more
	}
	return spec, leftOut
}

func specOf(r *Registration) map[string]any {
	if r.GetSpec() == nil {
		return map[string]any{}
	}
	return r.GetSpec().AsMap()
}

// appended is a spec with the lists of parts behind its lists of the same keys.
func appended(spec map[string]any, parts ...*Registration) map[string]any {
	spec = maps.Clone(spec)
	for _, part := range parts {
		for key, value := range part.GetSpec().GetFields() {
			more, isList := value.GetKind().(*structpb.Value_ListValue)
			before, known := spec[key]
			list, wasList := before.([]any)
			if isList && (wasList || !known) {
				spec[key] = slices.Concat(list, more.ListValue.AsSlice())
			}
		}
	}
	return spec
}

// check says what is wrong with a spec, as far as its job type is known.
func (p *Planner) check(jobType string, spec map[string]any) error {
	typ, known := p.types[jobType]
	if !known {
		return nil
	}
	found, err := schema.CheckSpecOf(typ, job.EncodeJSON(spec))
	if err != nil {
		return err
	}
	var problems []string
	for _, problem := range found {
		problems = append(problems, problem.String())
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// job makes the job of a registration. The error is one sentence with all that is wrong.
func (w *work) job(r *Registration, spec map[string]any) (job.Job, error) {
	trigger := triggerOf(r.GetTrigger())
	j := job.Job{
		ID: job.ID(r.GetJobType(), w.in.ID), Type: r.GetJobType(), Worker: job.WorkerType(r.GetWorker()),
		Provider: job.IntegrationProvider(w.in.ID), Spec: job.EncodeJSON(spec), Trigger: trigger, Options: job.DefaultOptions(trigger.Mode()),
	}
	typ, known := w.types[j.Type]
	if known {
		j.Worker = typ.Worker
	}
	var problems []string
	if j.Worker == "" {
		problems = append(problems, "it is not a job type of this system: its integration type has to name the worker")
	}
	if known && !typ.Allows(j.Mode()) {
		problems = append(problems, fmt.Sprintf("it cannot be %s", j.Mode()))
	}
	if timeout := r.GetTrigger().GetRunTimeout(); timeout != nil {
		j.Options.RunTimeout = job.Duration(timeout.AsDuration())
	}
	j.Options.Description = "Integration config " + w.in.ID
	j.Options.Owner.Organization = r.GetOrganizationSlug()
	j.Options.Tags = map[string]string{"integration_config": w.in.ID, "integration_type": w.in.TypeID}
	if r.GetStationId() != "" {
		j.Options.Tags["station"] = r.GetStationId()
	}
	for _, problem := range j.Validate() {
		problems = append(problems, problem.String())
	}
	if err := w.check(j.Type, spec); err != nil {
		problems = append(problems, err.Error())
	}
	if len(problems) > 0 {
		return j, fmt.Errorf("%s: %s", j.Type, strings.Join(problems, "; "))
	}
	return j, nil
}

func triggerOf(t *platformv1.JobTrigger) job.Trigger {
	switch mode := t.GetMode().(type) {
	case *platformv1.JobTrigger_OneShot:
		return job.Trigger{OneShot: &job.OneShot{}}
	case *platformv1.JobTrigger_Continuous:
		return job.Trigger{Continuous: &job.Continuous{
			Interval: job.Duration(mode.Continuous.GetInterval().AsDuration()), RestartOnChange: mode.Continuous.GetRestartOnChange(),
		}}
	case *platformv1.JobTrigger_Recurring:
		return job.Trigger{Recurring: &job.Recurring{RecurEvery: job.Duration(mode.Recurring.GetRecurEvery().AsDuration())}}
	case *platformv1.JobTrigger_Queued:
		return job.Trigger{Queued: &job.Queued{Queue: mode.Queued.GetQueue()}}
	}
	return job.Trigger{}
}
