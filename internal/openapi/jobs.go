package openapi

import (
	"fmt"
	"io/fs"
	"maps"

	"google.golang.org/protobuf/reflect/protoreflect"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Jobs is the document of the Job API. The folder is that of the contracts, proto, with the
// comments.
func Jobs(contracts fs.FS) ([]byte, error) {
	files := []protoreflect.FileDescriptor{
		jobsv1.File_dendra_jobs_v1_job_service_proto, jobsv1.File_dendra_jobs_v1_run_service_proto,
		jobsv1.File_dendra_jobs_v1_queue_service_proto, jobsv1.File_dendra_jobs_v1_job_set_service_proto,
		jobsv1.File_dendra_jobs_v1_worker_service_proto, jobsv1.File_dendra_jobs_v1_pipeline_service_proto,
	}
	comments := map[string]string{}
	for _, file := range append(files, jobsv1.File_dendra_jobs_v1_job_proto) {
		text, err := fs.ReadFile(contracts, file.Path())
		if err != nil {
			return nil, fmt.Errorf("openapi: %w", err)
		}
		maps.Copy(comments, Comments(string(text)))
	}
	return Document(Info{
		Title: "Dendra Jobs: Job API", Version: "v1",
		Description: "Methods that stream, WatchRun and ApplyJobSet, are served by Connect, gRPC and gRPC-Web alone.",
	}, files, comments)
}
