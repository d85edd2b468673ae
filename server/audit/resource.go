package audit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// naming are the fields that name a resource, in the order in which they do.
var naming = []protoreflect.Name{"job", "job_set", "silence", "id", "name", "organization", "provider", "location", "flow", "mirror", "queue", "job_id", "source", "jobs"}

// resourceOf names what a request is about, such as queue/photos/generate_variants.a. A
// request that names jobs to be put into their queue does not say which that is.
func resourceOf(method protoreflect.MethodDescriptor, request proto.Message) string {
	kind := strings.ToLower(strings.TrimSuffix(string(method.Parent().Name()), "Service"))
	if v := verbs.OfProcedure("/" + string(method.Parent().FullName()) + "/" + string(method.Name())); v != nil {
		kind = string(v.Kind)
	}
	names := namesIn(request.ProtoReflect())
	if enqueued, ok := request.(*jobsv1.EnqueueJobsRequest); ok && len(enqueued.GetJobs()) > 0 {
		names = append([]string{enqueued.GetJobs()[0].GetQueued().GetQueue()}, names...) // It is that of all, or they are refused.
	}
	return strings.Join(append([]string{kind}, names...), "/")
}

// maxNames bounds the names of a list.
const maxNames = 100

func namesIn(m protoreflect.Message) []string {
	var names []string
	for _, name := range naming {
		field := m.Descriptor().Fields().ByName(name)
		switch {
		case field == nil || !m.Has(field):
		case field.IsList() && field.Message() != nil:
			list := m.Get(field).List()
			var each []string
			for i := range min(list.Len(), maxNames) {
				each = append(each, strings.Join(namesIn(list.Get(i).Message()), "/"))
			}
			names = append(names, strings.Join(each, ","))
		case field.IsList():
		case field.Message() != nil:
			names = append(names, namesIn(m.Get(field).Message())...)
		case field.Kind() == protoreflect.StringKind:
			names = append(names, m.Get(field).String())
		}
	}
	return names
}

// text is a field of a request, "" if it has none such.
func text(request proto.Message, name protoreflect.Name) string {
	m := request.ProtoReflect()
	if field := m.Descriptor().Fields().ByName(name); field != nil && field.Kind() == protoreflect.StringKind && !field.IsList() {
		return m.Get(field).String()
	}
	return ""
}

// objectOf is the job or queue that a request names, "" if it names none.
func objectOf(request proto.Message) string {
	if of, ok := request.(interface{ GetJob() *jobsv1.Job }); ok && of.GetJob() != nil {
		return of.GetJob().GetId()
	}
	return cmp.Or(text(request, "id"), text(request, "queue"))
}

func isSet(request proto.Message, name protoreflect.Name) bool {
	m := request.ProtoReflect()
	field := m.Descriptor().Fields().ByName(name)
	return field != nil && m.Has(field)
}

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
	return redactJSON(encoded)
}
