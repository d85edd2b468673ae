// Package maintenance has the job type Maintenance: windows in which jobs are paused, and their
// alerts are silenced.
package maintenance

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// typeName is that of the job type.
const typeName = "Maintenance"

// Spec is the spec of Maintenance. A job has to fit all that is given.
type Spec struct {
	Jobs        []string     `json:"jobs" minItems:"1" maxItems:"100" help:"ids of the jobs; a star at the end stands for any rest, and * alone for all jobs" example:"[\"extract_hobo_time_frame.*\"]"`
	Types       []string     `json:"types,omitempty" maxItems:"100" help:"job types of the jobs"`
	Owner       job.Owner    `json:"owner,omitzero" help:"owner of the jobs"`
	Provider    job.Provider `json:"provider,omitempty" help:"provider of the jobs; integration stands for all integrations"`
	For         job.Duration `json:"for" minimum:"PT1S" maximum:"P31D" help:"how long the window lasts, from the start of the run"`
	Reason      string       `json:"reason,omitempty" maxLength:"200" help:"why, for people"`
	PauseOnly   bool         `json:"pause_only,omitempty" help:"pauses the jobs, and silences nothing"`
	SilenceOnly bool         `json:"silence_only,omitempty" help:"silences the alerts of the jobs, and pauses nothing"`
}

// Validate checks what the schema does not.
func (s *Spec) Validate() error {
	var problems []error
	for _, id := range s.Jobs {
		if before, _, found := strings.Cut(id, "*"); id == "" || found && len(before) != len(id)-1 {
			problems = append(problems, fmt.Errorf("jobs: %q: a star stands at the end alone", id))
		}
	}
	if s.PauseOnly && s.SilenceOnly {
		problems = append(problems, errors.New("pause_only and silence_only exclude each other"))
	}
	return errors.Join(problems...)
}

// fits reports whether the window is for a job. Other windows go on.
func (s *Spec) fits(found job.Summary) bool {
	if found.Type == typeName {
		return false
	}
	filter := job.Filter{Provider: s.Provider, Owner: s.Owner}
	return filter.Matches(found) && oneFits(s.Types, func(name string) bool { return name == found.Type }) && oneFits(s.Jobs, func(id string) bool {
		prefix, star := strings.CutSuffix(id, "*")
		return id == found.ID || star && strings.HasPrefix(found.ID, prefix)
	})
}

// oneFits reports whether one of a list fits; none means any.
func oneFits(list []string, fits func(string) bool) bool {
	for _, one := range list {
		if fits(one) {
			return true
		}
	}
	return len(list) == 0
}

type maintenance struct {
	// silences is nil without NATS.
	silences *alerts.Bucket
}

// Maintenance makes the job type of that name. A nil client is enough to describe it.
//
// A run begins a window and ends at once: pauses and silences end by themselves, with the window.
// A job that somebody has paused before stays paused after it.
func Maintenance(client *pipeline.Client) job.Type {
	h := &maintenance{}
	if client != nil {
		h.silences = alerts.NewBucket(client)
	}
	return job.NewType(typeName, job.WorkerBackend, "Begins a maintenance window: jobs pause, and their alerts are silenced, until it ends.",
		h.handle, job.ModeRecurring, job.ModeOneShot)
}

// window is what attempts of a run share.
type window struct {
	End time.Time `json:"end"`
}

func (h *maintenance) handle(ctx context.Context, run job.Run, spec Spec) (job.Result, error) {
	var w window
	if known, err := run.Cursor(&w); err != nil {
		return job.Result{}, err
	} else if !known {
		w.End = time.Now().Add(spec.For.Std()).UTC().Truncate(time.Second)
		run.Checkpoint(job.Progress{Message: "begins"}, w)
	}
	if !time.Now().Before(w.End) {
		return job.Result{Message: "the window was over before it began"}, nil
	}
	found, err := run.Jobs().Find(ctx, job.Filter{Provider: spec.Provider, Owner: spec.Owner})
	if err != nil {
		return job.Result{}, err
	}
	counts := map[string]int64{"paused": 0, "silenced": 0, "paused_before": 0}
	var failed []error
	for _, one := range found {
		if !spec.fits(one) {
			continue
		}
		if job.Stopped(run) {
			return job.Result{}, job.ErrStopped
		}
		if err := ctx.Err(); err != nil {
			return job.Result{}, err
		}
		failed = append(failed, h.begin(ctx, run, spec, one.ID, w.End, counts))
	}
	if err := errors.Join(failed...); err != nil {
		return job.Result{}, err
	}
	message := fmt.Sprintf("until %s: %d paused, %d silenced", w.End.Format(time.RFC3339), counts["paused"], counts["silenced"])
	if before := counts["paused_before"]; before > 0 {
		message += fmt.Sprintf(", %d paused before", before)
	}
	return job.Result{Message: message, Counts: counts}, nil
}

// begin begins the window for one job. The alert comes with the pause, so the silence is first.
func (h *maintenance) begin(ctx context.Context, run job.Run, spec Spec, id string, end time.Time, counts map[string]int64) error {
	reason := "maintenance " + run.Job().ID
	if spec.Reason != "" {
		reason += ": " + spec.Reason
	}
	if !spec.PauseOnly {
		if h.silences == nil {
			return errors.New("silences are kept in NATS, which this worker does not know")
		}
		err := h.silences.CreateSilence(ctx, alerts.Silence{
			Name: silenceName(run.ID(), id), Object: id, Reason: reason, Creator: run.Job().ID, Created: time.Now().UTC(), End: end,
		})
		if err != nil && !errors.Is(err, alerts.ErrChanged) { // An earlier attempt has made it.
			return fmt.Errorf("silence job %s: %w", id, err)
		}
		counts["silenced"]++
	}
	if spec.SilenceOnly {
		return nil
	}
	paused, err := run.Jobs().Pause(ctx, id, reason, end)
	switch {
	case err != nil:
		return err
	case paused:
		counts["paused"]++
	default:
		counts["paused_before"]++
	}
	return nil
}

// silenceName is the same in each attempt of a run.
func silenceName(runID, jobID string) string {
	sum := sha256.Sum256([]byte(runID + " " + jobID))
	return base32.StdEncoding.EncodeToString(sum[:])[:12]
}
