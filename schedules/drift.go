package schedules

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
	"github.com/dendrascience/dendra-jobs/job"
)

// Drift is the difference between what was applied last and the live state: what
// people, or other programs, have changed since.
type Drift struct {
	Namespace string       `json:"namespace"`
	Provider  job.Provider `json:"provider"`
	// Jobs are the jobs that are not as they were applied, by id.
	Jobs []JobDrift `json:"jobs"`
	// Foreign are schedules and workflows under names of ours that are not ours.
	Foreign []string `json:"foreign"`
	// Failing are continuous jobs that have paused themselves since they failed too
	// often. They are no drift.
	Failing []JobDrift `json:"failing"`
	// Unread are jobs of which it is not known, since a busy server did not answer for them.
	Unread []JobDrift `json:"unread"`
	// Applied counts the jobs that were applied and still count as such.
	Applied int `json:"applied"`
}

// JobDrift is how one job is not as it was applied.
type JobDrift struct {
	JobID string    `json:"job_id"`
	Mode  job.Mode  `json:"mode"`
	Kind  DriftKind `json:"kind"`
	// Fields are what was edited: Old as applied, New as it is live.
	Fields []Field `json:"fields,omitempty"`
	// Note says why a job is paused, how it ended, or why it could not be read.
	Note string `json:"note,omitempty"`
}

// DriftKind says what was done to a job.
type DriftKind string

// The kinds of drift.
const (
	DriftEdited  DriftKind = "edited"
	DriftPaused  DriftKind = "paused"
	DriftResumed DriftKind = "resumed" // though it is declared as paused
	DriftDeleted DriftKind = "deleted" // its schedule is gone
	DriftStopped DriftKind = "stopped" // its loop has ended
	// DriftFailing is no drift: the job has paused itself since it failed too often.
	DriftFailing DriftKind = "failing"
)

// Drift compares what was applied last from a provider with the live state. Jobs
// that run once are not part of it: they end by themselves.
func (s *Syncer) Drift(ctx context.Context, provider job.Provider) (*Drift, error) {
	applied, err := s.Applied(ctx, provider)
	if err != nil {
		return nil, err
	}
	resources, err := s.client.Apply.Resources(ctx, nil)
	if err != nil {
		return nil, err
	}
	drift := &Drift{Namespace: s.client.Namespace(), Provider: provider, Jobs: []JobDrift{}, Failing: []JobDrift{}, Unread: []JobDrift{}, Foreign: []string{}, Applied: len(applied.Jobs)}
	ids := slices.Sorted(maps.Keys(applied.Jobs))
	found, unread := make([]*JobDrift, len(ids)), make([]error, len(ids))
	var all looks
	err = temporalclient.Each(len(ids), 0, func(i int) (err error) {
		unread[i], err = all.at(func() (err error) {
			found[i], err = s.driftOf(ctx, ids[i], applied.Jobs[ids[i]])
			return err
		})
		return err
	})
	if err = errors.Join(err, all.err()); err != nil {
		return nil, err
	}
	for i, one := range found {
		switch {
		case unread[i] != nil:
			drift.Unread = append(drift.Unread, JobDrift{JobID: ids[i], Mode: applied.Jobs[ids[i]].Mode, Note: unread[i].Error()})
		case one == nil:
		case one.Kind == DriftFailing:
			drift.Failing = append(drift.Failing, *one)
		default:
			drift.Jobs = append(drift.Jobs, *one)
		}
	}
	for _, foreign := range resources.Foreign {
		drift.Foreign = append(drift.Foreign, foreign.Name)
	}
	return drift, nil
}

// Empty reports whether everything is as it was applied.
func (d *Drift) Empty() bool { return len(d.Jobs) == 0 && len(d.Foreign) == 0 }

// DriftOf compares a job with what was applied of it. It gives nil if it is so still.
func (s *Syncer) DriftOf(ctx context.Context, id string, applied contract.AppliedJob) (*JobDrift, error) {
	return s.driftOf(ctx, id, applied)
}

