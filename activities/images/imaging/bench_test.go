package imaging_test

import (
	"image"
	"image/color"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/draw"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
)

// photo is a JPEG of quality 90 that compresses like a photo: soft shapes and
// some grain.
func photo(tb testing.TB, w, h int) []byte {
	tb.Helper()
	small := scene(w/16, h/16)
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.BiLinear.Scale(img, img.Rect, small, small.Rect, draw.Src, nil)
	random := rand.New(rand.NewPCG(12, 0))
	for i := range img.Pix {
		if i%4 != 3 {
			img.Pix[i] = uint8(min(max(int(img.Pix[i])+random.IntN(17)-8, 0), 255))
		}
	}
	return encodeJPEG(tb, img, 90)
}

// photoVariants makes the variants of a photo of the default recipe.
func photoVariants(tb testing.TB, file []byte) {
	tb.Helper()
	sizes := []int{1080, 480, 240, 60}
	picture, err := imaging.Decode(tb.Context(), file, imaging.DefaultLimits(), imaging.Target{Side: sizes[0], Square: true})
	require.NoError(tb, err)
	for _, side := range sizes {
		if w, _ := picture.Size(); w != side {
			picture = picture.Resize(side, side)
		}
		_, err := picture.JPEG(82)
		require.NoError(tb, err)
	}
}

func benchmarkVariants(b *testing.B, w, h int, change func([]byte) []byte) {
	b.Helper()
	file := change(photo(b, w, h))
	b.ReportAllocs()
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		photoVariants(b, file)
	}
}

func asIs(file []byte) []byte { return file }

func BenchmarkPhotoVariants12MP(b *testing.B) { benchmarkVariants(b, 4000, 3000, asIs) }

func BenchmarkPhotoVariants24MP(b *testing.B) { benchmarkVariants(b, 6000, 4000, asIs) }

func BenchmarkPhotoVariants12MPTurned(b *testing.B) {
	benchmarkVariants(b, 4000, 3000, func(file []byte) []byte { return withEXIF(file, bigEndian, 6) })
}

func BenchmarkPhotoVariants12MPDisplayP3(b *testing.B) {
	icc := profile(displayP3, sRGBCurve())
	benchmarkVariants(b, 4000, 3000, func(file []byte) []byte {
		return withSegment(file, 0xe2, append([]byte("ICC_PROFILE\x00\x01\x01"), icc...))
	})
}

func BenchmarkPhotoVariants48MP(b *testing.B) { benchmarkVariants(b, 8000, 6000, asIs) }

// BenchmarkLogoVariants makes the default recipe of a logo of 2000×2000 pixels.
func BenchmarkLogoVariants(b *testing.B) {
	logo := image.NewNRGBA(image.Rect(0, 0, 2000, 2000))
	draw.DrawMask(logo, logo.Rect, scene(2000, 2000), image.Point{}, image.NewUniform(color.Alpha{A: 200}), image.Point{}, draw.Src)
	file := encodePNG(b, logo)
	b.ReportAllocs()
	for b.Loop() {
		picture, err := imaging.Decode(b.Context(), file, imaging.DefaultLimits(), imaging.Target{Side: 512})
		require.NoError(b, err)
		for _, side := range []int{512, 128, 64} {
			picture = picture.Resize(side, side)
			_, err := picture.PNG()
			require.NoError(b, err)
		}
	}
}

// BenchmarkDecode12MP is the standard decoder alone: the part that no resampler
// can save.
func BenchmarkDecode12MP(b *testing.B) {
	file := photo(b, 4000, 3000)
	b.ReportAllocs()
	for b.Loop() {
		decodeStandard(b, file)
	}
}

// BenchmarkNaive12MP is the way of most programs: every variant from the full
// picture, through golang.org/x/image/draw.
func BenchmarkNaive12MP(b *testing.B) {
	file := photo(b, 4000, 3000)
	b.ReportAllocs()
	for b.Loop() {
		full := decodeStandard(b, file)
		square := image.Rect(500, 0, 3500, 3000)
		for _, side := range []int{1080, 480, 240, 60} {
			out := image.NewRGBA(image.Rect(0, 0, side, side))
			draw.CatmullRom.Scale(out, out.Rect, full, square, draw.Src, nil)
			encodeJPEG(b, out, 82)
		}
	}
}

func BenchmarkRefuseBomb(b *testing.B) {
	file := imagingtest.Bomb()
	for b.Loop() {
		_, err := imaging.Decode(b.Context(), file, imaging.DefaultLimits(), whole)
		require.Error(b, err)
	}
}
