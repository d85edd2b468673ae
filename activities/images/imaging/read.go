package imaging

import (
	"image"
	"image/color"
)

// read takes the pixels of a decoded image, reduced by k in both directions.
// The canvas is the area the picture covers; the image may cover part of it.
func read(img image.Image, canvas image.Rectangle, k int) *Picture {
	w, h := canvas.Dx(), canvas.Dy()
	p := &Picture{w: w, h: h}
	if ycc, ok := asYCbCr(img); ok {
		p.model = modelYCC
		cw, ch, sx, sy := chromaGrid(ycc)
		p.planes = []plane{
			reduceStored(ycc.Y, ycc.YStride, w, h, k),
			reduceStored(ycc.Cb, ycc.CStride, cw, ch, k),
			reduceStored(ycc.Cr, ycc.CStride, cw, ch, k),
		}
		for i := 1; i < 3; i++ {
			p.planes[i].sx *= sx
			p.planes[i].sy *= sy
		}
		return p
	}
	if gray, ok := img.(*image.Gray); ok && gray.Rect == canvas {
		p.planes = []plane{reduceStored(gray.Pix, gray.Stride, w, h, k)}
		return p
	}

	opaque := img.Bounds() == canvas
	if o, ok := img.(interface{ Opaque() bool }); ok {
		opaque = opaque && o.Opaque()
	}
	channels := 4
	switch {
	case img.ColorModel() == color.Gray16Model:
		p.model, channels = modelGray, 1
	case opaque:
		p.model, channels = modelRGB, 3
	default:
		p.model = modelRGBA
	}
	line := make([]uint8, w)
	covered := img.Bounds().Intersect(canvas)
	for c := range channels {
		samples := sampler(img, c)
		p.planes = append(p.planes, reduced(func(y int) []uint8 {
			if y < covered.Min.Y || y >= covered.Max.Y {
				clear(line)
				return line
			}
			clear(line[:covered.Min.X])
			samples(line[covered.Min.X:covered.Max.X], y)
			clear(line[covered.Max.X:])
			return line
		}, w, h, k))
	}
	return p
}

// readCMYK takes the samples of a CMYK image, reduced by k in both directions.
func readCMYK(img *image.CMYK, k int) *Picture {
	p := &Picture{w: img.Rect.Dx(), h: img.Rect.Dy(), model: modelCMYK}
	line := make([]uint8, p.w)
	for c := range 4 {
		p.planes = append(p.planes, reduced(func(y int) []uint8 {
			row := img.Pix[y*img.Stride:]
			for x := range line {
				line[x] = row[4*x+c]
			}
			return line
		}, p.w, p.h, k))
	}
	return p
}

func asYCbCr(img image.Image) (*image.YCbCr, bool) {
	switch m := img.(type) {
	case *image.YCbCr:
		return m, true
	case *image.NYCbCrA:
		return &m.YCbCr, m.Opaque()
	}
	return nil, false
}

// reduceStored makes a plane of samples that are stored as one; at k = 1 it
// shares their memory.
func reduceStored(pix []uint8, stride, w, h, k int) plane {
	if k == 1 {
		return plane{pix: pix, stride: stride, w: w, h: h, sx: 1, sy: 1}
	}
	return reduced(func(y int) []uint8 { return pix[y*stride : y*stride+w] }, w, h, k)
}

// chromaGrid gives the size of the chroma planes, and their samples per pixel.
func chromaGrid(m *image.YCbCr) (w, h int, sx, sy float64) {
	nx, ny := 1, 1
	switch m.SubsampleRatio {
	case image.YCbCrSubsampleRatio444:
	case image.YCbCrSubsampleRatio422:
		nx = 2
	case image.YCbCrSubsampleRatio420:
		nx, ny = 2, 2
	case image.YCbCrSubsampleRatio440:
		ny = 2
	case image.YCbCrSubsampleRatio411:
		nx = 4
	case image.YCbCrSubsampleRatio410:
		nx, ny = 4, 2
	}
	return (m.Rect.Dx() + nx - 1) / nx, (m.Rect.Dy() + ny - 1) / ny, 1 / float64(nx), 1 / float64(ny)
}

// sampler gives a function that fills dst with channel c (red, green, blue,
// alpha; or gray) of the pixels of row y. Colors are premultiplied by alpha, so
// that what is transparent has no weight when pixels are averaged.
func sampler(img image.Image, c int) func(dst []uint8, y int) {
	x0, y0 := img.Bounds().Min.X, img.Bounds().Min.Y
	switch m := img.(type) {
	case *image.RGBA:
		return func(dst []uint8, y int) {
			row := m.Pix[(y-y0)*m.Stride:]
			for x := range dst {
				dst[x] = row[4*x+c]
			}
		}
	case *image.NRGBA:
		return func(dst []uint8, y int) {
			row := m.Pix[(y-y0)*m.Stride:]
			for x := range dst {
				v, a := row[4*x+c], row[4*x+3]
				if c < 3 && a < 255 {
					v = multiply(v, a)
				}
				dst[x] = v
			}
		}
	case *image.RGBA64: // big endian: the first byte of a channel is the high one
		return func(dst []uint8, y int) {
			row := m.Pix[(y-y0)*m.Stride:]
			for x := range dst {
				dst[x] = row[8*x+2*c]
			}
		}
	case *image.NRGBA64:
		return func(dst []uint8, y int) {
			row := m.Pix[(y-y0)*m.Stride:]
			for x := range dst {
				v, a := row[8*x+2*c], row[8*x+6]
				if c < 3 && a < 255 {
					v = multiply(v, a)
				}
				dst[x] = v
			}
		}
	case *image.Gray16:
		return func(dst []uint8, y int) {
			row := m.Pix[(y-y0)*m.Stride:]
			for x := range dst {
				dst[x] = row[2*x]
			}
		}
	case *image.Paletted:
		var table [256]uint8
		for i, entry := range m.Palette[:min(len(m.Palette), 256)] {
			table[i] = channel(entry, c)
		}
		return func(dst []uint8, y int) {
			row := m.Pix[(y-y0)*m.Stride:]
			for x := range dst {
				dst[x] = table[row[x]]
			}
		}
	case *image.CMYK:
		return func(dst []uint8, y int) {
			row := m.Pix[(y-y0)*m.Stride:]
			for x := range dst {
				// As color.CMYKToRGB: white less ink, less black.
				dst[x] = multiply(255-row[4*x+c], 255-row[4*x+3])
			}
		}
	}
	return func(dst []uint8, y int) { // WebP with alpha
		for x := range dst {
			dst[x] = channel(img.At(x0+x, y), c)
		}
	}
}

func channel(from color.Color, c int) uint8 {
	r, g, b, a := from.RGBA()
	return uint8([4]uint32{r, g, b, a}[c] >> 8)
}

// multiply is a·b/255, rounded.
func multiply(a, b uint8) uint8 { return uint8((uint32(a)*uint32(b) + 127) / 255) }
