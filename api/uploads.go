package api

import (
	"context"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// uploadService implements dendra.jobs.v1.UploadService. The store keeps what it knows of an
// upload.
type uploadService struct{ *Server }

// Bounds of the parts of an upload.
const (
	// minPart is above the least part of S3, 5 MiB.
	minPart = 16 << 20
	// mostParts bounds the URLs of an answer.
	mostParts = 500
	// signedFor is how long the URL of a part is valid.
	signedFor = time.Hour
)

// partSize is the size of all parts of a file but the last.
func partSize(size int64) int64 {
	const mebibyte = 1 << 20
	each := (size + mostParts - 1) / mostParts
	return max(minPart, (each+mebibyte-1)/mebibyte*mebibyte)
}

// owned is the place of a file.
type owned struct {
	store       *objects.Store
	quota       places.Quota
	bucket, key string
	prefix      string // of all files of the organization
}

// place finds the place of a file: below its organization, as the platform knows that.
func (s *uploadService) place(ctx context.Context, file *jobsv1.FileToUpload) (owned, error) {
	store, err := s.store()
	if err != nil {
		return owned{}, err
	}
	at, err := s.Places()
	if err != nil {
		return owned{}, newError(connect.CodeUnavailable, backendDown, "%s", oneLine(err))
	}
	organization := file.GetOrganization()
	if s.Platform != nil {
		_, known, err := s.organization(ctx, organization)
		if err != nil {
			return owned{}, err
		}
		organization = known.GetId()
	}
	prefix := places.ImportsPrefix(organization)
	return owned{
		store: store, quota: at.Imports.Quota, bucket: at.UploadBuckets[0], prefix: prefix,
		key: prefix + file.GetFingerprint()[:16] + "/" + file.GetFileName(),
	}, nil
}

// stored is the upload of a file that is there; nil if it is not.
func (o owned) stored(ctx context.Context, size int64) (*jobsv1.Upload, error) {
	info, err := o.store.Stat(ctx, o.bucket, o.key)
	if job.ClassOf(err) == errclass.ObjectMissing {
		return nil, nil //nolint:nilnil // Documented: it is not there.
	}
	if err != nil {
		return nil, err
	}
	if info.Size != size {
		return nil, newError(connect.CodeAlreadyExists, alreadyExists, "%s/%s is there with %d bytes: another file has the same fingerprint", o.bucket, o.key, info.Size)
	}
	return &jobsv1.Upload{Bucket: o.bucket, Key: o.key, Etag: info.ETag}, nil
}

// checkQuota refuses a file with which the organization would have too many.
func (o owned) checkQuota(ctx context.Context, size int64) error {
	over, err := o.quota.Exceeded(o.store.List(ctx, o.bucket, o.prefix), 1, size)
	if err == nil && over != "" {
		err = newError(connect.CodeResourceExhausted, quotaExceeded, "%s/%s: %s: remove some", o.bucket, o.prefix, over)
	}
	return err
}

// CreateUpload implements the service.
func (s *uploadService) CreateUpload(ctx context.Context, r *jobsv1.CreateUploadRequest) (*jobsv1.CreateUploadResponse, error) {
	size := r.GetFile().GetSize()
	o, err := s.place(ctx, r.GetFile())
	if err != nil {
		return nil, err
	}
	if there, err := o.stored(ctx, size); there != nil || err != nil {
		return &jobsv1.CreateUploadResponse{Upload: there}, err
	}
	if err := o.checkQuota(ctx, size); err != nil {
		return nil, err
	}
	parts, err := o.store.FindParts(ctx, o.bucket, o.key)
	if err == nil && parts.UploadID == "" {
		parts, err = o.store.BeginParts(ctx, o.bucket, o.key, "application/octet-stream")
	}
	if err != nil {
		return nil, err
	}
	upload := &jobsv1.Upload{Bucket: o.bucket, Key: o.key, UploadId: parts.UploadID, PartSize: partSize(size)}
	for n := 1; int64(n-1)*upload.GetPartSize() < size; n++ {
		url, err := o.store.SignPart(ctx, parts, n, signedFor)
		if err != nil {
			return nil, err
		}
		upload.Parts = append(upload.Parts, &jobsv1.UploadPart{Number: int32(n), Url: url, Etag: parts.Stored[n].ETag}) //nolint:gosec // At most mostParts.
	}
	return &jobsv1.CreateUploadResponse{Upload: upload}, nil
}

// CompleteUpload implements the service.
func (s *uploadService) CompleteUpload(ctx context.Context, r *jobsv1.CompleteUploadRequest) (*jobsv1.CompleteUploadResponse, error) {
	size := r.GetFile().GetSize()
	o, err := s.place(ctx, r.GetFile())
	if err != nil {
		return nil, err
	}
	if there, err := o.stored(ctx, size); there != nil || err != nil {
		return &jobsv1.CompleteUploadResponse{Upload: there}, err
	}
	parts, err := o.store.Parts(ctx, objects.Parts{Bucket: o.bucket, Key: o.key, UploadID: r.GetUploadId()})
	if job.ClassOf(err) == errclass.ObjectMissing {
		return nil, newError(connect.CodeNotFound, notFound, "there is no such upload of %s/%s: begin it anew", o.bucket, o.key)
	}
	if err != nil {
		return nil, err
	}
	each := partSize(size)
	for n := int64(1); (n-1)*each < size; n++ {
		if is, want := parts.Stored[int(n)].Size, min(each, size-(n-1)*each); is != want {
			return nil, newError(connect.CodeFailedPrecondition, unsupported, "part %d of %s/%s has %d bytes, not %d: send it again", n, o.bucket, o.key, is, want)
		}
	}
	if err := o.checkQuota(ctx, size); err != nil {
		return nil, err
	}
	info, err := o.store.CompleteParts(ctx, parts)
	if err != nil {
		return nil, err
	}
	return &jobsv1.CompleteUploadResponse{Upload: &jobsv1.Upload{Bucket: o.bucket, Key: o.key, Etag: info.ETag}}, nil
}
