package imaging_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/draw"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

func TestTargetSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target     imaging.Target
		w, h       int
		outW, outH int
	}{
		{imaging.Target{Side: 60, Square: true}, 4000, 3000, 60, 60},
		{imaging.Target{Side: 1080, Square: true}, 4000, 900, 900, 900},
		{imaging.Target{Side: 60, Square: true}, 1, 3000, 1, 1},
		{imaging.Target{Side: 64}, 512, 256, 64, 32},
		{imaging.Target{Side: 64}, 256, 512, 32, 64},
		{imaging.Target{Side: 64}, 64, 20, 64, 20},
		{imaging.Target{Side: 64}, 30, 20, 30, 20},
		{imaging.Target{Side: 64}, 10_000, 1, 64, 1},
	} {
		w, h := c.target.Size(c.w, c.h)
		require.Equal(t, []int{c.outW, c.outH}, []int{w, h}, "%+v of %d×%d", c.target, c.w, c.h)
	}
}

// The resampler is held against another implementation of the same filter.
func TestResizeAgreesWithReference(t *testing.T) {
	t.Parallel()
	source := scene(280, 200)
	picture := decoded(t, encodePNG(t, source))
	for _, size := range []image.Point{{X: 140, Y: 100}, {X: 121, Y: 87}, {X: 36, Y: 26}, {X: 279, Y: 199}} {
		want := image.NewRGBA(image.Rectangle{Max: size})
		draw.CatmullRom.Scale(want, want.Rect, source, source.Rect, draw.Src, nil)
		require.Greater(t, psnr(t, want, asPNG(t, picture.Resize(size.X, size.Y))), 48.0, "%v", size)
	}
}

// What the early reduction by blocks costs in quality.
func TestEarlyReductionKeepsQuality(t *testing.T) {
	t.Parallel()
	file := encodeJPEG(t, scene(1000, 750), 95)
	full, err := imaging.Decode(t.Context(), file, imaging.DefaultLimits(), imaging.Target{Side: 750, Square: true})
	require.NoError(t, err)
	for _, side := range []int{187, 180, 93, 60, 20} {
		want := asPNG(t, full.Resize(side, side))
		got := variant(t, file, imaging.Target{Side: side, Square: true})
		require.Greater(t, psnr(t, want, got), 42.0, "side %d", side)
	}
}

func TestSquareIsTheMiddle(t *testing.T) {
	t.Parallel()
	img := image.NewRGBA(image.Rect(0, 0, 90, 30))
	for y := range 30 {
		for x := range 90 {
			c := color.RGBA{R: 255, A: 255}
			if x >= 30 && x < 60 {
				c = color.RGBA{G: 255, A: 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	got := variant(t, encodePNG(t, img), imaging.Target{Side: 200, Square: true})
	require.Equal(t, image.Pt(30, 30), got.Bounds().Size())
	for y := range 30 {
		for x := range 30 {
			require.Equal(t, color.NRGBA{G: 255, A: 255}, color.NRGBAModel.Convert(got.At(x, y)))
		}
	}
}

func TestFlatColorStaysFlat(t *testing.T) {
	t.Parallel()
	for _, side := range []int{1, 2, 3, 17, 60, 119, 120} {
		img := image.NewRGBA(image.Rect(0, 0, 133, 120))
		draw.Draw(img, img.Rect, image.NewUniform(color.RGBA{R: 12, G: 200, B: 99, A: 255}), image.Point{}, draw.Src)
		got := asPNG(t, decoded(t, encodePNG(t, img)).Resize(side, side))
		for y := range side {
			for x := range side {
				require.Equal(t, color.NRGBA{R: 12, G: 200, B: 99, A: 255}, color.NRGBAModel.Convert(got.At(x, y)))
			}
		}
	}
}

// JPEG to JPEG at odd sizes goes through planes alone; a shift of the chroma
// against the luma would show.
func TestJPEGThroughPlanes(t *testing.T) {
	t.Parallel()
	source := scene(403, 301)
	file := encodeJPEG(t, source, 97)
	picture := decoded(t, file)
	for _, size := range []image.Point{{X: 403, Y: 301}, {X: 201, Y: 151}, {X: 134, Y: 100}, {X: 67, Y: 51}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			want := image.NewRGBA(image.Rectangle{Max: size})
			draw.CatmullRom.Scale(want, want.Rect, source, source.Rect, draw.Src, nil)
			encoded, err := jpeg.Decode(bytes.NewReader(encodeJPEG(t, want, 97)))
			require.NoError(t, err)
			best := psnr(t, want, encoded) // what any 4:2:0 file can reach
			t.Logf("best %.1f dB, JPEG %.1f dB, PNG %.1f dB", best,
				psnr(t, want, asJPEG(t, picture.Resize(size.X, size.Y), 97)), psnr(t, want, asPNG(t, picture.Resize(size.X, size.Y))))
			require.Greater(t, psnr(t, want, asJPEG(t, picture.Resize(size.X, size.Y), 97)), best-1.5)
			require.Greater(t, psnr(t, want, asPNG(t, picture.Resize(size.X, size.Y))), best-1.5)
		})
	}
}
