package teardown

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
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

// samples is how many names a stage tells of each kind of thing.
const samples = 5

// maxName and maxText bound names and sentences in bytes: a report is a cursor.
const (
	maxName = 200
	maxText = 500
)

// Report tells what a teardown has removed so far, or would remove.
type Report struct {
	OrganizationID string `json:"organization_id"`
	Slug           string `json:"slug"`
	DryRun         bool   `json:"dry_run,omitempty"`
	// Stages are those that were begun, in their order; in a dry run all that are left.
	Stages []*Stage `json:"stages"`
}

// Stage is what a stage has removed, or would remove.
type Stage struct {
	// Name is that of the finalizer.
	Name string `json:"name"`
	// Done says that nothing is left and the finalizer was removed.
	Done bool `json:"done,omitempty"`
	// Things are counted by kind, such as objects.
	Things []Things `json:"things,omitempty"`
	// Blocked says in one sentence each what has to be done by someone first.
	Blocked []string `json:"blocked,omitempty"`
	// Kept says in one sentence each what is left as it is, the first of it; KeptMore
	// counts the rest.
	Kept     []string `json:"kept,omitempty"`
	KeptMore int      `json:"kept_more,omitempty"`
}

// Things are things of one kind.
type Things struct {
	Kind    string   `json:"kind"`
	Count   int64    `json:"count"`
	Samples []string `json:"samples,omitempty"`
}

// stage gives the part about a stage, as an earlier attempt left it.
func (r *Report) stage(name string) *Stage {
	for _, s := range r.Stages {
		if s.Name == name {
			return s
		}
	}
	s := &Stage{Name: name}
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

func (s *Stage) add(kind, name string, n int64) {
	at := slices.IndexFunc(s.Things, func(t Things) bool { return t.Kind == kind })
	if at < 0 {
		at = len(s.Things)
		s.Things = append(s.Things, Things{Kind: kind})
	}
	t := &s.Things[at]
	name = job.Cut(name, maxName)
	if t.Count += n; len(t.Samples) < samples && !slices.Contains(t.Samples, name) {
		t.Samples = append(t.Samples, name)
	}
}

func (s *Stage) keep(format string, args ...any) {
	if len(s.Kept) == samples {
		s.KeptMore++
		return
	}
	s.Kept = append(s.Kept, job.Cut(fmt.Sprintf(format, args...), maxText))
}

func (s *Stage) block(format string, args ...any) {
	s.Blocked = append(s.Blocked, job.Cut(fmt.Sprintf(format, args...), maxText))
}
