package schedules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/temporalclient"
)

func attributeNames(start *workflowpb.NewWorkflowExecutionInfo) []string {
	return slices.Sorted(maps.Keys(start.GetSearchAttributes().GetIndexedFields()))
}

// memoNames are the memo fields of the started runs, but for the pauses, which say
// nothing of what runs.
func memoNames(start *workflowpb.NewWorkflowExecutionInfo) []string {
	fields := maps.Clone(start.GetMemo().GetFields())
	delete(fields, contract.MemoPauses)
	return slices.Sorted(maps.Keys(fields))
}

// memoText names what a memo field of the started runs holds: of the definition its
// definition hash, which does not depend on how it is written, of all else a hash.
func memoText(start *workflowpb.NewWorkflowExecutionInfo, name string) string {
	if name == contract.MemoJob {
		if j, ok := temporalclient.MemoDefinition(start.GetMemo()); ok {
			if hash, err := j.DefinitionHash(); err == nil {
				return name + " " + hash
			}
		}
	}
	sum := sha256.Sum256(start.GetMemo().GetFields()[name].GetData())
	return name + " " + hex.EncodeToString(sum[:8])
}

// otherSettings is what a schedule's action says besides what has a setting of its
// own, as JSON; "" for nothing, which is what ours say.
func otherSettings(start *workflowpb.NewWorkflowExecutionInfo) string {
	other := proto.CloneOf(start)
	if other == nil {
		return ""
	}
	other.WorkflowId, other.WorkflowType, other.TaskQueue, other.Input = "", nil, nil, nil
	other.WorkflowExecutionTimeout, other.WorkflowRunTimeout, other.WorkflowTaskTimeout = nil, nil, nil
	other.Memo, other.SearchAttributes = nil, nil
	if metadata := other.GetUserMetadata(); metadata != nil {
		if metadata.Summary = nil; proto.Size(metadata) == 0 {
			other.UserMetadata = nil
		}
	}
	if len(other.GetHeader().GetFields()) == 0 {
		other.Header = nil
	}
	if proto.Size(other) == 0 {
		return ""
	}
	written, err := protojson.Marshal(other)
	if err != nil {
		return text(err.Error())
	}
	var compact bytes.Buffer // The library varies its white space on purpose.
	if err := json.Compact(&compact, written); err != nil {
		return text(err.Error())
	}
	return compact.String()
}
