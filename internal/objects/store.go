package objects

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/dendrascience/dendra-jobs/internal/answers"
	"github.com/dendrascience/dendra-jobs/internal/tracing"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// Store is a client of one S3 store. It is safe for concurrent use.
type Store struct {
	client   *minio.Client
	public   *minio.Client // signs for the public endpoint, and asks nothing
	endpoint string
}

// attempts bounds the client's own retries, which wait up to 0.2, 0.4 and 0.8 s.
const attempts = 3

const (
	// maxAnswer is the most that an answer may have that is no object: a list of 1,000 keys, or
	// an error.
	maxAnswer = 16 << 20
	// minAnswer is what an answer may always have, so that an error can be read.
	minAnswer = 64 << 10
	// silence is the longest pause in the middle of an answer.
	silence = 30 * time.Second
)

// New makes a client. It does not connect: an unreachable store shows with the
// first request.
func New(config Config) (*Store, error) {
	address, err := addressOf(config.Endpoint)
	if err != nil {
		return nil, err
	}
	public, err := addressOf(cmp.Or(config.PublicEndpoint, config.Endpoint))
	if err != nil {
		return nil, err
	}
	if config.Region == "" {
		config.Region = DefaultRegion
	}
	secure := address.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, fmt.Errorf("S3 store on %s: %w", address.Host, err)
	}
	transport.DialContext = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	options := minio.Options{
		Creds:      config.credentials(),
		MaxRetries: attempts,
		Region:     config.Region, // given, so that it need not be asked for
		Secure:     secure,
		Transport:  answers.Transport(transport, answers.Limits{Bytes: maxAnswer, Silence: silence}),
	}
	client, err := minio.New(address.Host, &options)
	if err != nil {
		return nil, fmt.Errorf("S3 store on %s: %w", address.Host, err)
	}
	options.Secure = public.Scheme == "https"
	signer, err := minio.New(public.Host, &options)
	if err != nil {
		return nil, fmt.Errorf("S3 store on %s: %w", public.Host, err)
	}
	return &Store{client: client, public: signer, endpoint: address.Host}, nil
}

// Info describes a stored object.
type Info struct {
	Bucket string
	Key    string
	// Size is the length of the content in bytes.
	Size int64
	// ETag names this version of the content, without quotes.
	ETag string
	// Modified is when the object was written.
	Modified time.Time
	// ContentType, CacheControl and ContentDisposition are as they were given when it was
	// written. A listing does not have them.
	ContentType        string
	CacheControl       string
	ContentDisposition string
	// SHA256 is the content's hash in hexadecimal digits, or "" when the
	// writer left none. A listing does not have it.
	SHA256 string
	// Metadata is the writer's own, with keys in lower case. A listing does not
	// have it.
	Metadata map[string]string
}

const hashKey = "sha256" // the header is x-amz-meta-sha256

func infoOf(bucket string, object minio.ObjectInfo) Info {
	metadata := make(map[string]string, len(object.UserMetadata))
	for key, value := range object.UserMetadata {
		metadata[strings.ToLower(key)] = value
	}
	info := Info{
		Bucket:             bucket,
		Key:                object.Key,
		Size:               object.Size,
		ETag:               object.ETag,
		Modified:           object.LastModified,
		ContentType:        object.ContentType,
		CacheControl:       object.Metadata.Get("Cache-Control"),
		ContentDisposition: object.Metadata.Get("Content-Disposition"),
		SHA256:             strings.ToLower(metadata[hashKey]),
	}
	delete(metadata, hashKey)
	info.Metadata = metadata
	return info
}

// Stat describes an object without reading it. It fails with class
// ObjectMissing or BucketMissing when there is none, and with StoreError when
// the store does not tell the size.
func (s *Store) Stat(ctx context.Context, bucket, key string) (_ Info, err error) {
	ctx, end := s.span(ctx, "HEAD", bucket)
	defer func() { end(err) }()
	if err := checkKey(bucket, key); err != nil {
		return Info{}, err
	}
	object, err := s.client.StatObject(ctx, bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return Info{}, s.missing(ctx, bucket, key, err)
	}
	if object.Size < 0 {
		return Info{}, job.Fail(errclass.StoreError, "S3 store on %s does not tell the size of %s/%s", s.endpoint, bucket, key)
	}
	return infoOf(bucket, object), nil
}

