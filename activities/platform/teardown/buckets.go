package teardown

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// Buckets says which buckets hold what. It is part of specs.
type Buckets struct {
	TargetBucket  string   `json:"target_bucket,omitempty" minLength:"3" default:"media" help:"bucket of the variants of photos and logos"`
	UploadBuckets []string `json:"upload_buckets,omitempty" minLength:"3" maxItems:"16" default:"[\"uploads\"]" help:"buckets of uploads: keys begin with the id of the organization and a slash"`
	Archive       Archive  `json:"archive,omitzero" help:"archive of raw messages, which goes with a deleted organization if that was asked for"`
}

// Archive says where the archive is.
type Archive struct {
	Bucket string `json:"bucket,omitempty" minLength:"3" default:"archive" help:"bucket of the archive"`
	Prefix string `json:"prefix,omitempty" pattern:"^([A-Za-z0-9_=-][A-Za-z0-9._=-]*/)+$" example:"dendra/" help:"text before all keys, with a slash at its end"`
}

// Validate reports upload buckets that hold something else.
func (b *Buckets) Validate() error {
	var problems []error
	for i, bucket := range b.UploadBuckets {
		switch bucket {
		case b.TargetBucket:
			problems = append(problems, fmt.Errorf("upload_buckets.%d: %s is target_bucket, and holds no uploads", i, bucket))
		case b.Archive.Bucket:
			problems = append(problems, fmt.Errorf("upload_buckets.%d: %s is the bucket of the archive, and holds no uploads", i, bucket))
		}
	}
	return errors.Join(problems...)
}

// CheckUpload says why an object that a record of an organization names is no upload of
// the organization.
func (b *Buckets) CheckUpload(organizationID string, object *platformv1.ObjectReference) error {
	bucket, key := object.GetBucket(), object.GetKey()
	switch {
	case !slices.Contains(b.UploadBuckets, bucket):
		return job.Fail(errclass.NotAnUpload, "%s/%s is no upload: upload buckets are %s", bucket, key, strings.Join(b.UploadBuckets, ", "))
	case !strings.HasPrefix(key, UploadPrefix(organizationID)):
		return job.Fail(errclass.NotAnUpload, "%s/%s is no upload of organization %s: its key does not begin with %s",
			bucket, key, organizationID, UploadPrefix(organizationID))
	}
	return nil
}

// UploadPrefix is what the keys of an organization's uploads begin with.
func UploadPrefix(organizationID string) string { return organizationID + "/" }

// VariantsPrefix is what the keys of the variants of an organization's photos or logos
// begin with, without the slash at its end. Kind is photos or logos.
func VariantsPrefix(kind, organizationID string) string { return kind + "/" + organizationID }
