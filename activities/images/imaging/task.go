package imaging

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"slices"
)

// Task is what one picture is made into. It travels as JSON to the process that does it.
type Task struct {
	Outputs []Wanted `json:"outputs"`
}

// Wanted is one picture to make.
type Wanted struct {
	// Name comes back with what was made.
	Name string `json:"name"`
	// Width and Height bound it, in pixels. One of them may be 0 for [Inside]: any.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	Fit    Fit `json:"fit"`
	// Format is JPEG or PNG.
	Format Format `json:"format"`
	// Quality is that of a JPEG, from 1 to 100.
	Quality int `json:"quality,omitempty"`
}

// Fit says how a picture comes into its bounds. Nothing is enlarged.
type Fit string

// The fits.
const (
	// Inside shows the whole picture within the bounds.
	Inside Fit = "inside"
	// Cover fills the bounds. What does not fit is cut off on both sides alike.
	Cover Fit = "cover"
)

// Made is a picture that was made.
type Made struct {
	Name   string `json:"name"`
	Format Format `json:"format"`
	// Width and Height are in pixels.
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Data   []byte `json:"-"`
}

// Facts is what was found out about a picture while it was made.
type Facts struct {
	// Notes say what of the file does not show as its maker meant it, a sentence each.
	Notes []string `json:"notes,omitempty"`
}

// Make decodes a file once and calls made with each output, the largest first. It fails as
// [Inspect] does, with an [InvalidError] when the file is damaged or cut short, with the error of
// made, and with the context's when that ends first.
func Make(ctx context.Context, data []byte, limits Limits, task Task, made func(Made) error) (Facts, error) {
	file, err := inspect(data, limits)
	if err != nil {
		return Facts{}, err
	}
	shapes := make([]shape, len(task.Outputs))
	reduction := 1 << 16
	for n, w := range task.Outputs {
		shapes[n] = w.shape(file.info.Width, file.info.Height)
		reduction = min(reduction, shapes[n].reduction())
	}
	o, err := file.open(ctx, reduction)
	if err != nil {
		return Facts{}, err
	}
	order := make([]int, len(shapes)) // Those of one cut together, each made of the one before.
	for n := range order {
		order[n] = n
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
		if picture == nil || s.cut != cut || s.w > picture.w || s.h > picture.h {
			cut = s.cut
			if picture, err = o.picture(ctx, s); err != nil {
				return Facts{}, err
			}
		} else if picture.w != s.w || picture.h != s.h {
			picture = picture.Resize(s.w, s.h)
		}
		if err := ctx.Err(); err != nil {
			return Facts{}, err
		}
		out, err := picture.encode(task.Outputs[n])
		if err != nil {
			return Facts{}, err
		}
		if err := made(out); err != nil {
			return Facts{}, err
		}
	}
	return Facts{Notes: o.notes}, nil
}

// encode makes the file of an output.
func (p *Picture) encode(w Wanted) (Made, error) {
	var data []byte
	var err error
	switch w.Format {
	case JPEG:
		data, err = p.JPEG(w.Quality)
	case PNG:
		data, err = p.PNG()
	default:
		err = fmt.Errorf("%s: no encoder for %s", w.Name, w.Format)
	}
	return Made{Name: w.Name, Format: w.Format, Width: p.w, Height: p.h, Data: data}, err
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

// shape is what is made of an upright picture. A picture is never enlarged, and is at least one
// pixel wide and high.
func (w Wanted) shape(width, height int) shape {
	boundW, boundH := cmp.Or(w.Width, width), cmp.Or(w.Height, height)
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
	return shape{cut: image.Rect(left, top, left+cutW, top+cutH), w: min(boundW, cutW), h: min(boundH, cutH)}
}

// reduction is the largest power of two that a picture may be reduced by before it is filtered.
// Twice the resolution of what is made is left to the filter, so that averaging blocks costs
// nothing of the sharpness.
func (s shape) reduction() int {
	k := 1
	for s.cut.Dx()/(2*k) >= 2*s.w && s.cut.Dy()/(2*k) >= 2*s.h {
		k *= 2
	}
	return k
}

// opened is a decoded file.
type opened struct {
	info    Info
	stored  *Picture    // reduced
	profile *conversion // nil if there is none to apply
	notes   []string
}

// open decodes a file, and reduces it by a power of two.
func (f file) open(ctx context.Context, reduction int) (o *opened, err error) {
	defer recoverDamage(f.info.Format, &err)
	decoded, err := decode(f.info.Format, &contextReader{ctx: ctx, reader: bytes.NewReader(f.data)})
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
	o = &opened{info: f.info, stored: read(decoded, canvas, reduction)}
	if _, isCMYK := decoded.(*image.CMYK); isCMYK {
		o.notes = append(o.notes, "the picture is in CMYK, which was converted without a profile")
	} else if icc := f.metadata.ICC(ctx); len(icc) > 0 && o.stored.model != modelGray {
		var understood bool
		if o.profile, understood = parseProfile(icc); !understood {
			o.notes = append(o.notes, "the color profile has no matrix, and was not applied")
		}
	}
	return o, ctx.Err() // the profile may have been missed
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
