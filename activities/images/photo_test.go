package images_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/jpeg"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
	"github.com/dendrascience/dendra-jobs/internal/objects"
	"github.com/dendrascience/dendra-jobs/internal/objects/objectstest"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// The main case: 12 megapixels from a camera on its side.
func TestPhotoOfTwelveMegapixels(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.PhotoVariants(store, pictures)
	upload(t, store, "12mp.jpg", imagingtest.EXIF{Orientation: 6}.InJPEG(encodeJPEG(t, imagingtest.Upright(quadrants(t, 3000, 4000), 8))))
	spec := images.PhotoSpec{Bucket: "uploads", Key: "12mp.jpg", Prefix: "twelve"}

	run := newRun(typ, spec)
	result, err := typ.Handle(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, "4 variants written", result.Message)
	require.Equal(t, int64(4), result.Counts["written"])
	require.Equal(t, int64(0), result.Counts["existing"])
	checkpoints := run.Checkpoints()
	require.Equal(t, job.Progress{Done: 4, Total: 4, Message: "thumb 60×60 written"}, checkpoints[len(checkpoints)-1].Progress)

	var output images.Output
	require.NoError(t, json.Unmarshal(result.Output, &output))
	require.Equal(t, "media", output.Bucket)
	sizes := map[string]int{"thumb": 60, "small": 240, "medium": 480, "large": 1080}
	require.Len(t, output.Variants, len(sizes))
	for _, v := range output.Variants {
		data, info := get(t, store, v.Key)
		require.Equal(t, "image/jpeg", info.ContentType)
		require.Equal(t, "public, max-age=31536000, immutable", info.CacheControl)
		require.Equal(t, v.SHA256, objects.Hash(data))
		require.Equal(t, v.Bytes, int64(len(data)))
		img, err := jpeg.Decode(bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, image.Pt(sizes[v.Name], sizes[v.Name]), img.Bounds().Size())
		require.Equal(t, image.Pt(v.Width, v.Height), img.Bounds().Size())
		imagingtest.RequireQuadrants(t, img)
		require.NotContains(t, string(data), "Exif")
		require.NotContains(t, string(data), imagingtest.Place)
	}
	text, _ := get(t, store, output.Manifest)
	var manifest images.Manifest
	require.NoError(t, json.Unmarshal(text, &manifest))
	require.Equal(t, output.Variants, manifest.Variants)
	require.Equal(t, "dendra.image-variants/1", manifest.Format)
	require.Equal(t, []int{3000, 4000, 6}, []int{manifest.Source.Width, manifest.Source.Height, manifest.Source.Orientation})
	require.Equal(t, "12mp.jpg", manifest.Source.Key)

	before := keysUnder(t, store, "twelve")
	require.Len(t, before, 5)
	again := newRun(typ, spec)
	result, err = typ.Handle(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, "4 variants already there, nothing written", result.Message)
	require.Equal(t, map[string]int64{"written": 0, "existing": 4, "manifests_written": 0, "other_recipes": 0, "same_content": 0, "source_bytes": manifest.Source.Bytes}, result.Counts)
	require.JSONEq(t, string(job.EncodeJSON(output)), string(result.Output))
	require.Empty(t, again.Checkpoints(), "nothing was decoded")
	require.Equal(t, before, keysUnder(t, store, "twelve"))
}

func TestSmallPhotoIsNotEnlarged(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	upload(t, store, "small.png", encodePNG(t, quadrants(t, 300, 200)))
	_, output := handle(t, images.PhotoVariants(store, pictures), images.PhotoSpec{Bucket: "uploads", Key: "small.png", Prefix: "small-photo"})
	for i, side := range []int{60, 200, 200, 200} {
		data, _ := get(t, store, output.Variants[i].Key)
		img, err := jpeg.Decode(bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, image.Pt(side, side), img.Bounds().Size())
		require.Equal(t, side, output.Variants[i].Width)
	}
}

func TestRecipeOfItsOwn(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.PhotoVariants(store, pictures)
	upload(t, store, "recipe.jpg", encodeJPEG(t, quadrants(t, 600, 500)))
	spec := images.PhotoSpec{
		Bucket: "uploads", Key: "recipe.jpg", Prefix: "recipes/a",
		Variants: []images.PhotoVariant{{Name: "thumb_2x", Size: 120}, {Name: "rough", Size: 400, Quality: 20}, {Name: "fine", Size: 400, Quality: 95}},
	}
	_, output := handle(t, typ, spec)
	require.Equal(t, []string{"thumb_2x", "rough", "fine"}, []string{output.Variants[0].Name, output.Variants[1].Name, output.Variants[2].Name})
	require.Less(t, output.Variants[1].Bytes, output.Variants[2].Bytes)

	spec.Variants[0].Size = 121
	result, other := handle(t, typ, spec)
	require.Equal(t, "3 variants written; 4 objects of other recipes stay", result.Message, "another recipe has other keys")
	require.NotEqual(t, output.Manifest, other.Manifest)
}

// A run that ends after two variants is finished by the next attempt, with the
// objects of a run that was not disturbed.
func TestStoppedRunGoesOn(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.PhotoVariants(store, pictures)
	upload(t, store, "stopped.jpg", encodeJPEG(t, quadrants(t, 1500, 1200)))
	spec := images.PhotoSpec{Bucket: "uploads", Key: "stopped.jpg", Prefix: "stopped"}

	first := newRun(typ, spec, jobtest.OnCheckpoint(func(r *jobtest.Run, c jobtest.Checkpoint) {
		if c.Progress.Done == 2 {
			r.Stop()
		}
	}))
	_, err := typ.Handle(t.Context(), first)
	require.ErrorIs(t, err, job.ErrStopped)
	require.Len(t, keysUnder(t, store, "stopped"), 2, "two variants and no manifest")

	result, err := typ.Handle(t.Context(), first.NextAttempt())
	require.NoError(t, err)
	require.Equal(t, "2 variants written, 2 already there", result.Message)

	var resumed images.Output
	require.NoError(t, json.Unmarshal(result.Output, &resumed))
	spec.Prefix = "undisturbed"
	_, undisturbed := handle(t, typ, spec)
	for i, v := range undisturbed.Variants {
		require.Equal(t, v.SHA256, resumed.Variants[i].SHA256, v.Name)
	}
}

