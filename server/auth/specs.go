package auth

import (
	"cmp"
	"path"
	"slices"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Specs are the methods of the Job API as a server sees them: service by service, in the order
// of the contract.
func Specs() []connect.Spec {
	var all []connect.Spec
	protoregistry.GlobalFiles.RangeFilesByPackage(jobsv1.File_dendra_jobs_v1_error_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		for s := range file.Services().Len() {
			service := file.Services().Get(s)
			for m := range service.Methods().Len() {
				all = append(all, specOf(service.Methods().Get(m)))
			}
		}
		return true
	})
	slices.SortStableFunc(all, func(a, b connect.Spec) int { return cmp.Compare(path.Dir(a.Procedure), path.Dir(b.Procedure)) })
	return all
}

func specOf(method protoreflect.MethodDescriptor) connect.Spec {
	spec := connect.Spec{Schema: method, Procedure: "/" + string(method.Parent().FullName()) + "/" + string(method.Name())}
	options, _ := method.Options().(*descriptorpb.MethodOptions)
	switch options.GetIdempotencyLevel() {
	case descriptorpb.MethodOptions_NO_SIDE_EFFECTS:
		spec.IdempotencyLevel = connect.IdempotencyNoSideEffects
	case descriptorpb.MethodOptions_IDEMPOTENT:
		spec.IdempotencyLevel = connect.IdempotencyIdempotent
	default:
	}
	return spec
}
