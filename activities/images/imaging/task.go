package imaging

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"math"
	"slices"
)

// Task is what one picture is made into. It travels as JSON to the process that does it.
type Task struct {
	Outputs []Wanted `json:"outputs"`
	// Stored are outputs that are there already. The file is decoded as if they were made too, so
	// that looks are the same.
	Stored []Wanted `json:"stored,omitempty"`
}

// Wanted is one picture to make.
type Wanted struct {
	// Name is for the caller.
	Name string `json:"name"`
	// Width and Height bound it, in pixels. One of them may be 0 for [Inside]: any, up to 16,383
	// for WebP.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	Fit    Fit `json:"fit"`
	// Focus is what [Cover] keeps in the picture. Defaults to the middle.
	Focus *Point `json:"focus,omitempty"`
	// FocusOn has the focus found in the picture, in the place of Focus.
	FocusOn FocusOn `json:"focus_on,omitempty"`
	// Format is JPEG, PNG, WebP or [LookFormat].
	Format Format `json:"format"`
	// Quality is that of a JPEG or WebP, from 1 to 100.
	Quality int `json:"quality,omitempty"`
}

// Point is a place in an upright picture, each from 0 (left, top) to 1.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Fit says how a picture comes into its bounds. Nothing is enlarged.
type Fit string

// The fits.
const (
	// Inside shows the whole picture within the bounds.
	Inside Fit = "inside"
	// Cover fills the bounds. What does not fit is cut off, evenly around the focus as far as the
	// picture goes.
	Cover Fit = "cover"
)

// Made is a picture that was made.
type Made struct {
	// Output is the index of what was wanted.
	Output int `json:"output"`
	// Width and Height are in pixels.
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Data   []byte `json:"-"`
}

