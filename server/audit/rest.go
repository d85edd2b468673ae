package audit

import (
	"encoding/json"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dendrascience/dendra-jobs/internal/redact"
)

// elsewhere are the fields that other parts of a line have, or that are definitions.
var elsewhere = []protoreflect.Name{"job", "jobs", "job_set", "reason", "request_id", "validate_only", "id", "name", "organization", "queue", "job_id", "location", "flow", "mirror", "source"}

// restOf is what else a request says.
func restOf(request proto.Message) json.RawMessage {
	rest := request.ProtoReflect().New()
	request.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if !slices.Contains(elsewhere, field.Name()) {
			rest.Set(field, value)
		}
		return true
	})
	encoded, err := protojson.Marshal(rest.Interface())
	if err != nil || string(encoded) == "{}" {
		return nil
	}
	return redact.JSON(encoded)
}
