package servers

import (
	"context"
	"crypto/md5" //nolint:gosec // S3 names parts by it.
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dendrascience/dendra-jobs/internal/answers"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1/jobsv1connect"
)

// Uploader sends files to the S3 store of a Job API.
type Uploader struct {
	// Client is that of the Job API. Required.
	Client jobsv1connect.UploadServiceClient
	// Progress is told how many parts of how many are there. May be nil.
	// Its calls come one after the other.
	Progress func(done, total int)
}

// Of the parts of a file.
const (
	atOnce   = 3
	attempts = 4
)

// stores calls S3 stores.
var stores = answers.Client(nil, answers.Limits{Bytes: 64 << 10, Silence: time.Minute})

// Upload sends a file of an organization, unless it is there, and gives the object. Of an upload
// that was broken off it sends the parts that are not there.
func (u Uploader) Upload(ctx context.Context, organization, path string) (*jobsv1.Upload, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read: %w", err)
	}
	defer file.Close() //nolint:errcheck // Only read.
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read: %w", err)
	}
	named := &jobsv1.FileToUpload{
		Organization: organization, FileName: filepath.Base(path), Size: size, Fingerprint: hex.EncodeToString(sum.Sum(nil)),
	}
	created, err := u.Client.CreateUpload(ctx, &jobsv1.CreateUploadRequest{File: named})
	upload := created.GetUpload()
	if err != nil || upload.GetEtag() != "" {
		return upload, err
	}
	if err := u.send(ctx, file, size, upload); err != nil {
		return nil, err
	}
	completed, err := u.Client.CompleteUpload(ctx, &jobsv1.CompleteUploadRequest{File: named, UploadId: upload.GetUploadId()})
	return completed.GetUpload(), err
}

// send sends the parts that are not there.
func (u Uploader) send(ctx context.Context, file io.ReaderAt, size int64, upload *jobsv1.Upload) error {
	sending, ctx := errgroup.WithContext(ctx)
	sending.SetLimit(atOnce)
	var sent int
	var telling sync.Mutex
	for n, part := range upload.GetParts() {
		at := int64(n) * upload.GetPartSize()
		content := io.NewSectionReader(file, at, min(upload.GetPartSize(), size-at))
		sending.Go(func() error {
			if err := sendPart(ctx, part, content); err != nil {
				return fmt.Errorf("part %d of %d: %w", n+1, len(upload.GetParts()), err)
			}
			telling.Lock()
			defer telling.Unlock()
			if sent++; u.Progress != nil {
				u.Progress(sent, len(upload.GetParts()))
			}
			return nil
		})
	}
	return sending.Wait() //nolint:wrapcheck // Its errors name the part.
}

// sendPart sends a part, and again if that fails.
func sendPart(ctx context.Context, part *jobsv1.UploadPart, content *io.SectionReader) error {
	if part.GetEtag() != "" {
		sum := md5.New() //nolint:gosec // As above.
		if _, err := io.Copy(sum, content); err != nil {
			return fmt.Errorf("the file cannot be read: %w", err)
		}
		if hex.EncodeToString(sum.Sum(nil)) == part.GetEtag() {
			return nil
		}
	}
	for attempt := 1; ; attempt++ {
		err := put(ctx, part.GetUrl(), content)
		if err == nil || attempt == attempts || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(time.Duration(attempt*attempt) * 500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func put(ctx context.Context, url string, content *io.SectionReader) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, url, io.NewSectionReader(content, 0, content.Size()))
	if err != nil {
		return fmt.Errorf("the URL of the S3 store: %w", err)
	}
	request.ContentLength = content.Size()
	answer, err := stores.Do(request)
	if err != nil {
		return fmt.Errorf("the S3 store at %s cannot be reached: %w", request.URL.Host, answers.WithoutURL(err))
	}
	defer answer.Body.Close() //nolint:errcheck // Only read.
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 512))
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the S3 store at %s refuses it (%s): %.200q", request.URL.Host, answer.Status, text)
	}
	return nil
}
