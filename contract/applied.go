package contract

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/dendrascience/dendra-jobs/job"
)

// SignalApplied adds an AppliedRecord to an AppliedJobs workflow.
const SignalApplied = "applied"

// AppliedState is what AppliedJobs remembers: the input that continue-as-new
// carries on. At 120 bytes a job, the server's limit on a payload, 2 MiB, is
// reached at about 17,000 jobs.
type AppliedState struct {
	// Jobs holds what was applied last, by job id.
	Jobs map[string]AppliedJob `json:"jobs,omitempty"`
	// Types holds the job types of applied jobs that only workers bring, by name, as
	// they were announced last. Those that are no longer used stay.
	Types map[string]AppliedType `json:"types,omitempty"`
	// Records counts the records since the provider was applied first.
	Records int64 `json:"records"`
}

// AppliedJob is what a job was when it was applied.
type AppliedJob struct {
	Mode job.Mode `json:"mode"`
	// Hash is the job's definition hash.
	Hash string `json:"hash"`
	// Version names the schedule of a recurring job as it was left.
	Version string `json:"version,omitempty"`
	// Paused says that the definition is a paused one.
	Paused bool `json:"paused,omitempty"`
	// Ends is when a recurring job starts no more runs; its schedule goes then.
	Ends time.Time `json:"ends,omitzero"`
}

// AppliedType is a job type as it was announced when a job of it was applied.
type AppliedType struct {
	ServedType
	Worker job.WorkerType `json:"worker"`
}

// AppliedRecord is what an apply has done so far.
type AppliedRecord struct {
	Applied map[string]AppliedJob `json:"applied,omitempty"`
	// Types are job types to keep, by name.
	Types map[string]AppliedType `json:"types,omitempty"`
	// Removed are the ids of jobs that were deleted.
	Removed []string `json:"removed,omitempty"`
}

// Empty reports whether the record has nothing in it.
func (r AppliedRecord) Empty() bool {
	return len(r.Applied) == 0 && len(r.Types) == 0 && len(r.Removed) == 0
}

// Take adds a record.
func (s *AppliedState) Take(record AppliedRecord) {
	s.Records++
	if s.Jobs == nil {
		s.Jobs = map[string]AppliedJob{}
	}
	for _, id := range workflow.DeterministicKeys(record.Applied) {
		s.Jobs[id] = record.Applied[id]
	}
	for _, id := range record.Removed {
		delete(s.Jobs, id)
	}
	if s.Types == nil && len(record.Types) > 0 {
		s.Types = map[string]AppliedType{}
	}
	for _, name := range workflow.DeterministicKeys(record.Types) {
		s.Types[name] = record.Types[name]
	}
}
