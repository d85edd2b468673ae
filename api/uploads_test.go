package api_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/integration/reconcile/reconciletest"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// putPart sends a part by its URL alone.
func putPart(t *testing.T, part *jobsv1.UploadPart, content []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, part.GetUrl(), bytes.NewReader(content))
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode, string(text))
}

// uploads sends a file of two parts, of which the upload is broken off after the first.
func uploads(t *testing.T, w *world, key string, c *calledClients) {
	const first = 16 << 20
	ctx, content := t.Context(), bytes.Repeat([]byte(key+"\n"), first/(len(key)+1)+10)
	file := &jobsv1.FileToUpload{Organization: "demo", FileName: "Ten Min.dat", Size: int64(len(content)), Fingerprint: objects.Hash(content)}
	create := func() *jobsv1.Upload {
		created, err := c.Uploads.CreateUpload(ctx, &jobsv1.CreateUploadRequest{File: file})
		require.NoError(t, err)
		return created.GetUpload()
	}
	begun := create()
	require.Equal(t, "uploads", begun.GetBucket())
	require.Equal(t, reconciletest.OrganizationID+"/imports/"+file.GetFingerprint()[:16]+"/Ten Min.dat", begun.GetKey())
	require.EqualValues(t, first, begun.GetPartSize())
	require.Len(t, begun.GetParts(), 2)
	putPart(t, begun.GetParts()[0], content[:first])
	complete := func(id string) (*jobsv1.Upload, error) {
		completed, err := c.Uploads.CompleteUpload(ctx, &jobsv1.CompleteUploadRequest{File: file, UploadId: id})
		return completed.GetUpload(), err
	}
	_, err := complete(begun.GetUploadId())
	requireError(t, err, connect.CodeFailedPrecondition, jobsv1.ErrorReason_ERROR_REASON_UNSUPPORTED)
	require.ErrorContains(t, err, fmt.Sprintf("part 2 of uploads/%s has 0 bytes, not %d: send it again", begun.GetKey(), len(content)-first))
	_, err = complete("another")
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)

	again := create()
	require.Equal(t, begun.GetUploadId(), again.GetUploadId())
	require.NotEmpty(t, again.GetParts()[0].GetEtag())
	require.Empty(t, again.GetParts()[1].GetEtag())
	putPart(t, again.GetParts()[1], content[first:])
	done, err := complete(again.GetUploadId())
	require.NoError(t, err)
	store := objectstest.Open(t, w.stack.S3)
	stored, info, err := store.Get(ctx, done.GetBucket(), done.GetKey(), int64(len(content)))
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, stored))
	require.Equal(t, info.ETag, done.GetEtag())

	there := create()
	require.Equal(t, info.ETag, there.GetEtag())
	require.Empty(t, there.GetParts())
	repeated, err := complete(again.GetUploadId())
	require.NoError(t, err)
	require.Equal(t, info.ETag, repeated.GetEtag())

	file.Size++
	_, err = c.Uploads.CreateUpload(ctx, &jobsv1.CreateUploadRequest{File: file})
	requireError(t, err, connect.CodeAlreadyExists, jobsv1.ErrorReason_ERROR_REASON_ALREADY_EXISTS)
	file.Organization = "nobody"
	_, err = c.Uploads.CreateUpload(ctx, &jobsv1.CreateUploadRequest{File: file})
	requireError(t, err, connect.CodeNotFound, jobsv1.ErrorReason_ERROR_REASON_NOT_FOUND)
	for _, name := range []string{"", "a/b", `a\b`, "a\nb"} {
		file.FileName = name
		_, err = c.Uploads.CreateUpload(ctx, &jobsv1.CreateUploadRequest{File: file})
		requireError(t, err, connect.CodeInvalidArgument, jobsv1.ErrorReason_ERROR_REASON_INVALID_REQUEST)
	}
}

// TestQuotaOfUploads: an organization has files up to the quota, whatever others have. Without a
// platform the organization is what the request names.
func TestQuotaOfUploads(t *testing.T) {
	t.Parallel()
	st := stacktest.Start(t)
	quota := places.Quota{Files: 2, Bytes: 100}
	c := api.NewInProcess(api.Config{
		Store: func() (*objects.Store, error) { return objects.New(objectstest.Config(st.S3)) },
		Places: func() (places.Places, error) {
			return places.Places{UploadBuckets: []string{"uploads"}, Imports: places.Imports{Quota: quota}}, nil
		},
	})
	upload := func(organization string, size int) error {
		content := bytes.Repeat([]byte{byte(size)}, size)
		file := &jobsv1.FileToUpload{Organization: organization, FileName: "a.dat", Size: int64(size), Fingerprint: objects.Hash(content)}
		created, err := c.Uploads.CreateUpload(t.Context(), &jobsv1.CreateUploadRequest{File: file})
		if err != nil {
			return err
		}
		putPart(t, created.GetUpload().GetParts()[0], content)
		_, err = c.Uploads.CompleteUpload(t.Context(), &jobsv1.CompleteUploadRequest{File: file, UploadId: created.GetUpload().GetUploadId()})
		return err
	}
	refused := func(err error, text string) {
		requireError(t, err, connect.CodeResourceExhausted, jobsv1.ErrorReason_ERROR_REASON_QUOTA_EXCEEDED)
		require.ErrorContains(t, err, text)
	}
	require.NoError(t, upload("quota-a", 60))
	require.NoError(t, upload("quota-ab", 60))
	refused(upload("quota-a", 41), "uploads/quota-a/imports/: there would be 101 bytes, and the quota of an organization is 100: remove some")
	require.NoError(t, upload("quota-a", 40))
	refused(upload("quota-a", 1), "uploads/quota-a/imports/: there would be 3 files, and the quota of an organization is 2: remove some")

	// What was begun before others were completed is refused at its end.
	content := []byte("begun")
	file := &jobsv1.FileToUpload{Organization: "quota-c", FileName: "a.dat", Size: int64(len(content)), Fingerprint: objects.Hash(content)}
	created, err := c.Uploads.CreateUpload(context.Background(), &jobsv1.CreateUploadRequest{File: file})
	require.NoError(t, err)
	putPart(t, created.GetUpload().GetParts()[0], content)
	require.NoError(t, upload("quota-c", 99))
	_, err = c.Uploads.CompleteUpload(t.Context(), &jobsv1.CompleteUploadRequest{File: file, UploadId: created.GetUpload().GetUploadId()})
	refused(err, "there would be 104 bytes")
}
