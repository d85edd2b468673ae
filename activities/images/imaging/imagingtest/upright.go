package imagingtest

import "image"

// Upright turns pixels by the definition of the tag: where the stored row 0 and
// column 0 are to be seen.
func Upright(stored *image.RGBA, orientation uint16) *image.RGBA {
	w, h := stored.Rect.Dx(), stored.Rect.Dy()
	place := map[uint16]func(x, y int) (int, int){
		1: func(x, y int) (int, int) { return x, y },                 // top, left
		2: func(x, y int) (int, int) { return w - 1 - x, y },         // top, right
		3: func(x, y int) (int, int) { return w - 1 - x, h - 1 - y }, // bottom, right
		4: func(x, y int) (int, int) { return x, h - 1 - y },         // bottom, left
		5: func(x, y int) (int, int) { return y, x },                 // left, top
		6: func(x, y int) (int, int) { return h - 1 - y, x },         // right, top
		7: func(x, y int) (int, int) { return h - 1 - y, w - 1 - x }, // right, bottom
		8: func(x, y int) (int, int) { return y, w - 1 - x },         // left, bottom
	}[orientation]
	size := image.Rect(0, 0, w, h)
	if orientation >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	out := image.NewRGBA(size)
	for y := range h {
		for x := range w {
			toX, toY := place(x, y)
			out.SetRGBA(toX, toY, stored.RGBAAt(x, y))
		}
	}
	return out
}
