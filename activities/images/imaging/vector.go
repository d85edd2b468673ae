package imaging

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"strings"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging/svg"
)

// vectorSide is the longer side of an SVG in pixels: as large as the largest variant.
const vectorSide = 4096

// vectorConfig gives an SVG a size. It can have any.
func vectorConfig(document svg.Document) image.Config {
	scale := vectorSide / max(document.Width, document.Height)
	side := func(length float64) int { return max(1, int(math.Round(length*scale))) }
	return image.Config{ColorModel: color.RGBAModel, Width: side(document.Width), Height: side(document.Height)}
}

func vectorNotes(document svg.Document) []string {
	if len(document.NotDrawn) == 0 {
		return nil
	}
	names := strings.Join(document.NotDrawn[:min(len(document.NotDrawn), 8)], ", ")
	return []string{fmt.Sprintf("pictures made of the SVG leave out its elements %.120s", names)}
}

// draw makes an SVG at 1/k of its size.
func (f file) draw(k int) (*opened, error) {
	w, h := (f.config.Width+k-1)/k, (f.config.Height+k-1)/k
	img, err := svg.Document{Text: f.data}.Draw(w, h)
	if err != nil {
		return nil, invalidf("%s", err)
	}
	stored := read(img, img.Bounds(), 1)
	stored.setGrid(f.config.Width, f.config.Height, float64(w)/float64(f.config.Width), float64(h)/float64(f.config.Height))
	return &opened{info: f.info, stored: stored}, nil
}