// Get reads an object of at most limit bytes into memory. It fails with class
// ObjectTooLarge when the object is larger: it has read nothing then, or no more
// than the limit where the store does not tell the size.
func (s *Store) Get(ctx context.Context, bucket, key string, limit int64) (_ []byte, _ Info, err error) {
	ctx, end := s.span(ctx, "GET", bucket)
	defer func() { end(err) }()
	if err := checkKey(bucket, key); err != nil {
		return nil, Info{}, err
	}
	body, object, _, err := minio.Core{Client: s.client}.GetObject(answers.Allow(ctx, max(limit, minAnswer)), bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, Info{}, s.missing(ctx, bucket, key, err)
	}
	defer func() { _ = body.Close() }()
	object.Key = key
	info := infoOf(bucket, object)
	if info.Size > limit {
		return nil, info, job.Fail(errclass.ObjectTooLarge, "object %s/%s has %d bytes, more than the limit of %d",
			bucket, key, info.Size, limit)
	}
	var data bytes.Buffer
	data.Grow(int(max(info.Size, 0)) + bytes.MinRead) // read without growing where the size is told
	_, err = data.ReadFrom(body)
	if err != nil && !errors.Is(err, answers.ErrTooLarge) {
		return nil, info, s.failure(ctx, bucket, key, err)
	}
	// One that is longer than the bound of an answer has been cut to it.
	if info.Size = int64(data.Len()); info.Size > limit || err != nil {
		return nil, info, job.Fail(errclass.ObjectTooLarge, "object %s/%s has more than the limit of %d bytes", bucket, key, limit)
	}
	return data.Bytes(), info, nil
}

// Object is what is to be written.
type Object struct {
	Bucket string
	Key    string
	Data   []byte
	// ContentType is the media type of the data. Required.
	ContentType string
	// CacheControl is sent to those who read the object. Defaults to none.
	CacheControl string
	// ContentDisposition is sent to them too. Defaults to none.
	ContentDisposition string
	// Metadata is stored with the object; keys are case-insensitive. Defaults
	// to none.
	Metadata map[string]string
}

// Hash is the SHA-256 of data in hexadecimal digits, as [Info] has it.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ConflictError says that an object exists with other content.
type ConflictError struct {
	// Existing describes what is stored.
	Existing Info
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("object %s/%s is already there with other content", e.Existing.Bucket, e.Existing.Key)
}

// PutNew writes an object unless its key is taken (PUT with If-None-Match: *).
// It reports true when this call wrote it, and false when it was there with
// the same content already. When it was there with other content, nothing is
// written and the error is final, of class Conflict, and wraps a
// [ConflictError].
//
// A store that ignores the condition overwrites: for equal content a harmless
// repeat.
func (s *Store) PutNew(ctx context.Context, object Object) (Info, bool, error) {
	if err := checkKey(object.Bucket, object.Key); err != nil {
		return Info{}, false, err
	}
	info, err := s.put(ctx, object, true)
	if err == nil {
		return info, true, nil
	}
	if response := (minio.ErrorResponse{}); !errors.As(err, &response) || response.StatusCode != http.StatusPreconditionFailed {
		return Info{}, false, s.failure(ctx, object.Bucket, object.Key, err)
	}
	existing, err := s.Stat(ctx, object.Bucket, object.Key)
	if err != nil {
		return Info{}, false, err
	}
	if existing.Size == int64(len(object.Data)) {
		// What an object says of its content is a claim of whoever wrote it.
		stored, info, err := s.Get(ctx, object.Bucket, object.Key, existing.Size)
		if err != nil {
			return Info{}, false, err
		}
		existing = info
		existing.SHA256 = Hash(stored)
	}
	if existing.Size != int64(len(object.Data)) || existing.SHA256 != Hash(object.Data) {
		return existing, false, job.Fail(errclass.Conflict, "%w", &ConflictError{Existing: existing})
	}
	return existing, false, nil
}