func (s *Syncer) driftOf(ctx context.Context, id string, applied contract.AppliedJob) (*JobDrift, error) {
	drift := &JobDrift{JobID: id, Mode: applied.Mode}
	var err error
	switch applied.Mode {
	case job.ModeRecurring:
		err = s.compareSchedule(ctx, drift, applied)
	case job.ModeContinuous:
		err = s.compareLoop(ctx, drift, applied)
	case job.ModeOneShot, job.ModeQueued:
	}
	if errors.Is(err, client.ErrNotOurs) {
		// Someone removed it and put something else in its place.
		drift.Kind, drift.Note, err = DriftDeleted, err.Error(), nil
	}
	if err != nil || drift.Kind == "" {
		return nil, err
	}
	return drift, nil
}

func (s *Syncer) compareSchedule(ctx context.Context, drift *JobDrift, applied contract.AppliedJob) error {
	live, err := s.client.Jobs.LiveSchedule(ctx, drift.JobID)
	if err != nil {
		return err
	}
	if live == nil {
		if applied.Ends.IsZero() || applied.Ends.After(time.Now()) {
			drift.Kind = DriftDeleted // Otherwise it had ended, and the server removed it.
		}
		return nil
	}
	if drift.Fields, err = scheduleDrift(live, applied); err != nil {
		return err
	}
	drift.pause(live, applied)
	if len(drift.Fields) > 0 && drift.Kind == "" {
		drift.Kind = DriftEdited
	}
	return nil
}

func (s *Syncer) compareLoop(ctx context.Context, drift *JobDrift, applied contract.AppliedJob) error {
	live, err := s.client.Jobs.LiveWorkflow(ctx, drift.JobID)
	switch {
	case err != nil:
		return err
	case live == nil:
		drift.Kind = DriftStopped
	case live.Workflow.Type != contract.ContinuousJobType:
	case !live.Workflow.Open():
		drift.Kind, drift.Note = DriftStopped, fmt.Sprintf("%s at %s", live.Workflow.RunStatus(), live.Workflow.Close.Format(time.RFC3339))
	default:
		drift.pause(live, applied)
	}
	return nil
}

// pause says whether a job is paused other than it was applied.
func (drift *JobDrift) pause(live *client.Live, applied contract.AppliedJob) {
	if live.Paused == applied.Paused {
		return
	}
	if live.PausedItself {
		if drift.Note = live.PauseText(); len(drift.Fields) == 0 {
			drift.Kind = DriftFailing
		}
		return
	}
	drift.Kind, drift.Note = DriftResumed, ""
	if live.Paused {
		drift.Kind, drift.Note = DriftPaused, live.PauseText()
	}
	drift.Fields = append(drift.Fields, Field{
		Path: "paused", Old: strconv.FormatBool(applied.Paused), New: strconv.FormatBool(live.Paused),
	})
}

// scheduleDrift are the ways in which a live schedule differs from what was applied:
// Old as applied, New as it is live. The applied definition is known from the schedule
// itself, which has it twice, with its hash as an attribute.
func scheduleDrift(live *client.Live, applied contract.AppliedJob) ([]Field, error) {
	version, err := scheduleVersion(live)
	if err != nil || version == applied.Version {
		return nil, err
	}
	reference, err := liveDefinition(live)
	if err != nil {
		return nil, err
	}
	if reference == nil {
		return []Field{{Path: "schedule.input", Old: text("definition " + live.DefinitionHash), New: text("another definition")}}, nil
	}
	fields, err := diff(*reference, live.Job)
	if err != nil || reference.Recurring == nil {
		return fields, err
	}
	was, err := scheduleOf(*reference)
	if err != nil {
		return nil, err
	}
	for _, field := range edits(live, was) {
		fields = append(fields, Field{Path: field.Path, Old: field.New, New: field.Old})
	}
	return fields, nil
}

// liveDefinition finds the definition that the schedule's hash attribute is of: in its
// input, or else in its memo. It is nil if both were edited.
func liveDefinition(live *client.Live) (*job.Job, error) {
	candidates := []job.Job{live.Job}
	if recorded, ok := live.Recorded(); ok {
		candidates = append(candidates, recorded)
	}
	for _, candidate := range candidates {
		hash, err := candidate.DefinitionHash()
		if err != nil {
			return nil, err
		}
		if hash == live.DefinitionHash {
			return &candidate, nil
		}
	}
	return nil, nil //nolint:nilnil // Documented: both were edited.
}
