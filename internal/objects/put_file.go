package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/minio/minio-go/v7"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

// PutFile writes a file of any size, in parts of which one that fails is sent again. It
// reports false when an object with the same content has the key already. Another object
// is overwritten.
func (s *Store) PutFile(ctx context.Context, bucket, key, contentType string, file *os.File) (_ Info, _ bool, err error) {
	if err := checkKey(bucket, key); err != nil {
		return Info{}, false, err
	}
	hash, size, err := hashOf(file)
	if err != nil {
		return Info{}, false, err
	}
	existing, err := s.Stat(ctx, bucket, key)
	switch {
	case err == nil && existing.SHA256 == hash && existing.Size == size:
		return existing, false, nil
	case err != nil && job.ClassOf(err) != errclass.ObjectMissing:
		return Info{}, false, err
	}
	putting, end := s.span(ctx, "PUT", bucket)
	_, err = s.client.PutObject(putting, bucket, key, file, size, minio.PutObjectOptions{
		ContentType: contentType, UserMetadata: map[string]string{hashKey: hash},
	})
	end(err)
	if err != nil {
		return Info{}, false, s.failure(ctx, bucket, key, err)
	}
	info, err := s.Stat(ctx, bucket, key)
	return info, err == nil, err
}

// hashOf reads a file, and goes back to its beginning.
func hashOf(file *os.File) (hash string, size int64, err error) {
	sum := sha256.New()
	if size, err = io.Copy(sum, file); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", 0, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	return hex.EncodeToString(sum.Sum(nil)), size, nil
}
