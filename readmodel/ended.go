package readmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/wording"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

const (
	// endedFor is how long after its end a run is told at the latest. Its alert is on for so
	// long: no replica forgets meanwhile that it was told.
	endedFor = time.Hour
	// outputWait is how long after its end a run is not told without its result.
	outputWait = time.Minute
	// maxTold bounds the runs that are told within that time.
	maxTold = 1000
	// maxNamed bounds the stations that are named.
	maxNamed = 10
)

// endedRun is a run that people are told of since it has ended.
type endedRun struct {
	client.RunRef
	ended time.Time
	alert *jobsv1.Alert // nil until the run is read; without a name if nothing is told
	link  string
}

// takeEnded notes a run that has completed or failed by itself. What a person has stopped is
// not told.
func (s *state) takeEnded(run client.SeenRun) {
	name := RunName(run.RunRef)
	if _, known := s.ended[name]; known || run.Loop || !slices.Contains(s.toldTypes, run.Type) || time.Since(run.Ended) > endedFor ||
		len(s.ended) >= maxTold || run.Status != client.RunCompleted && FailureOf(run.Run) == "" {
		return
	}
	s.ended[name] = &endedRun{RunRef: run.RunRef, ended: run.Ended}
}

// readEnded reads one run that has ended and is to be told, and forgets those that are too old.
func (r *Reader) readEnded(ctx context.Context) error {
	r.mu.Lock()
	maps.DeleteFunc(r.state.ended, func(_ string, e *endedRun) bool { return time.Since(e.ended) > endedFor })
	var next *endedRun
	for _, e := range r.state.ended {
		if e.alert == nil {
			next = e
			break
		}
	}
	severity := r.Limits.Severities[jobsv1.AlertRule_ALERT_RULE_RUN_ENDED]
	r.mu.Unlock()
	if next == nil {
		return nil
	}
	detail, err := r.client.Runs.Get(ctx, next.RunRef)
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return err //nolint:wrapcheck // It says what it did.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		next.alert = &jobsv1.Alert{} // Its history was deleted.
		return errMore
	}
	if detail.Status == client.RunCompleted && detail.Output == nil && time.Since(next.ended) < outputWait {
		return nil // The result was not read: without it there is no link.
	}
	if next.alert, next.link = endedAlert(detail); severity != 0 {
		next.alert.Severity = severity
	}
	return errMore
}

// Ended are alerts of the rule run-ended, for the watchdog alone, with the links of results by
// the names of alerts.
func (r *Reader) Ended() (list []*jobsv1.Alert, links map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	links = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.state.ended)) {
		e := r.state.ended[name]
		if e.alert.GetName() == "" || time.Since(e.ended) > endedFor {
			continue
		}
		list = append(list, e.alert)
		if e.link != "" {
			links[e.alert.GetName()] = e.link
		}
	}
	return list, links
}

// asked is what a spec of a type that is told says about its run, of those keys that it has.
type asked struct {
	Organization string    `json:"organization"`
	Station      string    `json:"station"`
	Stations     []string  `json:"stations"`
	Start        time.Time `json:"start"`
	End          time.Time `json:"end"`
	Key          string    `json:"key"`
	DryRun       bool      `json:"dry_run"`
}

// endedAlert tells how a run has ended. The link is a key to the files: it is no part of the
// text, which logs have.
func endedAlert(run *client.RunDetail) (alert *jobsv1.Alert, link string) {
	var spec asked
	if run.Job != nil {
		_ = json.Unmarshal(run.Job.Spec, &spec) // What it does not have is left out.
	}
	if spec.DryRun { // Nothing is ready.
		return &jobsv1.Alert{}, ""
	}
	if spec.Station != "" {
		spec.Stations = []string{spec.Station}
	}
	owner := run.Owner
	if owner == "" && spec.Organization != "" {
		owner = job.Owner{Organization: spec.Organization}.String()
	}
	about := []string{fmt.Sprintf("Job %s (%s)", run.JobID, run.Type)}
	if len(spec.Stations) > 0 {
		about = append(about, "stations "+wording.List(spec.Stations, maxNamed))
	}
	if !spec.Start.IsZero() && !spec.End.IsZero() {
		about = append(about, "from "+wording.Stamp(spec.Start)+" to "+wording.Stamp(spec.End))
	}
	if spec.Key != "" {
		about = append(about, "file "+spec.Key)
	}
	text := strings.Join(about, ", ")
	if run.Status == client.RunCompleted {
		text += " has completed: " + orUnknown(run.Message)
		var ends time.Time
		if link, ends = linkOf(run); link != "" {
			text = fmt.Sprintf("%s; link until %s", job.Cut(text, maxNote), wording.Stamp(ends))
		}
	} else {
		text = job.Cut(text, maxNote/2) + " has failed: "
		if run.Class != "" {
			text += run.Class + ": "
		}
		text += errorOf(run.Run)
	}
	name := RunName(run.RunRef)
	return &jobsv1.Alert{
		Name: RuleWord(jobsv1.AlertRule_ALERT_RULE_RUN_ENDED) + "/" + name, Rule: jobsv1.AlertRule_ALERT_RULE_RUN_ENDED, Object: name,
		Severity: jobsv1.AlertSeverity_ALERT_SEVERITY_INFO, Owner: owner, FireTime: timestamppb.New(run.Ended),
		Text: job.Cut(strings.ReplaceAll(text, "\n", "; "), 2*maxNote),
	}, link
}

// linkOf is the link in the output of a run, and until when it can be read.
func linkOf(run *client.RunDetail) (string, time.Time) {
	var output struct {
		Link     string    `json:"link"`
		LinkEnds time.Time `json:"link_ends"`
	}
	if run.Output != nil {
		_ = json.Unmarshal(run.Output.Output, &output) // Another type's output has none.
	}
	return output.Link, output.LinkEnds
}
