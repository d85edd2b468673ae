package imaging

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/draw"
	"math"
)

// LookFormat is the format of an output that says how the picture looks: a [Look] as JSON. It
// shows the whole picture, whatever its bounds.
const LookFormat Format = "look"

// Look says how a picture looks, in a few bytes.
type Look struct {
	// ThumbHash is a picture of about 30 pixels for while a variant loads, in base64:
	// https://evanw.github.io/thumbhash/.
	ThumbHash string `json:"thumbhash"`
	// Color is the one that most of the picture has, as #rrggbb. Empty if all is transparent.
	Color string `json:"color,omitempty"`
	// Hash has 64 bits, as 16 hexadecimal digits: pictures that look alike differ in few of them.
	// Each says of two neighbours, of 9×8 gray samples, whether the right one is brighter.
	Hash string `json:"hash"`
}

// lookSide is the longest side of what a look is made of: more than 100 is too much for ThumbHash.
const lookSide = 100

// small gives a part of a decoded file at about a size, for what no one looks at: most samples
// are passed over.
func (o *opened) small(ctx context.Context, side int) (*image.NRGBA, error) {
	few := *o
	few.stored = o.stored.thinned(4 * side)
	w, h := o.info.Width, o.info.Height
	s := Wanted{Width: side, Height: side, Fit: Inside}.shape(w, h)
	picture, err := few.picture(ctx, s)
	if err != nil {
		return nil, err
	}
	return picture.nrgba(), nil
}

// thinned keeps each nth column and row, so that about most are left on the longer side.
func (p *Picture) thinned(most int) *Picture {
	out := Picture{w: p.w, h: p.h, model: p.model, planes: make([]plane, len(p.planes))}
	for i, from := range p.planes {
		n := max(1, max(from.w, from.h)/most)
		to := newPlane((from.w+n-1)/n, (from.h+n-1)/n)
		to.x0, to.y0, to.sx, to.sy = from.x0, from.y0, from.sx/float64(n), from.sy/float64(n)
		for y := range to.h {
			src, dst := from.row(y*n), to.row(y)
			for x := range dst {
				dst[x] = src[x*n]
			}
		}
		out.planes[i] = to
	}
	return &out
}

// nrgba is the picture with its transparency.
func (p *Picture) nrgba() *image.NRGBA {
	img := p.image()
	if n, ok := img.(*image.NRGBA); ok {
		return n
	}
	out := image.NewNRGBA(img.Bounds())
	draw.Draw(out, out.Rect, img, image.Point{}, draw.Src)
	return out
}

// look is the file of an output of [LookFormat].
func (o *opened) look(ctx context.Context) (Made, error) {
	img, err := o.small(ctx, lookSide)
	if err != nil {
		return Made{}, err
	}
	data, err := json.Marshal(Look{
		ThumbHash: base64.StdEncoding.EncodeToString(thumbHash(img)), Color: mainColor(img), Hash: differenceHash(img),
	})
	return Made{Width: img.Rect.Dx(), Height: img.Rect.Dy(), Data: data}, err
}

// mainColor is the mean of the fullest of 16×16×16 boxes of colors.
func mainColor(img *image.NRGBA) string {
	var boxes [1 << 12]struct{ n, r, g, b int }
	best := 0
	for i := 0; i < len(img.Pix); i += 4 {
		r, g, b, alpha := int(img.Pix[i]), int(img.Pix[i+1]), int(img.Pix[i+2]), img.Pix[i+3]
		if alpha < 128 {
			continue
		}
		at := r>>4<<8 | g>>4<<4 | b>>4
		box := &boxes[at]
		box.n, box.r, box.g, box.b = box.n+1, box.r+r, box.g+g, box.b+b
		if box.n > boxes[best].n {
			best = at
		}
	}
	box := boxes[best]
	if box.n == 0 {
		return ""
	}
	return fmt.Sprintf("#%02x%02x%02x", box.r/box.n, box.g/box.n, box.b/box.n)
}

// luma is the brightness of each pixel, on black.
func luma(img *image.NRGBA) plane {
	out := newPlane(img.Rect.Dx(), img.Rect.Dy())
	for i := range out.pix {
		pix := img.Pix[4*i:]
		y := 299*uint32(pix[0]) + 587*uint32(pix[1]) + 114*uint32(pix[2])
		out.pix[i] = multiply(uint8(y/1000), pix[3])
	}
	return out
}

