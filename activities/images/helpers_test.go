package images_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images"
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

// quadrants is a picture of four colors with some grain: red and green above,
// blue and yellow below.
func quadrants(t *testing.T, w, h int) *image.RGBA {
	t.Helper()
	random := stacktest.Random(t)
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := [4]color.RGBA{{R: 220, G: 30, B: 30}, {R: 30, G: 200, B: 30}, {R: 30, G: 30, B: 220}, {R: 220, G: 210, B: 30}}
			at := c[2*(2*y/h)+2*x/w]
			grain := uint8(random.IntN(16))
			img.SetRGBA(x, y, color.RGBA{R: at.R + grain, G: at.G + grain, B: at.B + grain, A: 255})
		}
	}
	return img
}

// requireQuadrants checks where the colors of quadrants are.
func requireQuadrants(t *testing.T, img image.Image) {
	t.Helper()
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	for i, want := range [4][3]uint32{{228, 38, 38}, {38, 208, 38}, {38, 38, 228}, {228, 218, 38}} {
		x, y := w/4+(i%2)*w/2, h/4+(i/2)*h/2
		r, g, b, _ := img.At(x, y).RGBA()
		for c, have := range [3]uint32{r >> 8, g >> 8, b >> 8} {
			require.InDelta(t, want[c], have, 14, "quadrant %d of %d×%d", i, w, h)
		}
	}
}

// storedTurned gives the pixels that a camera on its side stores for an upright
// picture, and EXIF orientation 6 turns back.
func storedTurned(upright *image.RGBA) *image.RGBA {
	w, h := upright.Rect.Dx(), upright.Rect.Dy()
	out := image.NewRGBA(image.Rect(0, 0, h, w))
	for y := range h {
		for x := range w {
			out.SetRGBA(y, w-1-x, upright.RGBAAt(x, y))
		}
	}
	return out
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
