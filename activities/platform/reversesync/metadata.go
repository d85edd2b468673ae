package reversesync

import (
	"context"
	"errors"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
)

// listedBytes bounds the differences that a result lists: it has at most 64 KiB.
const listedBytes = 48 << 10

// Spec is the spec of the job types of reverse sync.
type Spec struct {
	DryRun bool `json:"dry_run,omitempty" help:"finds what is not in line, and writes nothing"`
	// Overwrite has the ids of documents.
	Overwrite []string `json:"overwrite,omitempty" maxItems:"1000" help:"works on the documents of these ids alone, and writes over what was edited in them"`
}

// Validate reports what the schema cannot say.
func (s *Spec) Validate() error {
	if s.DryRun && len(s.Overwrite) > 0 {
		return errors.New("overwrite does not go with dry_run")
	}
	return nil
}

// Output is the output of a run.
type Output struct {
	Report
	// Differences are the first of what was not in line; More counts the rest.
	Differences []Difference `json:"differences,omitempty"`
	More        int          `json:"more,omitempty"`

	size int
}

func (o *Output) add(d Difference) {
	if o.size += len(job.EncodeJSON(d)); o.size > listedBytes {
		o.More++
		return
	}
	o.Differences = append(o.Differences, d)
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
	take := func(d Difference) {
		if d.Action == ActionConflict {
			tell(run, d)
		}
		output.add(d)
	}
	if len(spec.Overwrite) > 0 {
		output.Report, err = syncer.overwrite(ctx, s.kind, spec.Overwrite, take)
	} else {
		output.Report, err = syncer.Sync(ctx, s.kind, Run{
			DryRun: spec.DryRun, Stopping: run.Stopping(), Take: take,
			Progress: func(r Report) {
				run.Checkpoint(job.Progress{Done: int64(r.Entities), Message: r.String()}, nil)
			},
		})
	}
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

// overwrite writes the documents of some entities, whatever was edited in them.
func (s *Syncer) overwrite(ctx context.Context, kind Kind, ids []string, take func(Difference)) (Report, error) {
	report := Report{Kind: kind.Name}
	for _, id := range ids {
		diff, err := s.SyncOne(ctx, kind, id, true)
		if err != nil {
			return report, err
		}
		report.Entities++
		report.count(diff.Action)
		if diff.Action != ActionNone {
			take(diff)
		}
	}
	return report, nil
}

// tell writes a conflict to the log.
func tell(run job.Run, d Difference) {
	run.Logger().Warn("a document of Release 2 is left as it is", "kind", d.Kind, "id", d.ID,
		"reason", d.Conflict.Reason, "fields", d.Conflict.Fields, "edited_by", d.Conflict.EditedBy, "message", d.Conflict.Message)
}
