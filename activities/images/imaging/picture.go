package imaging

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
)

// Picture is an upright picture in memory, in sRGB. Its methods leave it as it is.
type Picture struct {
	w, h   int
	model  model
	planes []plane
	// quarter has chroma resampled to half of the width and height.
	quarter bool
}

type model int

const (
	modelGray model = iota // gray
	modelYCC               // Y, Cb, Cr as in JFIF
	modelRGB               // red, green, blue
	modelRGBA              // red, green, blue premultiplied by alpha; alpha
	modelCMYK              // cyan, magenta, yellow, black, before a profile makes RGB of them
)

// Size gives width and height in pixels.
func (p *Picture) Size() (width, height int) { return p.w, p.h }

// setGrid makes a picture that was decoded smaller one of w×h pixels, for each of which it has so many
// samples, across and down.
func (p *Picture) setGrid(w, h int, across, down float64) {
	p.w, p.h = w, h
	for i := range p.planes {
		p.planes[i].sx *= across
		p.planes[i].sy *= down
	}
}

// orient turns a picture that Resize made.
func (p *Picture) orient(o Orientation) {
	aligned := true
	for i := range p.planes {
		p.planes[i] = p.planes[i].orient(o, p.w, p.h)
		aligned = aligned && p.planes[i].x0 == 0 && p.planes[i].y0 == 0
	}
	if o.swaps() {
		p.w, p.h = p.h, p.w
	}
	if !aligned {
		// At odd sizes mirrored chroma begins half a sample outside.
		*p = *p.Resize(p.w, p.h)
	}
}

// cut keeps a part of a picture that is still as it is stored. The part is given in the
// coordinates of the upright picture.
func (p *Picture) cut(o Orientation, part image.Rectangle) {
	left, top, w, h := part.Min.X, part.Min.Y, part.Dx(), part.Dy()
	if o.swaps() {
		left, top, w, h = top, left, h, w
	}
	mirroredX, mirroredY := o.mirrors()
	if mirroredX {
		left = p.w - w - left
	}
	if mirroredY {
		top = p.h - h - top
	}
	for i := range p.planes {
		p.planes[i].x0 -= float64(left)
		p.planes[i].y0 -= float64(top)
	}
	p.w, p.h = w, h
}

// Resize resamples the picture to w×h pixels. Chroma has half the resolution
// where it had less than luma, or is to have it.
func (p *Picture) Resize(w, h int) *Picture {
	out := &Picture{w: w, h: h, model: p.model, quarter: p.quarter}
	for i, from := range p.planes {
		nx, ny := 1, 1
		quarter := i > 0 && p.quarter && p.model == modelYCC
		if quarter || i > 0 && from.sx < p.planes[0].sx {
			nx = 2
		}
		if quarter || i > 0 && from.sy < p.planes[0].sy {
			ny = 2
		}
		pw, ph := (w+nx-1)/nx, (h+ny-1)/ny
		// At an odd width half of the last chroma sample lies outside.
		width := float64(p.w) * float64(pw*nx) / float64(w)
		height := float64(p.h) * float64(ph*ny) / float64(h)
		to := from.resample(width, height, pw, ph)
		to.sx, to.sy = 1/float64(nx), 1/float64(ny)
		out.planes = append(out.planes, to)
	}
	if out.model == modelRGBA {
		out.boundByAlpha()
	}
	return out
}

// boundByAlpha undoes what the filter's overshoot does to premultiplied colors.
func (p *Picture) boundByAlpha() {
	alpha := p.planes[3].pix
	for c := range 3 {
		for i, v := range p.planes[c].pix {
			p.planes[c].pix[i] = min(v, alpha[i])
		}
	}
}

