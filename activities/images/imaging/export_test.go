package imaging

import (
	"context"
	"image"
)

// Target is the size of a picture that a test makes.
type Target struct {
	Side   int
	Square bool
}

func (t Target) wanted() Wanted {
	fit := Inside
	if t.Square {
		fit = Cover
	}
	return Wanted{Width: t.Side, Height: t.Side, Fit: fit}
}

// Size gives the dimensions of what is made of a picture of w×h pixels.
func (t Target) Size(w, h int) (width, height int) { return t.wanted().Size(w, h) }

// Decode makes the picture of a file that is not encoded yet.
func Decode(ctx context.Context, data []byte, limits Limits, target Target) (picture *Picture, err error) {
	file, err := inspect(data, limits)
	if err != nil {
		return nil, err
	}
	s := target.wanted().shape(file.info.Width, file.info.Height)
	o, err := file.open(ctx, s.reduction())
	if err != nil {
		return nil, err
	}
	return o.picture(ctx, s)
}

// Cut is the part of an upright picture that is shown.
func (w Wanted) Cut(width, height int) image.Rectangle { return w.shape(width, height).cut }
