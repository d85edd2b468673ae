package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dendrascience/dendra-jobs/internal/objects"
)

// Upload puts a file into a bucket of the S3 store that the environment names, unless it
// is there, and gives the ETag that it has there.
func Upload(ctx context.Context, getenv func(string) string, bucket, key, path string) (etag string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the file cannot be read: %w", err)
	}
	defer file.Close() //nolint:errcheck // Only read.
	config, err := objects.ConfigFromEnv(getenv)
	if err != nil {
		return "", err
	}
	store, err := objects.New(config)
	if err != nil {
		return "", err
	}
	info, _, err := store.PutFile(ctx, bucket, key, "application/octet-stream", file)
	return info.ETag, err
}

// UploadKey is the key that a file of an organization gets: ORGANIZATION/NAME.
func UploadKey(organization, path string) string { return organization + "/" + filepath.Base(path) }