// rgb converts YCbCr to RGB, with chroma interpolated to full resolution.
func (p *Picture) rgb() *Picture {
	if p.model != modelYCC {
		return p
	}
	out := &Picture{w: p.w, h: p.h, model: modelRGB}
	cb := p.planes[1].resample(float64(p.w), float64(p.h), p.w, p.h)
	cr := p.planes[2].resample(float64(p.w), float64(p.h), p.w, p.h)
	r, g, b := newPlane(p.w, p.h), newPlane(p.w, p.h), newPlane(p.w, p.h)
	for i, y := range p.planes[0].pix {
		r.pix[i], g.pix[i], b.pix[i] = color.YCbCrToRGB(y, cb.pix[i], cr.pix[i])
	}
	out.planes = []plane{r, g, b}
	return out
}

// JPEG encodes the picture as baseline JPEG with 4:2:0 chroma, at a quality
// from 1 to 100. What is transparent becomes white.
func (p *Picture) JPEG(quality int) ([]byte, error) {
	var img image.Image
	switch p.model {
	case modelGray:
		img = p.grayImage()
	case modelYCC:
		img = &image.YCbCr{
			Y: p.planes[0].pix, Cb: p.planes[1].pix, Cr: p.planes[2].pix,
			YStride: p.w, CStride: p.planes[1].stride,
			SubsampleRatio: p.subsampling(), Rect: image.Rect(0, 0, p.w, p.h),
		}
	case modelRGB, modelRGBA:
		img = p.opaqueImage()
	}
	var out bytes.Buffer
	if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: quality}); err != nil {
		return nil, fmt.Errorf("encode JPEG of %d×%d pixels: %w", p.w, p.h, err)
	}
	return out.Bytes(), nil
}

// PNG encodes the picture as PNG of 8 bits per channel, with its transparency.
func (p *Picture) PNG() ([]byte, error) {
	var out bytes.Buffer
	// At the default level: the best one saves a tenth and may take twenty times
	// as long.
	if err := png.Encode(&out, p.image()); err != nil {
		return nil, fmt.Errorf("encode PNG of %d×%d pixels: %w", p.w, p.h, err)
	}
	return out.Bytes(), nil
}

func (p *Picture) subsampling() image.YCbCrSubsampleRatio {
	chroma := p.planes[1]
	switch {
	case chroma.sx < 1 && chroma.sy < 1:
		return image.YCbCrSubsampleRatio420
	case chroma.sx < 1:
		return image.YCbCrSubsampleRatio422
	case chroma.sy < 1:
		return image.YCbCrSubsampleRatio440
	}
	return image.YCbCrSubsampleRatio444
}

// image is the picture with its transparency.
func (p *Picture) image() image.Image {
	p = p.rgb()
	switch p.model {
	case modelGray:
		return p.grayImage()
	case modelRGBA:
		return p.transparentImage()
	default:
		return p.opaqueImage()
	}
}

func (p *Picture) grayImage() image.Image {
	return &image.Gray{Pix: p.planes[0].pix, Stride: p.w, Rect: image.Rect(0, 0, p.w, p.h)}
}

// opaqueImage puts the picture on white.
func (p *Picture) opaqueImage() *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, p.w, p.h))
	for i := range p.w * p.h {
		white := uint8(0)
		if p.model == modelRGBA {
			white = 255 - p.planes[3].pix[i]
		}
		for c := range 3 {
			img.Pix[4*i+c] = p.planes[c].pix[i] + white
		}
		img.Pix[4*i+3] = 255
	}
	return img
}

// transparentImage divides the colors by alpha again.
func (p *Picture) transparentImage() *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, p.w, p.h))
	for i, alpha := range p.planes[3].pix {
		if alpha == 0 {
			continue
		}
		for c := range 3 {
			img.Pix[4*i+c] = divide(p.planes[c].pix[i], alpha)
		}
		img.Pix[4*i+3] = alpha
	}
	return img
}

// divide is color·255/alpha, rounded; color is at most alpha.
func divide(color, alpha uint8) uint8 {
	a := uint32(alpha)
	return uint8((uint32(color)*255 + a/2) / a)
}
