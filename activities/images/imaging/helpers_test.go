package imaging_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
)

// whole keeps a picture at its size.
var whole = imaging.Target{Side: 1 << 20}

func encodeJPEG(t testing.TB, img image.Image, quality int) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, jpeg.Encode(&out, img, &jpeg.Options{Quality: quality}))
	return out.Bytes()
}

func encodePNG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, png.Encode(&out, img))
	return out.Bytes()
}

// exif is a TIFF structure with an orientation and a place.
func exif(order binary.AppendByteOrder, orientation uint16) []byte {
	return imagingtest.EXIF{Orientation: orientation}.TIFF(order)
}

// withSegment inserts a marker segment after a JPEG's first two bytes.
func withSegment(file []byte, marker byte, payload []byte) []byte {
	out := append([]byte{}, file[:2]...)
	out = append(out, 0xff, marker)
	out = binary.BigEndian.AppendUint16(out, uint16(len(payload)+2))
	out = append(out, payload...)
	return append(out, file[2:]...)
}

func withEXIF(file []byte, order binary.AppendByteOrder, orientation uint16) []byte {
	return withSegment(file, 0xe1, append([]byte("Exif\x00\x00"), exif(order, orientation)...))
}

func withChunk(file []byte, kind string, body []byte) []byte {
	return imagingtest.WithChunk(file, kind, body)
}

// noise is a picture of independent samples, the hardest case for geometry.
func noise(t testing.TB, w, h int) *image.RGBA {
	t.Helper()
	random := seeded(t)
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = uint8(random.IntN(256))
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// scene is a picture with soft gradients and sharp edges, like a photo.
func scene(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			u, v := float64(x)/float64(w), float64(y)/float64(h)
			c := color.RGBA{
				R: uint8(255 * u),
				G: uint8(255 * v),
				B: uint8(127 + 120*math.Sin(12*u)*math.Cos(9*v)),
				A: 255,
			}
			if math.Hypot(u-0.3, v-0.4) < 0.15 {
				c = color.RGBA{R: 230, G: 40, B: 30, A: 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	return img
}

// psnr compares two pictures of the same size, in decibels.
func psnr(t testing.TB, a, b image.Image) float64 {
	t.Helper()
	require.Equal(t, a.Bounds().Size(), b.Bounds().Size())
	sum, n := 0.0, 0.0
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			r1, g1, b1, _ := a.At(a.Bounds().Min.X+x, a.Bounds().Min.Y+y).RGBA()
			r2, g2, b2, _ := b.At(b.Bounds().Min.X+x, b.Bounds().Min.Y+y).RGBA()
			for _, d := range []float64{float64(r1) - float64(r2), float64(g1) - float64(g2), float64(b1) - float64(b2)} {
				sum += d * d / (257 * 257)
				n++
			}
		}
	}
	if sum == 0 {
		return math.Inf(1)
	}
	return 10 * math.Log10(255*255*n/sum)
}

// decoded runs a file through Decode at its full size.
func decoded(t testing.TB, file []byte) *imaging.Picture {
	t.Helper()
	picture, err := imaging.Decode(t.Context(), file, imaging.DefaultLimits(), whole)
	require.NoError(t, err)
	return picture
}

// asPNG gives the pixels of a picture through its PNG encoder.
func asPNG(t testing.TB, picture *imaging.Picture) image.Image {
	t.Helper()
	file, err := picture.PNG()
	require.NoError(t, err)
	img, err := png.Decode(bytes.NewReader(file))
	require.NoError(t, err)
	return img
}

// asJPEG gives the pixels of a picture through its JPEG encoder.
func asJPEG(t testing.TB, picture *imaging.Picture, quality int) image.Image {
	t.Helper()
	file, err := picture.JPEG(quality)
	require.NoError(t, err)
	img, err := jpeg.Decode(bytes.NewReader(file))
	require.NoError(t, err)
	return img
}

func requireSamePixels(t testing.TB, want, got image.Image) {
	t.Helper()
	require.Equal(t, want.Bounds().Size(), got.Bounds().Size())
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			w := color.NRGBAModel.Convert(want.At(x, y))
			g := color.NRGBAModel.Convert(got.At(x, y))
			require.Equal(t, w, g, "pixel %d,%d", x, y)
		}
	}
}

var bigEndian = binary.BigEndian

func decodeStandard(t testing.TB, file []byte) image.Image {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(file))
	require.NoError(t, err)
	return img
}

func rgba(c color.Color) color.RGBA {
	r, g, b, a := c.RGBA()
	return color.RGBA{R: uint8(r >> 8), G: uint8(g >> 8), B: uint8(b >> 8), A: uint8(a >> 8)}
}

func nrgba(c color.Color) color.NRGBA {
	if n, ok := c.(color.NRGBA); ok {
		return n
	}
	r, g, b, a := c.RGBA()
	if a == 0 {
		return color.NRGBA{}
	}
	return color.NRGBA{R: uint8(r * 255 / a), G: uint8(g * 255 / a), B: uint8(b * 255 / a), A: uint8(a >> 8)}
}
