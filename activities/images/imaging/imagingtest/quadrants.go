package imagingtest

import (
	"image"
	"image/color"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// colors of [Quadrants]: above left and right, below left and right.
var colors = [4]color.RGBA{{R: 220, G: 30, B: 30}, {R: 30, G: 200, B: 30}, {R: 30, G: 30, B: 220}, {R: 220, G: 210, B: 30}}

// grain is how much a pixel of [Quadrants] may be brighter than its color.
const grain = 15

// Quadrants is a picture of four colors, red and green above, blue and yellow below, with grain
// that makes its file one of its own.
func Quadrants(random *rand.Rand, w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		row := img.Pix[y*img.Stride:]
		for x := range w {
			c, brighter := colors[2*(2*y/h)+2*x/w], uint8(random.Uint32N(grain+1))
			row[4*x], row[4*x+1], row[4*x+2], row[4*x+3] = c.R+brighter, c.G+brighter, c.B+brighter, 255
		}
	}
	return img
}

// RequireQuadrants checks where the colors of [Quadrants] are, in a picture of 36 pixels and more
// each way: the mean around the middle of each, as one pixel has grain and what JPEG adds to it.
func RequireQuadrants(t testing.TB, img image.Image) {
	t.Helper()
	const around, pixels = 4, 9 * 9
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	for i, c := range colors {
		middle := image.Pt(w/4+(i%2)*w/2, h/4+(i/2)*h/2)
		var mean [3]float64
		for y := middle.Y - around; y <= middle.Y+around; y++ {
			for x := middle.X - around; x <= middle.X+around; x++ {
				r, g, b, _ := img.At(x, y).RGBA()
				for channel, value := range [3]uint32{r >> 8, g >> 8, b >> 8} {
					mean[channel] += float64(value) / pixels
				}
			}
		}
		want := []float64{float64(c.R) + grain/2., float64(c.G) + grain/2., float64(c.B) + grain/2.}
		require.InDeltaSlice(t, want, mean[:], 6, "quadrant %d of %d×%d", i, w, h)
	}
}
