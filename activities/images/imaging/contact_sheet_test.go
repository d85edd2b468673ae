package imaging_test

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

var writeSheet = flag.Bool("contact-sheet", false, "write docs/screenshots/fits.png anew")

const sheetFile = "../../../docs/screenshots/fits.png"

// TestContactSheet: the picture in docs/images.md shows what each fit and focus does now.
func TestContactSheet(t *testing.T) {
	t.Parallel()
	sheet := contactSheet(t)
	if *writeSheet {
		var out bytes.Buffer
		require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, sheet))
		require.NoError(t, os.WriteFile(sheetFile, out.Bytes(), 0o600))
	}
	stored, err := os.ReadFile(sheetFile)
	require.NoError(t, err)
	require.Less(t, len(stored), 150_000)
	img, err := png.Decode(bytes.NewReader(stored))
	require.NoError(t, err)
	require.Equal(t, sheet.Bounds(), img.Bounds(), "go test -run TestContactSheet ./activities/images/imaging -args -contact-sheet")
	differ := 0
	for y := range sheet.Rect.Dy() {
		for x := range sheet.Rect.Dx() {
			a, b := sheet.RGBAAt(x, y), color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) //nolint:forcetypeassert // The model gives no other.
			if abs(int(a.R)-int(b.R))+abs(int(a.G)-int(b.G))+abs(int(a.B)-int(b.B)) > 48 {
				differ++
			}
		}
	}
	require.Less(t, differ, 200, "pixels differ: go test -run TestContactSheet ./activities/images/imaging -args -contact-sheet")
}

func abs(n int) int { return max(n, -n) }

// landscape is the upload of the contact sheet: sky with a sun, hills, and a station.
func landscape(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			u, v := float64(x)/float64(w), float64(y)/float64(h)
			c := color.RGBA{R: uint8(120 + 90*v), G: uint8(170 + 50*v), B: 235, A: 255}
			du, dv := (u-0.8)*float64(w), (v-0.22)*float64(h)
			switch hill := 0.62 + 0.09*math.Sin(9*u) + 0.03*math.Sin(23*u); {
			case v > hill+0.14:
				c = color.RGBA{R: 70, G: uint8(150 - 60*v), B: 60, A: 255}
			case v > hill:
				c = color.RGBA{R: 110, G: 165, B: 90, A: 255}
			case math.Hypot(du, dv) < 0.11*float64(h):
				c = color.RGBA{R: 255, G: 215, B: 70, A: 255}
			}
			// The station: a mast with a box, and a vane.
			if u > 0.195 && u < 0.205 && v > 0.25 && v < 0.85 || u > 0.17 && u < 0.23 && v > 0.55 && v < 0.66 || u > 0.16 && u < 0.24 && v > 0.24 && v < 0.27 {
				c = color.RGBA{R: 60, G: 60, B: 70, A: 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	return img
}

// contactSheet shows the upload, and what is made of it, each in its bounds.
func contactSheet(t *testing.T) *image.RGBA {
	t.Helper()
	const cellW, cellH, columns, most = 190, 152, 4, 3
	at := func(x, y float64) *imaging.Point { return &imaging.Point{X: x, Y: y} }
	cells := []struct {
		label string
		small bool
		imaging.Wanted
	}{
		{"the upload, 3:2", false, imaging.Wanted{Width: 165, Fit: imaging.Inside}},
		{"width 110", false, imaging.Wanted{Width: 110, Fit: imaging.Inside}},
		{"width 165, height 80", false, imaging.Wanted{Width: 165, Height: 80, Fit: imaging.Inside}},
		{"size 110", false, imaging.Wanted{Width: 110, Height: 110, Fit: imaging.Cover}},
		{"size 110, focus 0.2 0.5", false, imaging.Wanted{Width: 110, Height: 110, Fit: imaging.Cover, Focus: at(0.2, 0.5)}},
		{"size 110, focus_on entropy", false, imaging.Wanted{Width: 110, Height: 110, Fit: imaging.Cover, FocusOn: imaging.Entropy}},
		{"cover 60 x 110", false, imaging.Wanted{Width: 60, Height: 110, Fit: imaging.Cover}},
		{"cover, focus 0.2 0.5", false, imaging.Wanted{Width: 60, Height: 110, Fit: imaging.Cover, Focus: at(0.2, 0.5)}},
		{"cover 165 x 50", false, imaging.Wanted{Width: 165, Height: 50, Fit: imaging.Cover}},
		{"cover, focus 0.8 0.2", false, imaging.Wanted{Width: 165, Height: 50, Fit: imaging.Cover, Focus: at(0.8, 0.2)}},
		{"cover, focus_on entropy", false, imaging.Wanted{Width: 165, Height: 50, Fit: imaging.Cover, FocusOn: imaging.Entropy}},
		{"size 110 of a small one", true, imaging.Wanted{Width: 110, Height: 110, Fit: imaging.Cover}},
	}
	rows := (len(cells) + columns - 1) / columns
	sheet := image.NewRGBA(image.Rect(0, 0, columns*cellW, rows*cellH))
	draw.Draw(sheet, sheet.Rect, image.White, image.Point{}, draw.Src)
	for n, c := range cells {
		upload := landscape(720, 480)
		if c.small {
			upload = landscape(90, 60)
		}
		var file bytes.Buffer
		require.NoError(t, png.Encode(&file, upload))
		c.Format = imaging.PNG
		var made imaging.Made
		err := imaging.Engine{}.Make(t.Context(), file.Bytes(), imaging.DefaultLimits(), imaging.Task{Outputs: []imaging.Wanted{c.Wanted}},
			func(m imaging.Made) error {
				made = m
				return nil
			})
		require.NoError(t, err)
		picture, err := png.Decode(bytes.NewReader(made.Data))
		require.NoError(t, err)
		left, top := n%columns*cellW+12, n/columns*cellH+10
		bounds := image.Rect(left, top, left+max(c.Width, made.Width), top+max(c.Height, made.Height))
		frame(sheet, bounds.Inset(-most))
		middle := bounds.Min.Add(bounds.Size().Sub(picture.Bounds().Size()).Div(2))
		draw.Draw(sheet, picture.Bounds().Add(middle), picture, image.Point{}, draw.Src)
		pen := font.Drawer{Dst: sheet, Src: image.Black, Face: basicfont.Face7x13, Dot: fixed.P(left-most, (n/columns+1)*cellH-8)}
		pen.DrawString(c.label)
	}
	return sheet
}

// frame draws the bounds of a picture.
func frame(img *image.RGBA, r image.Rectangle) {
	gray := color.RGBA{R: 200, G: 200, B: 200, A: 255}
	for x := r.Min.X; x < r.Max.X; x++ {
		img.SetRGBA(x, r.Min.Y, gray)
		img.SetRGBA(x, r.Max.Y-1, gray)
	}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		img.SetRGBA(r.Min.X, y, gray)
		img.SetRGBA(r.Max.X-1, y, gray)
	}
}
