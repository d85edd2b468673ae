package orchestrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/job"
)

// Types of the conditions of a config that are about its jobs. Reconciliation writes the
// first, and an orchestrator the others.
const (
	ConditionScheduled = "Scheduled"

	ConditionReady    = "Ready"
	ConditionDegraded = "Degraded"
)

// ConditionTypes are the types of the conditions that an orchestrator writes.
func ConditionTypes() []string { return []string{ConditionReady, ConditionDegraded} }

// Reason says in one word why a condition holds, or does not.
type Reason string

// The reasons.
const (
	ReasonRunning    Reason = "Running"             // the jobs are there
	ReasonPart       Reason = "PartOfOther"         // they are, all as parts of jobs of another config
	ReasonInvalid    Reason = "InvalidRegistration" // the config or its type has to be changed
	ReasonSlugTaken  Reason = "SlugTaken"           // the measurements of its station have the names of another's
	ReasonNotApplied Reason = "NotApplied"          // Temporal or a worker refused a change; it is tried again
	ReasonMissing    Reason = "JobMissing"          // a job is not there
	ReasonPaused     Reason = "JobPaused"           // someone has paused a job
	ReasonFailing    Reason = "JobFailing"          // the latest runs or iterations of a job failed
	ReasonLeftOut    Reason = "ConfigLeftOut"       // a config that refers to this one is not taken into its jobs
	ReasonWorking    Reason = "Working"             // no job fails
)

// WaitingFor is the reason of a job whose list of the key is empty: WaitingForStations.
func WaitingFor(key string) Reason {
	text := "WaitingFor"
	for word := range strings.FieldsFuncSeq(key, func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		text += strings.ToUpper(word[:1]) + word[1:]
	}
	return Reason(text)
}

// Watched are the ids of the jobs whose state is that of the config: recurring and
// continuous jobs of its own, and jobs that it is part of.
func (p Plan) Watched() []string {
	var ids []string
	for _, j := range p.Jobs {
		if mode := j.Mode(); mode == job.ModeRecurring || mode == job.ModeContinuous {
			ids = append(ids, j.ID)
		}
	}
	for _, joined := range p.Joined {
		ids = append(ids, joined.JobID())
	}
	slices.Sort(ids)
	return ids
}

// Has reports whether the job is one of the config's own.
func (p Plan) Has(jobID string) bool {
	return slices.ContainsFunc(p.Jobs, func(j job.Job) bool { return j.ID == jobID })
}

// Missing are the watched jobs that were not found.
func (p Plan) Missing(found []job.Summary) []string {
	return slices.DeleteFunc(p.Watched(), func(id string) bool {
		return slices.ContainsFunc(found, func(f job.Summary) bool { return f.ID == id })
	})
}

// Failing are the watched jobs that are failing.
func (p Plan) Failing(found []job.Summary) []job.Summary {
	watched := p.Watched()
	return slices.DeleteFunc(slices.Clone(found), func(f job.Summary) bool {
		return f.Failing == nil || !slices.Contains(watched, f.ID)
	})
}

// Conditions are those of a config, by its plan, the error of applying it, and the jobs
// that were found, with their state.
func (p Plan) Conditions(applied error, found []job.Summary) []platform.Condition {
	return []platform.Condition{p.ready(applied, found), p.degraded(found)}
}

func (p Plan) ready(applied error, found []job.Summary) platform.Condition {
	var problems []Problem
	problems = append(problems, p.Problems...)
	if applied != nil {
		problems = append(problems, Problem{ReasonNotApplied, strings.ReplaceAll(applied.Error(), "\n", "; ")})
	}
	for _, id := range p.Missing(found) {
		problems = append(problems, Problem{ReasonMissing, "job " + id + " is not there"})
	}
	watched := p.Watched()
	for _, f := range found {
		if f.Paused && slices.Contains(watched, f.ID) {
			problems = append(problems, Problem{ReasonPaused, "job " + f.ID + " is paused"})
		}
	}
	c := platform.Condition{Type: ConditionReady, Holds: len(problems) == 0, Reason: string(ReasonRunning), Message: p.parts()}
	switch {
	case !c.Holds:
		c.Reason = string(problems[0].Reason)
		var texts []string
		for _, problem := range problems {
			texts = append(texts, problem.Message)
		}
		c.Message = strings.Join(texts, "; ")
	case len(p.Jobs) == 0 && len(p.Joined) > 0:
		c.Reason = string(ReasonPart)
	}
	return c
}

// parts says which jobs are parts of jobs of other configs.
func (p Plan) parts() string {
	var texts []string
	for _, joined := range p.Joined {
		texts = append(texts, fmt.Sprintf("%s is part of config %s", joined.JobType, joined.Config))
	}
	return strings.Join(texts, "; ")
}

func (p Plan) degraded(found []job.Summary) platform.Condition {
	c := platform.Condition{Type: ConditionDegraded, Reason: string(ReasonWorking)}
	var texts []string
	for _, f := range p.Failing(found) {
		c.Reason = string(ReasonFailing)
		texts = append(texts, FailureText(f))
	}
	for _, left := range p.LeftOut {
		if c.Reason == string(ReasonWorking) {
			c.Reason = string(ReasonLeftOut)
		}
		texts = append(texts, left.String())
	}
	c.Holds, c.Message = len(texts) > 0, strings.Join(texts, "; ")
	return c
}

// FailureText says how a job fails.
func FailureText(f job.Summary) string {
	text := "job " + f.ID + " fails: "
	if f.Failing.Class != "" && !strings.HasPrefix(f.Failing.Error, f.Failing.Class+":") {
		text += f.Failing.Class + ": "
	}
	return text + f.Failing.Error
}

// String is a sentence for the config whose job it is.
func (l LeftOut) String() string {
	return fmt.Sprintf("config %s is left out of %s: %s", l.Config, l.JobType, l.Message)
}
