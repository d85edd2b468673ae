package imaging

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/webp"
)

// Info describes a file without its pixels.
type Info struct {
	Format Format
	// Width and Height are those of the upright picture, in pixels.
	Width, Height int
	// Orientation is how the stored pixels are to be turned.
	Orientation Orientation
}

// Target is the size of a picture to make.
type Target struct {
	// Side bounds width and height, in pixels.
	Side int
	// Square asks for a square, cut out of the middle; otherwise the whole
	// picture fits into Side × Side.
	Square bool
}

// Size gives the dimensions of what is made of a picture of w×h pixels. A
// picture is never enlarged, and is at least one pixel wide and high.
func (t Target) Size(w, h int) (width, height int) {
	if t.Square {
		side := min(t.Side, w, h)
		return side, side
	}
	long := max(w, h)
	if long <= t.Side {
		return w, h
	}
	scale := func(v int) int { return max(1, (v*t.Side+long/2)/long) }
	return scale(w), scale(h)
}

// reduction is the largest power of two that a picture may be reduced by before
// it is filtered. Twice the resolution of the target is left to the filter, so
// that averaging blocks costs nothing of the sharpness.
func (t Target) reduction(w, h int) int {
	have := max(w, h)
	if t.Square {
		have = min(w, h)
	}
	k := 1
	for have/(2*k) >= 2*t.Side {
		k *= 2
	}
	return k
}

// Inspect looks at a file without decoding its pixels. It fails with an
// [InvalidError] when the bytes are no picture of an accepted format, and with
// a [LimitError] when the picture is beyond the limits.
func Inspect(data []byte, limits Limits) (Info, error) {
	f, err := inspect(data, limits)
	return f.info, err
}

// file is a file that may be decoded.
type file struct {
	info     Info
	config   image.Config // of the stored pixels
	metadata Metadata
	data     []byte // without what follows the picture of a JPEG
	cost     int64  // bytes that the decoder needs
}

func inspect(data []byte, limits Limits) (f file, err error) {
	if int64(len(data)) > limits.MaxFileBytes {
		return f, limitf("the file has %d bytes, more than the limit of %d", len(data), limits.MaxFileBytes)
	}
	format, err := Sniff(data)
	if err != nil {
		return f, err
	}
	defer recoverDamage(format, &err)
	var scans jpegScans
	reader := bytes.NewReader(data)
	switch format {
	case JPEG:
		if f.config, err = jpeg.DecodeConfig(reader); err != nil {
			break
		}
		if scans, err = readScans(data); err != nil {
			return f, err
		}
		// What follows, such as the video of a motion photo, is not the picture's.
		data = data[:scans.end]
	case PNG:
		f.config, err = png.DecodeConfig(reader)
	case GIF:
		f.config, err = gif.DecodeConfig(reader)
	case WebP:
		if isAnimatedWebP(data) {
			return f, invalidf("the file is an animated WebP, of which no frame can be read")
		}
		f.config, err = webp.DecodeConfig(reader)
	}
	if err != nil {
		return f, damaged(format, err)
	}
	if err := limits.check(format, f.config, scans); err != nil {
		return f, err
	}
	f.data, f.cost = data, decodeCost(format, f.config, scans.progressive)
	f.metadata = ReadMetadata(format, data)
	f.info = Info{
		Format:      format,
		Width:       f.config.Width,
		Height:      f.config.Height,
		Orientation: f.metadata.Orientation,
	}
	if f.info.Orientation.swaps() {
		f.info.Width, f.info.Height = f.info.Height, f.info.Width
	}
	return f, nil
}

// recoverDamage turns a panic of a decoder into an error.
func recoverDamage(format Format, err *error) {
	if cause := recover(); cause != nil {
		*err = damaged(format, fmt.Errorf("the decoder gave up: %v", cause))
	}
}

// Decode decodes a file and makes the target of it: an upright picture in sRGB
// of the size that [Target.Size] gives for the dimensions of [Inspect]. To make
// several sizes, decode to the largest and go on with [Picture.Resize].
//
// Of an animated GIF or PNG the first frame counts. The color profile of RGB
// pictures is converted to sRGB when it is a matrix profile, and otherwise
// ignored. CMYK becomes RGB by plain arithmetic.
//
// It fails as [Inspect] does, with an [InvalidError] when the file is damaged
// or cut short, and with the context's error when that ends first: while it
// waits for its turn (see [Limits]), or in the middle of decoding.
func Decode(ctx context.Context, data []byte, limits Limits, target Target) (picture *Picture, err error) {
	file, err := inspect(data, limits)
	if err != nil {
		return nil, err
	}
	info, config := file.info, file.config
	release, err := takeSlots(ctx, file.cost)
	if err != nil {
		return nil, err
	}
	// Slots are kept until the target is made: only then the decoder's memory
	// is free again.
	defer release()
	defer recoverDamage(info.Format, &err)

	decoded, err := decode(info.Format, &contextReader{ctx: ctx, reader: bytes.NewReader(file.data)})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, damaged(info.Format, err)
	}
	canvas := image.Rect(0, 0, config.Width, config.Height)
	if decoded.Bounds() != canvas && info.Format != GIF {
		return nil, invalidf("the %s file says %v pixels and holds %v", info.Format, canvas.Size(), decoded.Bounds().Size())
	}
	picture = read(decoded, canvas, target.reduction(info.Width, info.Height))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// Turned last, when the least pixels are left to turn.
	if target.Square {
		picture.cropToSquare(info.Orientation)
	}
	w, h := target.Size(info.Width, info.Height)
	if info.Orientation.swaps() {
		w, h = h, w
	}
	picture = picture.Resize(w, h)
	picture.orient(info.Orientation)
	if picture.model == modelGray {
		return picture, nil
	}
	if conversion := parseProfile(file.metadata.ICC(ctx)); conversion != nil {
		picture = picture.rgb()
		conversion.apply(picture)
	}
	if err := ctx.Err(); err != nil {
		return nil, err // the profile may have been missed
	}
	return picture, nil
}

func decode(format Format, reader io.Reader) (image.Image, error) {
	switch format {
	case JPEG:
		return jpeg.Decode(reader)
	case PNG:
		return png.Decode(reader)
	case GIF:
		return gif.Decode(reader) // stops after the first frame
	case WebP:
		img, err := webp.Decode(reader)
		if err == nil {
			expandRange(img)
		}
		return img, err
	}
	return nil, fmt.Errorf("no decoder for %s", format)
}

// expandRange spreads the samples of a lossy WebP, which are those of video
// (luma 16 to 235, chroma 16 to 240), to the full range that image.YCbCr means
// and the decoder does not convert to (golang.org/issue/40173).
func expandRange(img image.Image) {
	var ycc *image.YCbCr
	switch m := img.(type) {
	case *image.YCbCr:
		ycc = m
	case *image.NYCbCrA:
		ycc = &m.YCbCr
	default:
		return
	}
	var luma, chroma [256]uint8
	for v := range int32(256) {
		luma[v] = clamp(((v-16)*255*2 + 219) / (219 * 2))
		chroma[v] = clamp(128 + int32(math.Round(float64(v-128)*255/224)))
	}
	for i, v := range ycc.Y {
		ycc.Y[i] = luma[v]
	}
	for i := range ycc.Cb {
		ycc.Cb[i], ycc.Cr[i] = chroma[ycc.Cb[i]], chroma[ycc.Cr[i]]
	}
}

// contextReader stops a decoder when its context ends.
type contextReader struct {
	ctx    context.Context
	reader io.Reader
}

func (r *contextReader) Read(into []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.reader.Read(into)
}
