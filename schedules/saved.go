package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/job"
)

// savedFormat is the version of the form in which plans are saved.
const savedFormat = 1

// maxSavedBytes bounds a saved plan that is read.
const maxSavedBytes = 64 << 20

// SavedPlan is a plan in a file: what was declared, and what was found when the
// plan was made. It is applied as it is, or not at all.
type SavedPlan struct {
	// Format is 1.
	Format int `json:"dendra_jobs_plan"`
	// Release is the version of the program that made the plan: another may see
	// other differences.
	Release   string `json:"release"`
	Namespace string `json:"namespace"`
	// NamespaceID distinguishes namespaces of the same name on several clusters.
	NamespaceID string `json:"namespace_id"`

	Created time.Time    `json:"created"`
	Options PlanOptions  `json:"options"`
	Jobs    []job.Job    `json:"jobs"`
	Found   []SavedState `json:"found"`
}

// SavedState is what a plan found of a job, and what it makes of it.
type SavedState struct {
	JobID   string   `json:"job_id"`
	Action  Action   `json:"action"`
	Version string   `json:"version,omitempty"`
	Fields  []Field  `json:"fields,omitempty"`
	Removes []string `json:"removes,omitempty"`
}

// Save writes the plan in the form that ReadPlan reads.
func (p *Plan) Save(w io.Writer, release string, now time.Time) error {
	saved := SavedPlan{
		Format: savedFormat, Release: release, Namespace: p.Namespace, NamespaceID: p.namespaceID, Created: now.UTC(),
		Options: p.options, Jobs: p.declared, Found: p.found(),
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	return encoder.Encode(saved)
}

// found is what the plan rests on.
func (p *Plan) found() []SavedState {
	found := make([]SavedState, len(p.Changes))
	for i := range p.Changes {
		found[i] = p.Changes[i].found()
	}
	return found
}

func (change *Change) found() SavedState {
	state := SavedState{JobID: change.JobID, Action: change.Action, Version: change.Version, Fields: change.Fields}
	for _, r := range change.replaces {
		state.Removes = append(state.Removes, string(r.resource)+" "+r.version)
	}
	return state
}

// ReadPlan reads a saved plan. It refuses what is not one, and one that another
// release has made.
func ReadPlan(r io.Reader, release string) (*SavedPlan, error) {
	decoder := json.NewDecoder(io.LimitReader(r, maxSavedBytes))
	var saved SavedPlan
	if err := decoder.Decode(&saved); err != nil {
		return nil, errors.New("not a saved plan: plan --out writes one")
	}
	switch {
	case saved.Format == 0:
		return nil, errors.New("not a saved plan: plan --out writes one")
	case saved.Format != savedFormat:
		return nil, fmt.Errorf("a saved plan of format %d, and this release knows %d: plan again", saved.Format, savedFormat)
	case saved.Release != release:
		return nil, fmt.Errorf("a plan that release %s has made, and this is %s: plan again", saved.Release, release)
	}
	for _, j := range saved.Jobs {
		if problems := j.Validate(); len(problems) > 0 {
			return nil, fmt.Errorf("a saved plan with an invalid job %s: %s", j.ID, problems[0].Message)
		}
	}
	return &saved, nil
}

// IsSavedPlan says whether a text is a saved plan, of whatever release.
func IsSavedPlan(r io.Reader) bool {
	var saved struct {
		Format int `json:"dendra_jobs_plan"`
	}
	return json.NewDecoder(io.LimitReader(r, maxSavedBytes)).Decode(&saved) == nil && saved.Format > 0
}

// Replan makes a saved plan again. It gives [ErrPlanStale], with what changed, if
// that is not the same plan.
func (s *Syncer) Replan(ctx context.Context, saved *SavedPlan, parallel int) (*Plan, error) {
	if saved.Namespace != s.client.Namespace() {
		return nil, fmt.Errorf("the plan was made for namespace %q, not %q", saved.Namespace, s.client.Namespace())
	}
	id, err := s.client.Apply.NamespaceID(ctx)
	if err != nil {
		return nil, err
	}
	if saved.NamespaceID != id {
		return nil, fmt.Errorf("the plan was made for namespace %q of another cluster", saved.Namespace)
	}
	options := saved.Options
	options.Parallel = parallel
	plan, err := s.Plan(ctx, saved.Jobs, options)
	if err != nil {
		return nil, err
	}
	if changed := changedSince(saved.Found, plan.found()); len(changed) > 0 {
		const named = 5
		list := strings.Join(changed[:min(len(changed), named)], ", ")
		if len(changed) > named {
			list += fmt.Sprintf(" and %d more", len(changed)-named)
		}
		return nil, fmt.Errorf("%w: %s; plan again", ErrPlanStale, list)
	}
	return plan, nil
}

// ErrPlanStale says that a saved plan no longer fits.
var ErrPlanStale = errors.New("what the plan was made against has changed since")

// changedSince lists the jobs of which two plans say different things.
func changedSince(before, now []SavedState) []string {
	text := func(state SavedState) string { return string(job.EncodeJSON(state)) }
	was := map[string]string{}
	for _, state := range before {
		was[state.JobID] = text(state)
	}
	var changed []string
	for _, state := range now {
		if was[state.JobID] != text(state) {
			changed = append(changed, state.JobID)
		}
		delete(was, state.JobID)
	}
	for _, state := range before {
		if _, gone := was[state.JobID]; gone {
			changed = append(changed, state.JobID)
		}
	}
	return changed
}
