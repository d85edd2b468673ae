package svg

import (
	"bytes"
	"fmt"
	"image"

	"github.com/fyne-io/oksvg"
	"github.com/srwiley/rasterx"
)

// Draw makes pixels of the document, transparent where it has nothing. A document may cost any
// time and memory: this is for a process with limits.
func (d Document) Draw(w, h int) (*image.RGBA, error) {
	icon, err := oksvg.ReadIconStream(bytes.NewReader(d.Text), oksvg.IgnoreErrorMode)
	if err != nil {
		return nil, fmt.Errorf("the SVG file cannot be drawn: %w", err)
	}
	// Its own SetTarget is right for a view box that begins at 0, 0 alone.
	box := icon.ViewBox
	icon.Transform = rasterx.Identity.Scale(float64(w)/box.W, float64(h)/box.H).Translate(-box.X, -box.Y)
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	icon.Draw(rasterx.NewDasher(w, h, rasterx.NewScannerGV(w, h, img, img.Bounds())), 1)
	return img, nil
}
