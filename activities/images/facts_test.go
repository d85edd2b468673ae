package images_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
	"github.com/dendrascience/dendra-jobs/internal/objects"
)

func readManifest(t *testing.T, store *objects.Store, key string) (m images.Manifest, text string) {
	t.Helper()
	data, _ := get(t, store, key)
	require.NoError(t, json.Unmarshal(data, &m))
	return m, string(data)
}

// The manifest has the time of the photo and how it looks, its rights if they are asked for, and
// never the place.
func TestFactsOfAPhoto(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.PhotoVariants(store, pictures)
	exif := imagingtest.EXIF{Orientation: 1, Taken: "2026:07:08 09:10:11", Offset: "-07:00", Artist: "Ann Example", Copyright: "© Station 42"}
	upload(t, store, "facts.jpg", exif.InJPEG(encodeJPEG(t, quadrants(t, 600, 400))))
	spec := images.PhotoSpec{Bucket: "uploads", Key: "facts.jpg", Prefix: "facts"}
	result, output := handle(t, typ, spec)
	manifest, text := readManifest(t, store, output.Manifest)
	require.Equal(t, "2026-07-08T09:10:11-07:00", manifest.Source.Taken)
	require.NotNil(t, manifest.Look)
	require.Regexp(t, "^#[0-9a-f]{6}$", manifest.Look.Color)
	require.Regexp(t, "^[0-9a-f]{16}$", manifest.Look.Hash)
	hash, err := base64.StdEncoding.DecodeString(manifest.Look.ThumbHash)
	require.NoError(t, err)
	require.Less(t, len(hash), 30)
	for _, private := range []string{imagingtest.Place, exif.Artist, exif.Copyright} {
		require.NotContains(t, text, private)
		require.NotContains(t, string(result.Output), private)
	}

	spec.Rights = true
	result, output = handle(t, typ, spec)
	require.Equal(t, "4 variants already there, manifest written", result.Message)
	withRights, text := readManifest(t, store, output.Manifest)
	require.Equal(t, []string{exif.Artist, exif.Copyright}, []string{withRights.Source.Artist, withRights.Source.Copyright})
	require.Equal(t, manifest.Look, withRights.Look)
	require.NotContains(t, text, imagingtest.Place)
	for _, v := range output.Variants {
		data, _ := get(t, store, v.Key)
		for _, private := range []string{imagingtest.Place, exif.Artist, exif.Copyright, "Exif"} {
			require.NotContains(t, string(data), private)
		}
	}
	result, _ = handle(t, typ, spec)
	require.Equal(t, "4 variants already there, nothing written", result.Message)
}

// A focus that is found is part of the recipe, and of no other one.
func TestFocusOnIsPartOfTheRecipe(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.PhotoVariants(store, pictures)
	upload(t, store, "focus.jpg", encodeJPEG(t, quadrants(t, 400, 200)))
	spec := images.PhotoSpec{Bucket: "uploads", Key: "focus.jpg", Prefix: "focus", Variants: []images.PhotoVariant{{Name: "square", Size: 100}}}
	_, output := handle(t, typ, spec)
	middle, text := readManifest(t, store, output.Manifest)
	require.NotContains(t, text, "focus_on")
	spec.Variants[0].FocusOn = imaging.Entropy
	_, output = handle(t, typ, spec)
	found, text := readManifest(t, store, output.Manifest)
	require.Contains(t, text, `"focus_on": "entropy"`)
	require.NotEqual(t, middle.Variants[0].Key, found.Variants[0].Key)
}
