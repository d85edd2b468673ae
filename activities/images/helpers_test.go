package images_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// Each test uploads under its own name and writes under its own prefix, so that
// all can run at once on one stack.

func openStore(t *testing.T) *objects.Store {
	t.Helper()
	return objectstest.Open(t, stacktest.Start(t).S3)
}

func upload(t *testing.T, store *objects.Store, key string, data []byte) {
	t.Helper()
	_, err := store.Put(t.Context(), objects.Object{Bucket: "uploads", Key: key, Data: data, ContentType: "application/octet-stream"})
	require.NoError(t, err)
}

func newRun(typ job.Type, spec any, options ...jobtest.Option) *jobtest.Run {
	return jobtest.NewRun(jobtest.NewJob(typ, "test", job.Trigger{OneShot: &job.OneShot{}}, spec), options...)
}

func handle(t *testing.T, typ job.Type, spec any) (job.Result, images.Output) {
	t.Helper()
	result, err := typ.Handle(t.Context(), newRun(typ, spec))
	require.NoError(t, err)
	var output images.Output
	require.NoError(t, json.Unmarshal(result.Output, &output))
	return result, output
}

func get(t *testing.T, store *objects.Store, key string) ([]byte, objects.Info) {
	t.Helper()
	data, info, err := store.Get(t.Context(), "media", key, 10<<20)
	require.NoError(t, err)
	return data, info
}

func keysUnder(t *testing.T, store *objects.Store, prefix string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for info, err := range store.List(t.Context(), "media", prefix+"/") {
		require.NoError(t, err)
		found[info.Key] = info.ETag + " " + info.Modified.String()
	}
	return found
}

func quadrants(t *testing.T, w, h int) *image.RGBA {
	t.Helper()
	return imagingtest.Quadrants(stacktest.Random(t), w, h)
}

func encodeJPEG(t *testing.T, img image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, jpeg.Encode(&out, img, &jpeg.Options{Quality: 90}))
	return out.Bytes()
}

func encodePNG(t *testing.T, img image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, img))
	return out.Bytes()
}
