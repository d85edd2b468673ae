package auth

import (
	"context"
	"slices"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dendrascience/dendra-jobs/api"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// Least is the least role that a call needs, whatever it asks for. A procedure without a row
// needs an admin.
func Least(spec connect.Spec) verbs.Role {
	if !Changes(spec) {
		return verbs.RoleViewer
	}
	if v := verbs.OfProcedure(spec.Procedure); v != nil {
		return v.Role
	}
	return verbs.RoleAdmin
}

// LeastFor is the least role that a call with a request needs. One that changes something
// and brings a definition, in whatever field, needs the role of CreateJob.
func LeastFor(spec connect.Spec, request proto.Message) verbs.Role {
	need := Least(spec)
	if Changes(spec) && declares(request.ProtoReflect()) {
		need = max(need, verbs.OfProcedure(jobsv1connect.JobServiceCreateJobProcedure).Role)
	}
	return need
}

// declarations are the messages that are a definition, or could be a spec.
var declarations = []protoreflect.FullName{
	"dendra.jobs.v1.Job", "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue", "google.protobuf.Any",
}

// declares reports whether a message has a definition of a job, or a spec, anywhere.
func declares(m protoreflect.Message) bool {
	if slices.Contains(declarations, m.Descriptor().FullName()) {
		return true
	}
	found := false
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			value.Map().Range(func(_ protoreflect.MapKey, each protoreflect.Value) bool {
				found = found || field.MapValue().Message() != nil && declares(each.Message())
				return !found
			})
		case field.Message() == nil:
		case field.IsList():
			for i := 0; i < value.List().Len() && !found; i++ {
				found = declares(value.List().Get(i).Message())
			}
		default:
			found = declares(value.Message())
		}
		return !found
	})
	return found
}

// Changes reports whether a procedure has side effects. One that there is not has none.
func Changes(spec connect.Spec) bool {
	return spec.Schema != nil && spec.IdempotencyLevel != connect.IdempotencyNoSideEffects
}

// CheckRoles is the interceptor that refuses calls of callers who may not make them, and of
// those whom nobody has authenticated. It tells the API who the caller is.
func CheckRoles(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) error {
		caller, ok := CallerOf(ctx)
		if !ok {
			return Unauthenticated("nobody says who makes this call")
		}
		if need := Least(spec); caller.Role < need {
			return denied(spec, "", need, caller)
		}
		return next(api.WithCaller(ctx, caller.Name), spec, &checked{stream, spec, caller})
	}
}

// checked is a stream whose requests are held against the role of the caller.
type checked struct {
	connect.ServerStream
	spec   connect.Spec
	caller Caller
}

// Receive implements connect.ServerStream.
func (s *checked) Receive(message any) error {
	if err := s.ServerStream.Receive(message); err != nil {
		return err
	}
	request, ok := message.(proto.Message)
	if !ok {
		return nil
	}
	if need := LeastFor(s.spec, request); s.caller.Role < need {
		return denied(s.spec, " with a definition of a job", need, s.caller)
	}
	return nil
}

func denied(spec connect.Spec, with string, need verbs.Role, caller Caller) *connect.Error {
	return api.NewError(connect.CodePermissionDenied, jobsv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED,
		"%s%s needs the role %s; %s has the role %s", spec.Procedure, with, need, caller.Name, caller.Role)
}

// Unauthenticated is the error of a request without valid credentials.
func Unauthenticated(format string, args ...any) *connect.Error {
	return api.NewError(connect.CodeUnauthenticated, jobsv1.ErrorReason_ERROR_REASON_UNAUTHENTICATED, format, args...)
}
