package verbs

import "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"

// uploadVerbs are those of files to import.
func uploadVerbs() []*Verb { return []*Verb{CreateUpload, CompleteUpload} }

// CreateUpload begins the upload of a file.
var CreateUpload = &Verb{Name: "create-upload", Procedure: jobsv1connect.UploadServiceCreateUploadProcedure, Role: RoleAdmin, Kind: KindUpload}

// CompleteUpload makes an object of the parts of a file.
var CompleteUpload = &Verb{Name: "complete-upload", Procedure: jobsv1connect.UploadServiceCompleteUploadProcedure, Role: RoleAdmin, Kind: KindUpload}