// Make decodes a file once and calls made with each output, the largest first, looks last. It fails as
// [Inspect] does, with an [InvalidError] when the file is damaged or cut short, with the error of
// made, and with the context's when that ends first.
func (e Engine) Make(ctx context.Context, data []byte, limits Limits, task Task, made func(Made) error) error {
	file, err := inspect(data, limits)
	if err != nil {
		return err
	}
	shapes := make([]shape, len(task.Outputs))
	var shown []shape       // all but looks
	order := make([]int, 0) // Those of one cut together, each made of the one before.
	looks := make([]int, 0)
	quarter := true // JPEG and lossy WebP store chroma so: more would be resampled in vain.
	for n, w := range task.Outputs {
		shapes[n] = w.shape(file.info.Width, file.info.Height)
		if w.Format == LookFormat {
			looks = append(looks, n)
			continue
		}
		order, shown = append(order, n), append(shown, shapes[n])
		quarter = quarter && w.Format != PNG
	}
	for _, w := range task.Stored {
		shown = append(shown, w.shape(file.info.Width, file.info.Height))
		quarter = quarter && w.Format != PNG
	}
	if len(shown) == 0 {
		shown = []shape{Wanted{Width: lookSide, Height: lookSide, Fit: Inside}.shape(file.info.Width, file.info.Height)}
	}
	o, err := e.open(ctx, file, shown)
	if err != nil {
		return err
	}
	o.stored.quarter = quarter
	if err := o.focus(ctx, task.Outputs, shapes); err != nil {
		return err
	}
	slices.SortStableFunc(order, func(x, y int) int {
		a, b := shapes[x], shapes[y]
		return cmp.Or(cmp.Compare(b.cut.Dx()*b.cut.Dy(), a.cut.Dx()*a.cut.Dy()), cmp.Compare(a.cut.Min.X, b.cut.Min.X),
			cmp.Compare(a.cut.Min.Y, b.cut.Min.Y), cmp.Compare(b.w*b.h, a.w*a.h))
	})
	var picture *Picture
	var cut image.Rectangle
	for _, n := range order {
		s := shapes[n]
		if picture == nil || s.cut != cut {
			cut = s.cut
			if picture, err = o.picture(ctx, s); err != nil {
				return err
			}
		} else if picture.w != s.w || picture.h != s.h {
			picture = picture.Resize(s.w, s.h)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := e.encode(picture, task.Outputs[n])
		if err != nil {
			return err
		}
		if err := made(Made{n, picture.w, picture.h, data}); err != nil {
			return err
		}
	}
	for _, n := range looks {
		look, err := o.look(ctx)
		if err != nil {
			return err
		}
		look.Output = n
		if err := made(look); err != nil {
			return err
		}
	}
	return nil
}

// encode makes the file of an output.
func (e Engine) encode(p *Picture, w Wanted) ([]byte, error) {
	switch w.Format {
	case JPEG:
		return e.jpeg(p, w.Quality)
	case PNG:
		return p.PNG()
	case WebP:
		return e.webp(p, w.Quality)
	default:
		return nil, fmt.Errorf("%s: no encoder for %s", w.Name, w.Format)
	}
}

// shape is what is made of a picture: a part of it, at a size.
type shape struct {
	cut  image.Rectangle // of the upright picture
	w, h int
}

// Size gives the dimensions of what is made of an upright picture of w×h pixels.
func (w Wanted) Size(width, height int) (int, int) {
	s := w.shape(width, height)
	return s.w, s.h
}

// maxWebPSide is the longest side of a WebP: its header has 14 bits for each (RFC 6386, 9.1).
const maxWebPSide = 1<<14 - 1

// shape is what is made of an upright picture. A picture is never enlarged, and is at least one
// pixel wide and high.
func (w Wanted) shape(width, height int) shape {
	boundW, boundH := cmp.Or(w.Width, width), cmp.Or(w.Height, height)
	if w.Format == WebP {
		boundW, boundH = min(boundW, maxWebPSide), min(boundH, maxWebPSide)
	}
	if w.Fit == Inside {
		s := shape{cut: image.Rect(0, 0, width, height), w: width, h: height}
		// The side that is the longer one for its bound decides.
		if width*boundH >= height*boundW {
			if width > boundW {
				s.w, s.h = boundW, max(1, (height*boundW+width/2)/width)
			}
		} else if height > boundH {
			s.w, s.h = max(1, (width*boundH+height/2)/height), boundH
		}
		return s
	}
	cutW, cutH := width, height
	if width*boundH > height*boundW {
		cutW = max(1, (height*boundW+boundH/2)/boundH)
	} else {
		cutH = max(1, (width*boundH+boundW/2)/boundW)
	}
	left, top := (width-cutW)/2, (height-cutH)/2
	if w.Focus != nil {
		left, top = around(w.Focus.X, width, cutW), around(w.Focus.Y, height, cutH)
	}
	return shape{cut: image.Rect(left, top, left+cutW, top+cutH), w: min(boundW, cutW), h: min(boundH, cutH)}
}

// around is where a part of a length begins, so that a point is in its middle or as near to it as
// the whole allows.
func around(point float64, whole, part int) int {
	return min(max(int(math.Round(point*float64(whole)-float64(part)/2)), 0), whole-part)
}

// What is left to the filter: averaging blocks costs sharpness below twice the resolution of what
// is made. The scaled inverse DCT of JPEG decoders keeps it.
const (
	spareOfBlocks = 2
	spareOfDCT    = 1
)

// reduction is the largest power of two that a picture may be reduced by before it is filtered to
// any of the shapes: spare times the resolution is left.
func reduction(shapes []shape, spare int) int {
	k := 1
	for !slices.ContainsFunc(shapes, func(s shape) bool { return s.cut.Dx()/(2*k) < spare*s.w || s.cut.Dy()/(2*k) < spare*s.h }) {
		k *= 2
	}
	return k
}

// opened is a decoded file.
type opened struct {
	info    Info
	stored  *Picture    // reduced
	profile *conversion // nil if there is none to apply
}

// open decodes a file, and reduces it as far as what is made of it allows.
func (e Engine) open(ctx context.Context, f file, shapes []shape) (o *opened, err error) {
	defer recoverDamage(f.info.Format, &err)
	if f.info.Format == SVG {
		return f.draw(reduction(shapes, spareOfDCT))
	}
	if stored, ok := e.scaled(f, reduction(shapes, spareOfDCT)); ok {
		return &opened{info: f.info, stored: stored, profile: f.profile}, ctx.Err()
	}
	k := reduction(shapes, spareOfBlocks)
	if f.info.Format == PNG {
		if stored := f.decodePNGRows(ctx, k); stored != nil {
			return &opened{info: f.info, stored: stored, profile: f.profile}, nil
		}
	}
	decoded, err := f.decode(ctx, e.codecs)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, damaged(f.info.Format, err)
	}
	canvas := image.Rect(0, 0, f.config.Width, f.config.Height)
	if decoded.Bounds() != canvas && f.info.Format != GIF {
		return nil, invalidf("the %s file says %v pixels and holds %v", f.info.Format, canvas.Size(), decoded.Bounds().Size())
	}
	o = &opened{info: f.info, profile: f.profile}
	if cmyk, ok := decoded.(*image.CMYK); ok && f.profile != nil {
		o.stored = readCMYK(cmyk, k)
	} else {
		o.stored = read(decoded, canvas, k)
	}
	return o, nil
}

// picture makes a part of a file at a size: upright, in sRGB.
func (o *opened) picture(ctx context.Context, s shape) (*Picture, error) {
	stored := *o.stored
	stored.planes = slices.Clone(stored.planes)
	stored.cut(o.info.Orientation, s.cut)
	w, h := s.w, s.h
	if o.info.Orientation.swaps() {
		w, h = h, w
	}
	// Turned last, when the least pixels are left to turn.
	picture := stored.Resize(w, h)
	picture.orient(o.info.Orientation)
	if o.profile != nil && picture.model != modelGray {
		picture = picture.rgb()
		o.profile.apply(picture)
	}
	return picture, ctx.Err()
}