// However many workers do the same at once, each object is written once.
func TestManyRunsAtOnce(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.PhotoVariants(store, pictures)
	upload(t, store, "many.jpg", encodeJPEG(t, quadrants(t, 700, 700)))
	spec := images.PhotoSpec{Bucket: "uploads", Key: "many.jpg", Prefix: "many"}
	results := make([]job.Result, 6)
	errs := make([]error, len(results))
	var wait sync.WaitGroup
	for i := range results {
		wait.Go(func() { results[i], errs[i] = typ.Handle(t.Context(), newRun(typ, spec)) })
	}
	wait.Wait()
	written, manifests := int64(0), int64(0)
	for i, result := range results {
		require.NoError(t, errs[i])
		written += result.Counts["written"]
		manifests += result.Counts["manifests_written"]
		require.JSONEq(t, string(results[0].Output), string(result.Output))
	}
	require.Equal(t, int64(4), written)
	require.Equal(t, int64(1), manifests)
	require.Len(t, keysUnder(t, store, "many"), 5)
}

func TestSameContentUnderTwoKeys(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.PhotoVariants(store, pictures)
	file := encodeJPEG(t, quadrants(t, 400, 300))
	upload(t, store, "twin/a.jpg", file)
	upload(t, store, "twin/b.jpg", file)
	_, a := handle(t, typ, images.PhotoSpec{Bucket: "uploads", Key: "twin/a.jpg", Prefix: "twins"})
	result, b := handle(t, typ, images.PhotoSpec{Bucket: "uploads", Key: "twin/b.jpg", Prefix: "twins"})
	require.Equal(t, "4 variants already there, manifest written; other uploads of the same content: 1", result.Message)
	require.Equal(t, a.Variants, b.Variants)
	require.NotEqual(t, a.Manifest, b.Manifest)
}

// What a version with another encoder stored under a key stays.
func TestStoredVariantWins(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.PhotoVariants(store, pictures)
	upload(t, store, "wins.jpg", encodeJPEG(t, quadrants(t, 400, 300)))
	spec := images.PhotoSpec{Bucket: "uploads", Key: "wins.jpg", Prefix: "wins"}
	_, output := handle(t, typ, spec)

	other := objects.Object{Bucket: "media", Key: output.Variants[1].Key, Data: []byte("from another encoder"), ContentType: "image/jpeg"}
	_, err := store.Put(t.Context(), other)
	require.NoError(t, err)
	result, again := handle(t, typ, spec)
	require.Equal(t, "4 variants already there, manifest written", result.Message)
	require.Equal(t, objects.Hash(other.Data), again.Variants[1].SHA256)
	text, _ := get(t, store, again.Manifest)
	require.Contains(t, string(text), objects.Hash(other.Data), "the manifest tells what is stored")
	result, _ = handle(t, typ, spec)
	require.Equal(t, "4 variants already there, nothing written", result.Message)
}

func TestDamagedManifestIsReplaced(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.PhotoVariants(store, pictures)
	upload(t, store, "damaged.jpg", encodeJPEG(t, quadrants(t, 400, 300)))
	spec := images.PhotoSpec{Bucket: "uploads", Key: "damaged.jpg", Prefix: "damaged"}
	_, output := handle(t, typ, spec)
	intact, _ := get(t, store, output.Manifest)
	_, err := store.Put(t.Context(), objects.Object{Bucket: "media", Key: output.Manifest, Data: []byte("{"), ContentType: "application/json"})
	require.NoError(t, err)
	handle(t, typ, spec)
	repaired, _ := get(t, store, output.Manifest)
	require.Equal(t, string(intact), string(repaired))
}

// TestVariantThatIsRemovedMeanwhile: upkeep removes a variant that no manifest names yet, and the
// run makes it again.
func TestVariantThatIsRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	s3 := stacktest.Start(t).S3
	proxy := objectstest.NewProxy(t, s3.Endpoint)
	direct := openStore(t)
	upload(t, direct, "meanwhile.png", encodePNG(t, quadrants(t, 90, 90)))
	spec := images.PhotoSpec{Bucket: "uploads", Key: "meanwhile.png", Prefix: "meanwhile"}
	_, output := handle(t, images.PhotoVariants(direct, pictures), spec)
	require.NoError(t, direct.Remove(t.Context(), "media", output.Manifest))
	var once sync.Once
	var removed error
	proxy.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			once.Do(func() { removed = direct.Remove(t.Context(), "media", output.Variants[2].Key) })
		}
		return false
	})
	s3.Endpoint = proxy.URL
	typ := images.PhotoVariants(objectstest.Open(t, s3), pictures)
	run := newRun(typ, spec)
	_, err := typ.Handle(t.Context(), run)
	require.NoError(t, removed)
	jobtest.RequireFailure(t, err, errclass.ObjectMissing, false, output.Variants[2].Key, "was removed before the manifest named it")
	result, err := typ.Handle(t.Context(), run.NextAttempt())
	require.NoError(t, err)
	require.Equal(t, "1 variants written, 3 already there", result.Message)
	require.Len(t, keysUnder(t, direct, "meanwhile"), 5)
}
