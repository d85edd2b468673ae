package reversesync

import (
	"context"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// maxListed bounds the conflicts that a result lists.
const maxListed = 20

// Spec is the spec of the job types of reverse sync.
type Spec struct {
	DryRun bool `json:"dry_run,omitempty" help:"finds what is not in line, and writes nothing"`
}

// Output is the output of a run.
type Output struct {
	Report
	// First are the first conflicts.
	First []Found `json:"first_conflicts,omitempty"`
}

// Found is a conflict that a run found.
type Found struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Reason Reason   `json:"reason"`
	Fields []string `json:"fields,omitempty"`
}

// Metadata makes a job type for each kind of entities, such as
// ReverseSyncStationMetadata. Without a client they are descriptions.
//
// A run compares all entities of its kind with their documents, and brings those in line
// that are not. Getenv says where both are: a worker without these settings serves the
// other job types.
func Metadata(client *pipeline.Client, getenv func(string) string) []job.Type {
	var types []job.Type
	for _, kind := range Kinds() {
		s := &metadataSync{client: client, getenv: getenv, kind: kind}
		types = append(types, job.NewType("ReverseSync"+kind.Entity+"Metadata", job.WorkerBackend,
			"Brings the documents in "+kind.Service+" of Release 2 in line with Release 3.",
			s.handle, job.ModeOneShot, job.ModeRecurring, job.ModeQueued))
	}
	return types
}

type metadataSync struct {
	client *pipeline.Client
	getenv func(string) string
	kind   Kind
}

func (s *metadataSync) handle(ctx context.Context, run job.Run, spec Spec) (job.Result, error) {
	syncer, err := Open(ctx, s.getenv, s.client)
	if err != nil {
		return job.Result{}, err
	}
	var output Output
	output.Report, err = syncer.Sync(ctx, s.kind, Run{
		DryRun:   spec.DryRun,
		Stopping: run.Stopping(),
		Take: func(d Difference) {
			if d.Action != ActionConflict {
				return
			}
			tell(run, d)
			if len(output.First) < maxListed {
				output.First = append(output.First, Found{d.ID, d.Name, d.Conflict.Reason, d.Conflict.Fields})
			}
		},
		Progress: func(r Report) {
			run.Checkpoint(job.Progress{Done: int64(r.Entities), Message: r.String()}, nil)
		},
	})
	message := output.String()
	if spec.DryRun {
		message = "dry run, nothing was written: " + message
	}
	return job.Result{
		Message: message,
		Counts: map[string]int64{
			"entities": int64(output.Entities), "created": int64(output.Created), "updated": int64(output.Updated),
			"conflicts": int64(output.Conflicts), "gone": int64(output.Gone), "failed": int64(output.Failed),
		},
		Output: job.EncodeJSON(output),
	}, err
}

// tell writes a conflict to the log.
func tell(run job.Run, d Difference) {
	run.Logger().Warn("a document of Release 2 is left as it is", "kind", d.Kind, "id", d.ID,
		"reason", d.Conflict.Reason, "fields", d.Conflict.Fields, "edited_by", d.Conflict.EditedBy, "message", d.Conflict.Message)
}
