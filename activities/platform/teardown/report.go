package teardown

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/activities/report"
)

// Stages are the finalizers that have a stage, in the order in which they are removed.
func Stages() []string {
	return []string{stageJobs, stageConsumers, stageVariants, stageDatabases, stageArchive}
}

const (
	stageJobs      = "jobs"
	stageConsumers = "consumers"
	stageVariants  = "variants"
	stageDatabases = "databases"
	stageArchive   = "archive"
)

// Report tells what a teardown has removed so far, or would remove.
type Report struct {
	OrganizationID string `json:"organization_id"`
	Slug           string `json:"slug"`
	DryRun         bool   `json:"dry_run,omitempty"`
	// Stages are those that were begun, in their order; in a dry run all that are left.
	Stages []*report.Stage `json:"stages"`
}

// stage gives the part about a stage, as an earlier attempt left it.
func (r *Report) stage(name string) *report.Stage {
	for _, s := range r.Stages {
		if s.Name == name {
			return s
		}
	}
	s := &report.Stage{Name: name}
	r.Stages = append(r.Stages, s)
	return s
}

// Counts counts the things of all stages by kind.
func (r *Report) Counts() map[string]int64 {
	counts := map[string]int64{}
	for _, s := range r.Stages {
		for _, t := range s.Things {
			counts[t.Kind] += t.Count
		}
	}
	return counts
}

// Text is the counts in words.
func (r *Report) Text() string {
	counts := r.Counts()
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s: %d", strings.ReplaceAll(kind, "_", " "), counts[kind]))
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}
