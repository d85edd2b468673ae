// Package report has the parts of which jobs that tidy up make their reports: what they found and
// changed, counted by kind, with a few names. A report is a cursor too, so it is bounded.
package report

import (
	"fmt"
	"slices"

	"github.com/dendrascience/dendra-jobs/job"
)

// samples is how many names a stage tells of each kind of thing.
const samples = 5

// maxName and maxText bound names and sentences in bytes.
const (
	maxName = 200
	maxText = 500
)

// Stage is what a stage of a job has found and changed, or would change.
type Stage struct {
	Name string `json:"name"`
	// Done says that the stage has ended.
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
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
	// Bytes are what they have together, where that is counted.
	Bytes   int64    `json:"bytes,omitempty"`
	Samples []string `json:"samples,omitempty"`
}

// Add counts n things of a kind, with bytes together, under a name.
func (s *Stage) Add(kind, name string, n, size int64) {
	at := slices.IndexFunc(s.Things, func(t Things) bool { return t.Kind == kind })
	if at < 0 {
		at = len(s.Things)
		s.Things = append(s.Things, Things{Kind: kind})
	}
	t := &s.Things[at]
	t.Bytes += size
	name = job.Cut(name, maxName)
	if t.Count += n; len(t.Samples) < samples && !slices.Contains(t.Samples, name) {
		t.Samples = append(t.Samples, name)
	}
}

// Keep says what is left as it is.
func (s *Stage) Keep(format string, args ...any) {
	if len(s.Kept) == samples {
		s.KeptMore++
		return
	}
	s.Kept = append(s.Kept, job.Cut(fmt.Sprintf(format, args...), maxText))
}

// Block says what has to be done by someone first.
func (s *Stage) Block(format string, args ...any) {
	s.Blocked = append(s.Blocked, job.Cut(fmt.Sprintf(format, args...), maxText))
}
