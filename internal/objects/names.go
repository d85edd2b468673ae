package objects

import (
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
)

// checkKey refuses a key that stores take for a path out of the bucket, or treat
// differently from each other.
func checkKey(bucket, key string) error {
	if key == "" {
		return job.Final(ClassInvalidName, "the key of an object in bucket %s is empty", bucket)
	}
	parts := strings.Split(key, "/")
	if slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		return job.Final(ClassInvalidName, "object key %s/%s: a part of a key is neither . nor ..", bucket, key)
	}
	return nil
}