// differenceHash is the Hash of a [Look].
func differenceHash(img *image.NRGBA) string {
	const columns, rows = 9, 8
	gray := luma(img)
	small := gray.resample(float64(gray.w), float64(gray.h), columns, rows)
	hash := uint64(0)
	for y := range rows {
		for x := range columns - 1 {
			hash <<= 1
			if small.row(y)[x] < small.row(y)[x+1] {
				hash |= 1
			}
		}
	}
	return fmt.Sprintf("%016x", hash)
}

// thumbHash is the ThumbHash of a picture of at most 100×100 pixels: the lowest terms of cosine
// transforms of luminance, two differences of colors, and alpha, in four bits each.
func thumbHash(img *image.NRGBA) []byte {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	var mean [3]float64
	total := 0.0
	for i := 0; i < len(img.Pix); i += 4 {
		alpha := float64(img.Pix[i+3]) / 255
		for c := range mean {
			mean[c] += alpha / 255 * float64(img.Pix[i+c])
		}
		total += alpha
	}
	for c := range mean {
		if total > 0 {
			mean[c] /= total
		}
	}
	l, p, q, a := make([]float64, w*h), make([]float64, w*h), make([]float64, w*h), make([]float64, w*h)
	for i := range a {
		pix := img.Pix[4*i:]
		alpha := float64(pix[3]) / 255
		var on [3]float64 // the mean color
		for c := range on {
			on[c] = mean[c]*(1-alpha) + alpha/255*float64(pix[c])
		}
		l[i], p[i], q[i], a[i] = (on[0]+on[1]+on[2])/3, (on[0]+on[1])/2-on[2], on[0]-on[1], alpha
	}
	hasAlpha := total < float64(w*h)
	most := 7.0
	if hasAlpha {
		most = 5 // Alpha takes the room.
	}
	longest := float64(max(w, h))
	lx, ly := max(1, int(math.Round(most*float64(w)/longest))), max(1, int(math.Round(most*float64(h)/longest)))
	lDC, lScale, terms := cosines(l, w, h, max(3, lx), max(3, ly))
	pDC, pScale, pTerms := cosines(p, w, h, 3, 3)
	qDC, qScale, qTerms := cosines(q, w, h, 3, 3)
	terms = append(append(terms, pTerms...), qTerms...)

	scaled := func(most, v float64) uint32 { return uint32(math.Round(most * v)) }
	head := scaled(63, lDC) | scaled(31.5, 1+pDC)<<6 | scaled(31.5, 1+qDC)<<12 | scaled(31, lScale)<<18
	rest := scaled(63, pScale)<<3 | scaled(63, qScale)<<9
	if w > h {
		rest |= uint32(ly) | 1<<15
	} else {
		rest |= uint32(lx)
	}
	var ofAlpha []byte
	if hasAlpha {
		head |= 1 << 23
		aDC, aScale, aTerms := cosines(a, w, h, 5, 5)
		ofAlpha = []byte{byte(scaled(15, aDC) | scaled(15, aScale)<<4)}
		terms = append(terms, aTerms...)
	}
	hash := append([]byte{byte(head), byte(head >> 8), byte(head >> 16), byte(rest), byte(rest >> 8)}, ofAlpha...)
	for i, term := range terms {
		if i%2 == 0 {
			hash = append(hash, 0)
		}
		hash[len(hash)-1] |= byte(scaled(15, term) << (4 * (i % 2)))
	}
	return hash
}

// cosines are the terms of a cosine transform below the diagonal from nx to ny: the first, and
// the others from 0 to 1 about a half, by their scale.
func cosines(channel []float64, w, h, nx, ny int) (first, scale float64, others []float64) {
	wave := func(size, n int) []float64 {
		all := make([]float64, size)
		for i := range all {
			all[i] = math.Cos(math.Pi / float64(size) * float64(n) * (float64(i) + 0.5))
		}
		return all
	}
	for cy := range ny {
		down := wave(h, cy)
		for cx := 0; cx*ny < nx*(ny-cy); cx++ {
			across, sum := wave(w, cx), 0.0
			for y, weight := range down {
				for x, v := range channel[y*w : y*w+w] {
					sum += v * across[x] * weight
				}
			}
			sum /= float64(w * h)
			if cx == 0 && cy == 0 {
				first = sum
				continue
			}
			others = append(others, sum)
			scale = max(scale, math.Abs(sum))
		}
	}
	for i := range others {
		if scale > 0 {
			others[i] = 0.5 + 0.5/scale*others[i]
		}
	}
	return first, scale, others
}
