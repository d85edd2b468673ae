package images_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/webp"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/job/jobtest"
)

// A page is written of the manifest alone.
func TestResponsivePhoto(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	upload(t, store, "wide.jpg", encodeJPEG(t, quadrants(t, 1500, 1000)))
	_, output := handle(t, images.PhotoVariants(store, pictures), images.PhotoSpec{Bucket: "uploads", Key: "wide.jpg", Prefix: "responsive", Ladder: "responsive"})
	text, _ := get(t, store, output.Manifest)
	var manifest images.Manifest
	require.NoError(t, json.Unmarshal(text, &manifest))

	folder := "responsive/" + manifest.Source.SHA256[:32] + "/"
	sizes := map[string][2]int{}
	byName := map[string]images.Variant{}
	for _, v := range manifest.Variants {
		sizes[v.Name], byName[v.Name] = [2]int{v.Width, v.Height}, v
		require.Contains(t, v.Key, folder)
	}
	require.Equal(t, map[string][2]int{
		"w320": {320, 213}, "w640": {640, 427}, "w1024": {1024, 683}, "w1600": {1500, 1000}, "w2048": {1500, 1000}, "thumb": {120, 120},
	}, sizes)
	// Two variants of one width are one candidate.
	require.Equal(t, fmt.Sprintf("%s 320w, %s 640w, %s 1024w, %s 1500w",
		byName["w320"].Key, byName["w640"].Key, byName["w1024"].Key, byName["w1600"].Key), manifest.SrcSet["image/jpeg"])
}

func TestVariantsThatContradictThemselves(t *testing.T) {
	t.Parallel()
	typ := images.PhotoVariants(nil, nil)
	for variant, want := range map[string]string{
		`{"name":"a"}`:                                                     "variants.0: size, or width or height, is missing",
		`{"name":"a","size":10,"width":10}`:                                "variants.0: size is of a square, and goes with neither width, height nor fit",
		`{"name":"a","size":10,"fit":"cover"}`:                             "variants.0: size is of a square, and goes with neither width, height nor fit",
		`{"name":"a","width":10,"fit":"cover"}`:                            "variants.0: cover needs width and height",
		`{"name":"a","width":10,"focus":{"x":0,"y":0}}`:                    "variants.0: focus is for size and cover: inside cuts nothing off",
		`{"name":"a","size":10,"focus":{"x":2,"y":0}}`:                     "focus.x",
		`{"name":"a","width":10,"focus_on":"entropy"}`:                     "variants.0: focus is for size and cover: inside cuts nothing off",
		`{"name":"a","size":10,"focus_on":"faces"}`:                        "focus_on",
		`{"name":"a","size":9,"focus":{"x":0,"y":0},"focus_on":"entropy"}`: "variants.0: focus names a point, and focus_on has it found: give one of them",
		`{"name":"a","width":10,"height":10,"fit":"fill"}`:                 "fit",
	} {
		require.ErrorContains(t, jobtest.CheckSpec(typ, `{"bucket":"u","key":"k","variants":[`+variant+`]}`), want, variant)
	}
	require.ErrorContains(t, jobtest.CheckSpec(typ, `{"bucket":"u","key":"k","ladder":"release2","variants":[{"name":"a","size":1}]}`),
		"ladder: it names the variants, and variants lists others: give one of them")
	require.ErrorContains(t, jobtest.CheckSpec(typ, `{"bucket":"u","key":"k","ladder":"step"}`), "ladder")
	require.NoError(t, jobtest.CheckSpec(typ, `{"bucket":"u","key":"k","variants":[{"name":"a","width":800,"height":300,"fit":"cover","focus":{"x":0.5,"y":0.2}}]}`))
}

// A variant in WebP is a candidate of a srcset of its own.
func TestWebPVariant(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	upload(t, store, "formats.jpg", encodeJPEG(t, quadrants(t, 300, 200)))
	_, output := handle(t, images.PhotoVariants(store, pictures), images.PhotoSpec{Bucket: "uploads", Key: "formats.jpg", Prefix: "formats", Quality: 82,
		Variants: []images.PhotoVariant{{Name: "a", Width: 150}, {Name: "b", Width: 150, Format: "webp"}}})
	text, _ := get(t, store, output.Manifest)
	var manifest images.Manifest
	require.NoError(t, json.Unmarshal(text, &manifest))
	key := output.Variants[1].Key
	require.Equal(t, map[string]string{"image/jpeg": output.Variants[0].Key + " 150w", "image/webp": key + " 150w"}, manifest.SrcSet)
	data, info := get(t, store, key)
	require.Equal(t, "image/webp", info.ContentType)
	require.Regexp(t, `\.webp$`, key)
	config, err := webp.DecodeConfig(bytes.NewReader(data))
	require.NoError(t, err)
	require.Equal(t, [2]int{150, 100}, [2]int{config.Width, config.Height})
}

// Release 2 had seven sizes.
func TestLadderOfRelease2(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	upload(t, store, "seven.jpg", encodeJPEG(t, quadrants(t, 1200, 1100)))
	_, output := handle(t, images.PhotoVariants(store, pictures), images.PhotoSpec{Bucket: "uploads", Key: "seven.jpg", Prefix: "seven", Ladder: "release2"})
	sizes := map[string]int{}
	for _, v := range output.Variants {
		require.Equal(t, v.Width, v.Height)
		sizes[v.Name] = v.Width
	}
	require.Equal(t, map[string]int{"thumb": 60, "thumb_2x": 120, "small": 240, "small_2x": 480, "medium": 480, "medium_2x": 960, "large": 1080}, sizes)
	require.Empty(t, output.Notes)
}

// What the variants do not show as their maker meant it is told in result and manifest.
func TestNotesOfAProfileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	file := withProfile(encodeJPEG(t, quadrants(t, 90, 60)), append(make([]byte, 16), []byte("RGB XYZ ............acsp")...))
	upload(t, store, "broken.jpg", file)
	_, output := handle(t, images.PhotoVariants(store, pictures), images.PhotoSpec{Bucket: "uploads", Key: "broken.jpg", Prefix: "broken"})
	require.Equal(t, []string{"the color profile cannot be read, and is not applied"}, output.Notes)
	text, _ := get(t, store, output.Manifest)
	var manifest images.Manifest
	require.NoError(t, json.Unmarshal(text, &manifest))
	require.Equal(t, output.Notes, manifest.Notes)
}

// withProfile puts an ICC profile into a JPEG, in one APP2 segment (ICC.1:2022, B.4).
func withProfile(file, profile []byte) []byte {
	body := append([]byte("ICC_PROFILE\x00\x01\x01"), profile...)
	segment := append([]byte{0xff, 0xe2, byte((len(body) + 2) >> 8), byte(len(body) + 2)}, body...)
	return append(append(append([]byte{}, file[:2]...), segment...), file[2:]...)
}
