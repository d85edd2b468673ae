package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/dendrascience/dendra-jobs/internal/answers"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// missing is failure for reads. A HEAD request has no body to say whether the
// bucket or the object is missing, so the bucket is asked for.
func (s *Store) missing(ctx context.Context, bucket, key string, err error) error {
	if response := (minio.ErrorResponse{}); errors.As(err, &response) && response.Code == minio.NoSuchKey {
		if found, lookup := s.client.BucketExists(ctx, bucket); lookup == nil && !found {
			return s.bucketMissing(bucket)
		}
	}
	return s.failure(ctx, bucket, key, err)
}

func (s *Store) bucketMissing(bucket string) error {
	return job.Fail(errclass.BucketMissing, "bucket %q does not exist on %s", bucket, s.endpoint)
}

// failure gives an error of the client its class and its place.
func (s *Store) failure(ctx context.Context, bucket, key string, err error) error {
	var response minio.ErrorResponse
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("object %s/%s on %s: %w", bucket, key, s.endpoint, ctx.Err())
	case !errors.As(err, &response):
		return job.Fail(errclass.StoreUnreachable, "S3 store on %s cannot be reached for bucket %s: %w", s.endpoint, bucket, answers.WithoutURL(err))
	}
	switch response.Code {
	case minio.NoSuchBucket:
		return s.bucketMissing(bucket)
	case minio.NoSuchKey:
		return job.Fail(errclass.ObjectMissing, "object %s/%s does not exist on %s", bucket, key, s.endpoint)
	case minio.AccessDenied, "InvalidAccessKeyId", "SignatureDoesNotMatch", "AllAccessDisabled":
		return job.Fail(errclass.AccessDenied, "S3 store on %s refuses access to %s/%s: %w", s.endpoint, bucket, key, err)
	case "InvalidBucketName", "XMinioInvalidObjectName", "KeyTooLongError",
		// A store over a file system, where no object can be below another one.
		"ExistingObjectIsDirectory", "ObjectParentIsFile":
		return job.Fail(errclass.InvalidName, "S3 store on %s does not accept the name %s/%s: %w", s.endpoint, bucket, key, err)
	}
	if response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized {
		return job.Fail(errclass.AccessDenied, "S3 store on %s refuses access to %s/%s: %w", s.endpoint, bucket, key, err)
	}
	return job.Fail(errclass.StoreError, "S3 store on %s failed for %s/%s (%s): %w",
		s.endpoint, bucket, key, response.Code, err)
}
