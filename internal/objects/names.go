package objects

import (
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// checkKey refuses a key that stores take for a path out of the bucket, or treat
// differently from each other.
func checkKey(bucket, key string) error {
	if key == "" {
		return job.Fail(errclass.InvalidName, "the key of an object in bucket %s is empty", bucket)
	}
	parts := strings.Split(key, "/")
	if slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		return job.Fail(errclass.InvalidName, "object key %s/%s: a part of a key is neither . nor ..", bucket, key)
	}
	return nil
}
