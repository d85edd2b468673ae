package objects

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Parts is an object that is being made of parts: a multipart upload of S3.
type Parts struct {
	Bucket string
	Key    string
	// UploadID names it.
	UploadID string
	// Stored are its parts by their numbers, from 1 on.
	Stored map[int]Part
}

// Part is a part that is stored.
type Part struct {
	// ETag is the MD5 of its bytes, in hexadecimal digits.
	ETag string
	Size int64
}

// Size is that of all parts that are stored, in bytes.
func (p Parts) Size() (size int64) {
	for _, part := range p.Stored {
		size += part.Size
	}
	return size
}

// maxParts is how many parts an object may have. See S3's limits of multipart uploads.
const maxParts = 10_000

// FindParts gives the upload of an object that began last; without an UploadID if there is none.
func (s *Store) FindParts(ctx context.Context, bucket, key string) (_ Parts, err error) {
	found := Parts{Bucket: bucket, Key: key}
	if err := checkKey(bucket, key); err != nil {
		return found, err
	}
	listing, end := s.span(ctx, "GET", bucket)
	defer func() { end(err) }()
	var began time.Time
	for upload := range s.client.ListIncompleteUploads(listing, bucket, key, true) {
		if upload.Err != nil {
			return found, s.failure(ctx, bucket, key, upload.Err)
		}
		if upload.Key == key && (found.UploadID == "" || upload.Initiated.After(began)) {
			found.UploadID, began = upload.UploadID, upload.Initiated
		}
	}
	if found.UploadID == "" {
		return found, nil
	}
	return s.Parts(ctx, found)
}

// BeginParts begins an upload. An upload that nobody completes is kept until a rule of the store
// removes it.
func (s *Store) BeginParts(ctx context.Context, bucket, key, contentType string) (_ Parts, err error) {
	if err := checkKey(bucket, key); err != nil {
		return Parts{}, err
	}
	beginning, end := s.span(ctx, "POST", bucket)
	defer func() { end(err) }()
	id, err := s.core().NewMultipartUpload(beginning, bucket, key, minio.PutObjectOptions{ContentType: contentType})
	if err != nil {
		return Parts{}, s.failure(ctx, bucket, key, err)
	}
	return Parts{Bucket: bucket, Key: key, UploadID: id}, nil
}

// Parts reads which parts of an upload are stored. It fails with class ObjectMissing if there is
// no such upload.
func (s *Store) Parts(ctx context.Context, of Parts) (_ Parts, err error) {
	of.Stored = map[int]Part{}
	if err := checkKey(of.Bucket, of.Key); err != nil {
		return of, err
	}
	listing, end := s.span(ctx, "GET", of.Bucket)
	defer func() { end(err) }()
	for after := 0; ; {
		page, err := s.core().ListObjectParts(listing, of.Bucket, of.Key, of.UploadID, after, 0)
		if minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
			return of, job.Fail(errclass.ObjectMissing, "object %s/%s has no such upload on %s", of.Bucket, of.Key, s.endpoint)
		}
		if err != nil {
			return of, s.failure(ctx, of.Bucket, of.Key, err)
		}
		for _, part := range page.ObjectParts {
			of.Stored[part.PartNumber] = Part{ETag: strings.Trim(part.ETag, `"`), Size: part.Size}
		}
		if !page.IsTruncated || page.NextPartNumberMarker <= after || len(of.Stored) > maxParts {
			return of, nil
		}
		after = page.NextPartNumberMarker
	}
}

// CompleteParts makes the object of the parts that are stored.
func (s *Store) CompleteParts(ctx context.Context, of Parts) (_ Info, err error) {
	var parts []minio.CompletePart
	for n := 1; n <= len(of.Stored); n++ {
		parts = append(parts, minio.CompletePart{PartNumber: n, ETag: of.Stored[n].ETag})
	}
	completing, end := s.span(ctx, "POST", of.Bucket)
	defer func() { end(err) }()
	if _, err := s.core().CompleteMultipartUpload(completing, of.Bucket, of.Key, of.UploadID, parts, minio.PutObjectOptions{}); err != nil {
		return Info{}, s.failure(ctx, of.Bucket, of.Key, err)
	}
	return s.Stat(ctx, of.Bucket, of.Key)
}

// SignPart gives the URL that takes a part by PUT for a time, without other credentials. Its
// host is the store's public one.
func (s *Store) SignPart(ctx context.Context, of Parts, number int, lasts time.Duration) (string, error) {
	signed, err := s.public.Presign(ctx, "PUT", of.Bucket, of.Key, lasts, url.Values{
		"partNumber": {strconv.Itoa(number)}, "uploadId": {of.UploadID},
	})
	if err != nil {
		return "", s.failure(ctx, of.Bucket, of.Key, err)
	}
	return signed.String(), nil
}

// PublicOrigin is the scheme and host of signed URLs: https://s3.example.org.
func (s *Store) PublicOrigin() string {
	public := s.public.EndpointURL()
	return public.Scheme + "://" + public.Host
}

func (s *Store) core() minio.Core { return minio.Core{Client: s.client} }
