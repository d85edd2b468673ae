package api

import (
	"cmp"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// naming are the fields that name a resource, in the order in which they do.
var naming = []protoreflect.Name{"job", "job_set", "silence", "file", "id", "name", "organization", "file_name", "provider", "location", "flow", "mirror", "queue", "job_id", "source", "jobs", "deployment", "from_build_id", "to_build_id", "build_id"}

// Asked is what a request asks for, as the audit log and the history of changes tell it.
type Asked struct {
	// Kind is that of what it is about, and Names name it, from the outside in. A request that
	// names jobs to be put into their queue does not say which queue that is.
	Kind  string
	Names []string
	// Object is the job or queue that it names, "" if it names none.
	Object    string
	Reason    string
	RequestID string
	// DryRun says that it asks what would be done.
	DryRun bool
}

// Resource is what it is about in one text, such as queue/photos/generate_variants.a.
func (a Asked) Resource() string { return strings.Join(append([]string{a.Kind}, a.Names...), "/") }

// AskedBy is what a request of a method asks for.
func AskedBy(method protoreflect.MethodDescriptor, request proto.Message) Asked {
	asked := Asked{
		Kind: strings.ToLower(strings.TrimSuffix(string(method.Parent().Name()), "Service")), Names: namesIn(request.ProtoReflect()), Object: objectOf(request),
		Reason: text(request, "reason"), RequestID: text(request, "request_id"),
		DryRun: isSet(request, "validate_only") || method.Input().Fields().ByName("force") != nil && !isSet(request, "force"),
	}
	if v := verbs.OfProcedure("/" + string(method.Parent().FullName()) + "/" + string(method.Name())); v != nil {
		asked.Kind = string(v.Kind)
	}
	switch r := request.(type) {
	case *jobsv1.EnqueueJobsRequest:
		if len(r.GetJobs()) > 0 {
			asked.Names = append([]string{r.GetJobs()[0].GetQueued().GetQueue()}, asked.Names...) // It is that of all, or they are refused.
		}
	case *jobsv1.CreateSilenceRequest:
		asked.Reason = r.GetSilence().GetReason()
	}
	return asked
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
