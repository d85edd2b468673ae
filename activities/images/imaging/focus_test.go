package imaging_test

import (
	"image"
	"image/color"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/draw"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// The crop keeps the part in which something is to be seen.
func TestFocusOnEntropy(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	// dense is a picture of soft sky with detail in a rectangle, all of it red.
	dense := func(size image.Point, detail image.Rectangle) *image.RGBA {
		img := image.NewRGBA(image.Rectangle{Max: size})
		for y := range size.Y {
			for x := range size.X {
				c := color.RGBA{R: 60, G: uint8(90 + 90*y/size.Y), B: uint8(140 + 90*x/size.X), A: 255}
				if (image.Point{X: x, Y: y}).In(detail) {
					c = color.RGBA{R: uint8(140 + random.IntN(116)), G: uint8(random.IntN(90)), A: 255}
				}
				img.SetRGBA(x, y, c)
			}
		}
		return img
	}
	redness := func(img image.Image) (share float64) {
		size := img.Bounds().Size()
		for y := range size.Y {
			for x := range size.X {
				if c := rgba(img.At(x, y)); int(c.R) > int(c.B)+30 {
					share++
				}
			}
		}
		return share / float64(size.X*size.Y)
	}
	for name, c := range map[string]struct {
		size   image.Point
		detail image.Rectangle
	}{
		"right":         {image.Pt(900, 300), image.Rect(650, 40, 850, 260)},
		"left edge":     {image.Pt(900, 300), image.Rect(0, 0, 200, 300)},
		"a third":       {image.Pt(900, 300), image.Rect(180, 60, 330, 280)},
		"below":         {image.Pt(300, 900), image.Rect(20, 640, 260, 860)},
		"upper edge":    {image.Pt(300, 900), image.Rect(0, 0, 300, 220)},
		"small picture": {image.Pt(60, 20), image.Rect(45, 3, 57, 18)},
	} {
		side := min(c.size.X, c.size.Y)
		img := dense(c.size, c.detail)
		// All of the detail is in the crop.
		want := float64(c.detail.Dx()*c.detail.Dy()) / float64(side*side)
		output := imaging.Wanted{Width: side, Height: side, Fit: imaging.Cover, FocusOn: imaging.Entropy, Format: imaging.PNG}
		made := all(t, engine, encodePNG(t, img), output)[0]
		require.InDelta(t, want, redness(decodePNG(t, made)), 0.03, name)
		output.FocusOn = ""
		require.Less(t, redness(decodePNG(t, all(t, engine, encodePNG(t, img), output)[0])), 0.6*want, "the middle, %s", name)
	}

	turned := dense(image.Pt(900, 300), image.Rect(650, 40, 850, 260))
	output := imaging.Wanted{Width: 100, Height: 100, Fit: imaging.Cover, FocusOn: imaging.Entropy, Format: imaging.PNG}
	file := withEXIF(encodeJPEG(t, upright(turned, 8), 95), bigEndian, 6)
	require.InDelta(t, 200.0*220/90_000, redness(decodePNG(t, all(t, engine, file, output)[0])), 0.04, "stored turned")
}

// Where all parts are alike, it is the middle.
func TestFocusOnEntropyOfEvenPictures(t *testing.T) {
	t.Parallel()
	flat := image.NewRGBA(image.Rect(0, 0, 400, 100))
	draw.Draw(flat, flat.Rect, image.NewUniform(color.RGBA{R: 9, G: 99, B: 199, A: 255}), image.Point{}, draw.Src)
	draw.Draw(flat, image.Rect(199, 0, 201, 100), image.NewUniform(color.RGBA{R: 255, A: 255}), image.Point{}, draw.Src)
	output := imaging.Wanted{Width: 100, Height: 100, Fit: imaging.Cover, Format: imaging.PNG}
	middle := all(t, engine, encodePNG(t, flat), output)[0]
	output.FocusOn = imaging.Entropy
	requireClose(t, decodePNG(t, middle), decodePNG(t, all(t, engine, encodePNG(t, flat), output)[0]))
}