// Put writes an object whether or not its key is taken.
func (s *Store) Put(ctx context.Context, object Object) (Info, error) {
	if err := checkKey(object.Bucket, object.Key); err != nil {
		return Info{}, err
	}
	info, err := s.put(ctx, object, false)
	if err != nil {
		return Info{}, s.failure(ctx, object.Bucket, object.Key, err)
	}
	return info, nil
}

func (s *Store) put(ctx context.Context, object Object, onlyNew bool) (_ Info, err error) {
	ctx, end := s.span(ctx, "PUT", object.Bucket)
	defer func() { end(err) }()
	hash := Hash(object.Data)
	metadata := map[string]string{hashKey: hash}
	for key, value := range object.Metadata {
		metadata[strings.ToLower(key)] = value
	}
	options := minio.PutObjectOptions{
		CacheControl:       object.CacheControl,
		ContentDisposition: object.ContentDisposition,
		ContentType:        object.ContentType,
		// In one request, because only that is conditional as a whole.
		DisableMultipart: true,
		// A signed stream of nothing still has a last chunk, which a store that
		// stops reading after zero bytes takes for the next request.
		DisableContentSha256: len(object.Data) == 0,
		UserMetadata:         maps.Clone(metadata),
	}
	if onlyNew {
		options.SetMatchETagExcept("*")
	}
	size := int64(len(object.Data))
	stored, err := s.client.PutObject(ctx, object.Bucket, object.Key, bytes.NewReader(object.Data), size, options)
	if err != nil {
		return Info{}, err
	}
	delete(metadata, hashKey)
	return Info{
		Bucket:             object.Bucket,
		Key:                object.Key,
		Size:               size,
		ETag:               stored.ETag,
		Modified:           stored.LastModified,
		ContentType:        object.ContentType,
		CacheControl:       object.CacheControl,
		ContentDisposition: object.ContentDisposition,
		SHA256:             hash,
		Metadata:           metadata,
	}, nil
}

// span begins the span of a request.
func (s *Store) span(ctx context.Context, method, bucket string) (context.Context, func(error)) {
	return tracing.Call(ctx, "S3 "+method, "server.address", s.endpoint, "aws.s3.bucket", bucket)
}

// Remove removes an object. It is no error if there is none.
func (s *Store) Remove(ctx context.Context, bucket, key string) (err error) {
	if err := checkKey(bucket, key); err != nil {
		return err
	}
	ctx, end := s.span(ctx, "DELETE", bucket)
	defer func() { end(err) }()
	err = s.client.RemoveObject(ctx, bucket, key, minio.RemoveObjectOptions{})
	if response := (minio.ErrorResponse{}); err == nil || errors.As(err, &response) && response.Code == minio.NoSuchKey {
		return nil
	}
	return s.failure(ctx, bucket, key, err)
}

// List yields the objects of a bucket whose keys begin with prefix, in the
// order of their keys. After an error it ends.
func (s *Store) List(ctx context.Context, bucket, prefix string) iter.Seq2[Info, error] {
	return s.ListAfter(ctx, bucket, prefix, "")
}

// ListAfter is List without the keys up to and including after.
func (s *Store) ListAfter(ctx context.Context, bucket, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		options := minio.ListObjectsOptions{Prefix: prefix, Recursive: true, StartAfter: after}
		for object := range s.client.ListObjectsIter(ctx, bucket, options) {
			if object.Err != nil {
				yield(Info{}, s.failure(ctx, bucket, prefix, object.Err))
				return
			}
			if !yield(infoOf(bucket, object), nil) {
				return
			}
		}
	}
}

// MaxLink is the longest life of a link, which the S3 protocol sets.
const MaxLink = 7 * 24 * time.Hour

// Link makes a URL by which whoever has it can read an object for a time, at most [MaxLink],
// and no longer than the store's credentials last. Nothing is asked of the store.
func (s *Store) Link(ctx context.Context, bucket, key string, life time.Duration) (string, error) {
	if err := checkKey(bucket, key); err != nil {
		return "", err
	}
	link, err := s.public.PresignedGetObject(ctx, bucket, key, life, nil)
	if err != nil {
		return "", s.failure(ctx, bucket, key, err)
	}
	return link.String(), nil
}
