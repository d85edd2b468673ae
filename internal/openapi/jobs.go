package openapi

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// Jobs is the document of the Job API. The folder is that of the contracts, proto, with the
// comments.
func Jobs(contracts fs.FS) ([]byte, error) {
	var files []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage(jobsv1.File_dendra_jobs_v1_job_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		files = append(files, file)
		return true
	})
	slices.SortFunc(files, func(a, b protoreflect.FileDescriptor) int { return cmp.Compare(a.Path(), b.Path()) })
	comments := map[string]string{}
	for _, file := range files {
		text, err := fs.ReadFile(contracts, file.Path())
		if err != nil {
			return nil, fmt.Errorf("openapi: %w", err)
		}
		maps.Copy(comments, Comments(string(text)))
	}
	return Document(Info{Title: "Dendra Jobs: Job API", Version: "v1"}, files, comments)
}
