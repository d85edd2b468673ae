package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/platform/effects"
	"github.com/dendrascience/dendra-jobs/activities/platform/places"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	"github.com/dendrascience/dendra-jobs/job"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
)

// putManifest stores the manifest of an upload whose variants were made by a recipe of no version.
func putManifest(t *testing.T, store *objects.Store, prefix, upload string) {
	t.Helper()
	objectstest.PutPicture(t, store, "uploads", upload)
	info, err := store.Stat(t.Context(), "uploads", upload)
	require.NoError(t, err)
	recipe := `{"version":0,"kind":"photo","variants":null}`
	text := job.EncodeJSON(images.Manifest{
		Format: "dendra.image-variants/1", Recipe: json.RawMessage(recipe), Variants: []images.Variant{},
		Source: images.Source{Bucket: "uploads", Key: upload, ETag: info.ETag, SHA256: info.SHA256, Bytes: info.Size},
	})
	_, err = store.Put(t.Context(), objects.Object{
		Bucket: "media", Key: prefix + "/" + info.SHA256[:32] + "/" + objects.Hash([]byte(recipe))[:8] + "-" + objects.Hash([]byte("uploads/" + upload))[:8] + ".json",
		Data: text, ContentType: "application/json", CacheControl: "no-cache",
	})
	require.NoError(t, err)
}

func TestImages(t *testing.T) {
	t.Parallel()
	st := stacktest.StartNamespace(t)
	store := objectstest.Open(t, st.S3)
	id := platformtest.NewID()
	prefix := "photos/" + id
	upload := id + "/station.jpg"
	putManifest(t, store, prefix, upload)
	orphan := prefix + "/0123456789abcdef0123456789abcdef/00000000-thumb.jpg"
	_, err := store.Put(t.Context(), objects.Object{Bucket: "media", Key: orphan, Data: []byte("x"), ContentType: "image/jpeg", CacheControl: "public, max-age=31536000, immutable"})
	require.NoError(t, err)
	workertest.Start(t, st, effects.ReconcileImages(store, nil, places.Places{TargetBucket: "media", UploadBuckets: []string{"uploads"}}), images.PhotoVariants(nil, nil))
	temporal := client.New(st.Dial(t), st.Namespace)
	workertest.WaitListed(t, temporal)
	c := console{address: st.Temporal, namespace: st.Namespace, env: map[string]string{"COLUMNS": "80"}}

	listed := c.ok(t, "images", "list", "--prefix", prefix)
	require.Contains(t, listed, "objects in their grace time")
	require.Contains(t, listed, "uploads of another recipe")
	require.Contains(t, listed, "2 objects; removed 0 objects (0 B), queued 0 jobs.\n")
	for line := range strings.Lines(listed) {
		require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 80, line)
	}
	var run jobsv1.Run
	require.NoError(t, protojson.Unmarshal([]byte(c.ok(t, "images", "list", "--prefix", prefix, "-o", "json")), &run))
	require.EqualValues(t, 1, run.GetCounts()["stale"])

	// What is young stays, and nobody is asked about it.
	require.Contains(t, c.ok(t, "images", "gc", "--prefix", prefix), "removed 0 objects")
	require.Contains(t, c.ok(t, "images", "gc", "--prefix", prefix, "--gone", "--replaced", "--grace", "PT10M", "--yes"), "removed 0 objects")
	_, err = store.Stat(t.Context(), "media", orphan)
	require.NoError(t, err)

	r := c.run(t.Context(), "images", "remake", "--prefix", prefix)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "there is no terminal to ask on: add --yes to do so")
	require.Contains(t, c.ok(t, "images", "remake", "--prefix", prefix, "--yes"), "queued 1 job.\n")
	stacktest.WaitFor(t, "the queued job", func() (bool, error) {
		runs, err := temporal.Runs.List(t.Context(), client.RunFilter{Queue: "images." + id})
		return len(runs) == 1, err
	})

	r = c.run(t.Context(), "images", "gc", "--grace", "PT1S", "--yes")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "grace")
}
