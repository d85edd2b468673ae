package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/api/plantext"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// savedFormat is the version of the form in which plans are saved.
const savedFormat = 2

// maxSavedBytes bounds a saved plan that is read.
const maxSavedBytes = 64 << 20

// savedPlan is a plan in a file: what was declared, and the plan that the Job API made of
// it. It is applied as it is, or not at all.
type savedPlan struct {
	// Format is 2.
	Format int `json:"dendra_jobs_plan"`
	// Release is the version of the program that saved the plan: another may see other
	// differences.
	Release string    `json:"release"`
	Created time.Time `json:"created"`
	// JobSet and Plan are messages of the Job API.
	JobSet json.RawMessage `json:"job_set"`
	Plan   json.RawMessage `json:"plan"`
}

// savePlan writes a plan for apply, whole or not at all. Nobody else may read it:
// it holds the specs of all jobs.
func savePlan(path string, planned *plannedSet, now time.Time) error {
	made, err := release()
	if err != nil {
		return err
	}
	saved := savedPlan{Format: savedFormat, Release: made, Created: now.UTC()}
	if saved.JobSet, err = protojson.Marshal(planned.set); err == nil {
		saved.Plan, err = protojson.Marshal(planned.plan)
	}
	if err != nil {
		return fmt.Errorf("save the plan as %s: %w", path, err)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(saved); err != nil {
		return fmt.Errorf("save the plan as %s: %w", path, err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return fmt.Errorf("the plan cannot be saved: %w", err)
	}
	_, err = file.Write(text.Bytes())
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // The error below matters more.
		return fmt.Errorf("the plan cannot be saved: %w", err)
	}
	return nil
}

// isSavedPlan reports whether a text is a saved plan, of whatever release.
func isSavedPlan(r io.Reader) bool {
	var saved savedPlan
	return json.NewDecoder(io.LimitReader(r, maxSavedBytes)).Decode(&saved) == nil && saved.Format > 0
}

// errNoPlan refuses what is no saved plan.
var errNoPlan = errors.New("not a saved plan: plan --out writes one")

// readPlan reads a saved plan. It refuses what is not one, and one that another release
// has saved.
func readPlan(r io.Reader, release string) (*jobsv1.JobSet, *jobsv1.Plan, error) {
	var saved savedPlan
	if err := json.NewDecoder(io.LimitReader(r, maxSavedBytes)).Decode(&saved); err != nil || saved.Format == 0 {
		return nil, nil, errNoPlan
	}
	switch {
	case saved.Format != savedFormat:
		return nil, nil, fmt.Errorf("a saved plan of format %d, and this release knows %d: plan again", saved.Format, savedFormat)
	case saved.Release != release:
		return nil, nil, fmt.Errorf("a plan that release %s has made, and this is %s: plan again", saved.Release, release)
	}
	set, plan := &jobsv1.JobSet{}, &jobsv1.Plan{}
	if protojson.Unmarshal(saved.JobSet, set) != nil || protojson.Unmarshal(saved.Plan, plan) != nil {
		return nil, nil, errNoPlan
	}
	return set, plan, nil
}

// replan reads a saved plan, and checks that a new plan would be the same.
func (i *invocation) replan(cmd *cobra.Command, path string, parallel int) (*plannedSet, error) {
	if err := checkParallel(cmd, parallel); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the saved plan cannot be read: %w", err)
	}
	defer func() { _ = file.Close() }()
	made, err := release()
	if err != nil {
		return nil, err
	}
	set, before, err := readPlan(file, made)
	if err != nil {
		if strings.HasSuffix(path, ".toml") {
			err = fmt.Errorf("%w; a jobs file is applied with: starter apply -f %s", err, path)
		}
		return nil, fmt.Errorf("%s is %w", path, err)
	}
	planned, err := i.planAgain(cmd.Context(), set, before, parallel)
	if err != nil {
		return nil, fmt.Errorf("%s is not applied: %w", path, err)
	}
	return planned, nil
}

// planAgain makes a plan again. If it is not the same, the error says of which jobs.
func (i *invocation) planAgain(ctx context.Context, set *jobsv1.JobSet, before *jobsv1.Plan, parallel int) (*plannedSet, error) {
	planned, err := i.planSet(ctx, set, parallel)
	if err != nil {
		return nil, err
	}
	now := planned.plan
	switch {
	case before.GetNamespace() != now.GetNamespace():
		return nil, fmt.Errorf("the plan was made for namespace %q, not %q", before.GetNamespace(), now.GetNamespace())
	case before.GetNamespaceId() != now.GetNamespaceId():
		return nil, fmt.Errorf("the plan was made for namespace %q of another cluster", before.GetNamespace())
	case before.GetEtag() == now.GetEtag():
		return planned, nil
	}
	return nil, fmt.Errorf("what the plan was made against has changed since: %s; plan again", plantext.ChangedSince(before, now))
}
