package imaging_test

import (
	"encoding/binary"
	"fmt"
	"image"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
)

func upright(stored *image.RGBA, orientation uint16) *image.RGBA {
	return imagingtest.Upright(stored, orientation)
}

func TestOrientationsArePixelExact(t *testing.T) {
	t.Parallel()
	for size, orders := range map[image.Point][]binary.AppendByteOrder{
		{X: 70, Y: 41}: {binary.BigEndian}, {X: 33, Y: 64}: {binary.LittleEndian}, {X: 1, Y: 5}: {binary.BigEndian, binary.LittleEndian},
	} {
		stored := noise(t, size.X, size.Y)
		for orientation := uint16(1); orientation <= 8; orientation++ {
			for _, order := range orders {
				file := withChunk(encodePNG(t, stored), "eXIf", exif(order, orientation))
				want := upright(stored, orientation)
				info, err := imaging.Inspect(file, imaging.DefaultLimits())
				require.NoError(t, err)
				require.Equal(t, want.Rect.Size(), image.Pt(info.Width, info.Height))
				requireSamePixels(t, want, asPNG(t, decoded(t, file)))
				square := imaging.Target{Side: 1000, Square: true}
				requireSamePixels(t, variant(t, encodePNG(t, want), square), variant(t, file, square))
			}
		}
	}
}

// A gray JPEG has one plane and no chroma, so that its pixels compare exactly
// with those of the standard decoder.
func TestOrientationsOfJPEGArePixelExact(t *testing.T) {
	t.Parallel()
	noisy := noise(t, 50, 37)
	gray := image.NewGray(noisy.Rect)
	stored := image.NewRGBA(noisy.Rect)
	for y := range 37 {
		for x := range 50 {
			gray.Set(x, y, noisy.At(x, y))
		}
	}
	file := encodeJPEG(t, gray, 90)
	plain := asPNG(t, decoded(t, file))
	for y := range 37 {
		for x := range 50 {
			stored.Set(x, y, plain.At(x, y))
		}
	}
	for orientation := uint16(1); orientation <= 8; orientation++ {
		got := asPNG(t, decoded(t, withEXIF(file, binary.BigEndian, orientation)))
		requireSamePixels(t, upright(stored, orientation), got)
	}
}

// With chroma at half the resolution, odd sizes, early reduction and a square
// crop, an upright file and a turned one must look the same.
func TestOrientationsOfReducedColorJPEG(t *testing.T) {
	t.Parallel()
	inverse := map[uint16]uint16{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 8, 7: 7, 8: 6}
	for _, size := range []image.Point{{X: 640, Y: 480}, {X: 643, Y: 487}, {X: 322, Y: 641}} {
		picture := scene(size.X, size.Y)
		for _, side := range []int{100, 75} {
			target := imaging.Target{Side: side, Square: true}
			want := variant(t, encodeJPEG(t, picture, 95), target)
			for orientation := uint16(1); orientation <= 8; orientation++ {
				t.Run(fmt.Sprintf("%dx%d to %d, orientation %d", size.X, size.Y, side, orientation), func(t *testing.T) {
					t.Parallel()
					file := withEXIF(encodeJPEG(t, upright(picture, inverse[orientation]), 95), binary.BigEndian, orientation)
					require.Greater(t, psnr(t, want, variant(t, file, target)), 40.0)
				})
			}
		}
	}
}

// variant makes what the target asks for, through the PNG encoder.
func variant(t testing.TB, file []byte, target imaging.Target) image.Image {
	t.Helper()
	picture, err := imaging.Decode(t.Context(), file, imaging.DefaultLimits(), target)
	require.NoError(t, err)
	return asPNG(t, picture)
}
