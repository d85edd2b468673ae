package objects

import (
	"context"
	"errors"
	"io"

	"github.com/minio/minio-go/v7"

	"github.com/dendrascience/dendra-jobs/internal/answers"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Reader reads an object of any size, from any place on. What is read in order comes
// over one request. It is not safe for concurrent use.
type Reader struct {
	store *Store
	ctx   context.Context // of Open, since io.ReaderAt takes none
	info  Info
	body  io.ReadCloser
	next  int64 // the place that body is at
}

// Open opens a version of an object, which its ETag names: "" for the present one. An
// object with another ETag is an error of class ObjectChanged, also when that shows
// later. Reading ends with ctx.
func (s *Store) Open(ctx context.Context, bucket, key, etag string) (*Reader, error) {
	info, err := s.Stat(ctx, bucket, key)
	if err != nil {
		return nil, err
	}
	if etag != "" && etag != info.ETag {
		return nil, changed(bucket, key, etag, info.ETag)
	}
	return &Reader{store: s, ctx: ctx, info: info}, nil
}

func changed(bucket, key, etag, now string) error {
	return job.Fail(errclass.ObjectChanged, "object %s/%s has the ETag %s, and not %s: it was written anew", bucket, key, now, etag)
}

// Info describes the object.
func (r *Reader) Info() Info { return r.info }

// ReadAt implements io.ReaderAt. Errors have a class and name the object.
func (r *Reader) ReadAt(into []byte, offset int64) (int, error) {
	if offset >= r.info.Size {
		return 0, io.EOF
	}
	if r.body == nil || offset != r.next {
		if err := r.request(offset); err != nil {
			return 0, err
		}
	}
	n, err := io.ReadFull(r.body, into)
	r.next += int64(n)
	switch {
	case err == nil:
		return n, nil
	case r.next == r.info.Size && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		return n, io.EOF
	}
	_ = r.Close() // What is wrong with it is known.
	return n, r.store.failure(r.ctx, r.info.Bucket, r.info.Key, err)
}

// request asks for the object from an offset on.
func (r *Reader) request(offset int64) (err error) {
	_ = r.Close() // What it still had is not wanted.
	ctx, end := r.store.span(r.ctx, "GET", r.info.Bucket)
	defer func() { end(err) }()
	var options minio.GetObjectOptions
	if offset > 0 {
		if err := options.SetRange(offset, 0); err != nil {
			return err
		}
	}
	asked := answers.Allow(ctx, max(r.info.Size-offset, minAnswer))
	body, object, _, err := minio.Core{Client: r.store.client}.GetObject(asked, r.info.Bucket, r.info.Key, options)
	if err != nil {
		return r.store.missing(ctx, r.info.Bucket, r.info.Key, err)
	}
	if object.ETag != r.info.ETag {
		return errors.Join(changed(r.info.Bucket, r.info.Key, r.info.ETag, object.ETag), body.Close())
	}
	r.body, r.next = body, offset
	return nil
}

// Close ends the request under way. The object can be read again afterwards.
func (r *Reader) Close() error {
	if r.body == nil {
		return nil
	}
	err := r.body.Close()
	r.body = nil
	return err
}
