package feed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Quarantine keeps changes that a job cannot handle in the quarantine of the pipeline.
func Quarantine(client *pipeline.Client, run job.Run) func(context.Context, *platformv1.Change, error) error {
	return func(ctx context.Context, change *platformv1.Change, reason error) error {
		body, err := bodyOf(change)
		if err != nil {
			return err
		}
		class := cmp.Or(job.ClassOf(reason), errclass.BadChange)
		run.Logger().Warn("a change is in quarantine", "change", name(change), "class", class, "error", reason)
		_, err = client.Quarantine(ctx, []pipeline.Quarantined{{
			Stage: pipeline.StageChange, Operation: pipeline.OperationLive,
			Name:  cmp.Or(change.GetOrganizationId(), noOrganization) + "." + kindName(change.GetKind()),
			Class: class, Reason: name(change) + ": " + reason.Error(), Job: run.Job().ID, Body: body,
		}})
		return err
	}
}

// noOrganization stands for the organization of resources that have none.
const noOrganization = "none"

// bodyOf is a change as JSON. The same change has the same: a resource that snapshots
// find again and again is in quarantine once.
func bodyOf(change *platformv1.Change) ([]byte, error) {
	if change.GetOperation() == platformv1.Operation_OPERATION_READ {
		change = proto.CloneOf(change)
		change.Time = nil
	}
	text, err := protojson.Marshal(change)
	if err != nil {
		return nil, job.Fail(errclass.BadChange, "%s cannot be written as JSON: %w", name(change), err)
	}
	var compact bytes.Buffer // The library varies its white space.
	if err := json.Compact(&compact, text); err != nil {
		return nil, err
	}
	return compact.Bytes(), nil
}
