package breaking

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Jobs are the files of the Job API.
func Jobs() []protoreflect.FileDescriptor {
	var files []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage(jobsv1.File_dendra_jobs_v1_job_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		files = append(files, file)
		return true
	})
	return files
}
