package imaging

import (
	"context"
	"image"
	"image/color"
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
	o, err := Engine{}.open(ctx, file, []shape{s})
	if err != nil {
		return nil, err
	}
	return o.picture(ctx, s)
}

// DecodeSequential decodes a sequential JPEG at 1/k of its size, or gives nil.
func DecodeSequential(data []byte, k int) (image.Image, error) {
	file, err := inspect(data, DefaultLimits())
	if err != nil {
		return nil, err
	}
	return file.decodeSequential(k), nil
}

// DecodePNG decodes a PNG reduced by k, row by row and by the standard library. The first is nil for
// what is for the other, the second for what that refuses.
func DecodePNG(data []byte, k int) (rows, standard *Picture, err error) {
	file, err := inspect(data, DefaultLimits())
	if err != nil {
		return nil, nil, err
	}
	if img, err := file.decode(context.Background(), Codecs{}); err == nil {
		standard = read(img, img.Bounds(), k)
	}
	return file.decodePNGRows(context.Background(), k), standard, nil
}

// Cut is the part of an upright picture that is shown.
func (w Wanted) Cut(width, height int) image.Rectangle { return w.shape(width, height).cut }

// EncodeTurbo encodes a picture with chroma of a ratio.
func EncodeTurbo(img image.Image, ratio image.YCbCrSubsampleRatio) ([]byte, error) {
	e, err := OpenEngine(Turbo, Codecs{})
	if err != nil {
		return nil, err
	}
	size := img.Bounds().Size()
	ycc := image.NewYCbCr(image.Rectangle{Max: size}, ratio)
	for y := range size.Y {
		for x := range size.X {
			c, _ := color.YCbCrModel.Convert(img.At(x, y)).(color.YCbCr)
			ycc.Y[ycc.YOffset(x, y)], ycc.Cb[ycc.COffset(x, y)], ycc.Cr[ycc.COffset(x, y)] = c.Y, c.Cb, c.Cr
		}
	}
	return e.jpeg(read(ycc, ycc.Rect, 1), 90)
}

// ThumbHash is that of a picture of at most 100×100 pixels.
func ThumbHash(img *image.NRGBA) []byte { return thumbHash(img) }
