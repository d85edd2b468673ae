package objects

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/minio/minio-go/v7"
)

// Address is the host of the store, for messages.
func (s *Store) Address() string { return s.endpoint }

// HasBucket reports whether there is a bucket.
func (s *Store) HasBucket(ctx context.Context, bucket string) (bool, error) {
	if err := checkKey(bucket, "any"); err != nil {
		return false, err
	}
	found, err := s.client.BucketExists(ctx, bucket)
	if err != nil {
		return false, s.failure(ctx, bucket, "", err)
	}
	return found, nil
}

// MakeBucket makes a bucket unless there is one, and says whether it did.
func (s *Store) MakeBucket(ctx context.Context, bucket string) (made bool, err error) {
	found, err := s.HasBucket(ctx, bucket)
	if found || err != nil {
		return false, err
	}
	if err := s.client.MakeBucket(ctx, bucket, minio.MakeBucketOptions{}); err != nil {
		return false, s.failure(ctx, bucket, "", err)
	}
	return true, nil
}

// SetPolicy gives a bucket a policy, unless it has it, and says whether it did. Stores differ in
// what they take.
func (s *Store) SetPolicy(ctx context.Context, bucket, policy string) (made bool, err error) {
	if err := checkKey(bucket, "any"); err != nil {
		return false, err
	}
	has, err := s.client.GetBucketPolicy(ctx, bucket)
	if err != nil {
		return false, s.failure(ctx, bucket, "", err)
	}
	if sameJSON(has, policy) {
		return false, nil
	}
	if err := s.client.SetBucketPolicy(ctx, bucket, policy); err != nil {
		return false, s.failure(ctx, bucket, "", err)
	}
	return true, nil
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// Conditional reports whether the store obeys If-None-Match. It writes a small object below
// doctor/ in the bucket and removes it.
func (s *Store) Conditional(ctx context.Context, bucket string) (bool, error) {
	object := Object{Bucket: bucket, Key: "doctor/" + rand.Text(), Data: []byte("first"), ContentType: "text/plain"}
	if _, _, err := s.PutNew(ctx, object); err != nil {
		return false, err
	}
	// What is left behind does no harm.
	defer func() {
		_ = s.client.RemoveObject(context.WithoutCancel(ctx), bucket, object.Key, minio.RemoveObjectOptions{})
	}()
	object.Data = []byte("second")
	_, _, err := s.PutNew(ctx, object)
	if _, refused := errors.AsType[*ConflictError](err); refused {
		return true, nil
	}
	return false, err
}
