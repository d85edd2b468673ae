package imaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/webp"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging/svg"
)

// Info describes a file without its pixels.
type Info struct {
	Format Format
	// Width and Height are those of the upright picture, in pixels.
	Width, Height int
	// Orientation is how the stored pixels are to be turned.
	Orientation Orientation
	// Taken is when the photo was taken, as EXIF says: 2006-01-02T15:04:05, with an offset from
	// UTC as +02:00 if there is one.
	Taken string
	// Copyright and Artist are those of EXIF.
	Copyright, Artist string
	// DecodeBytes is the memory that the decoder needs, as estimated.
	DecodeBytes int64
	// Notes say what of the file does not show as its maker meant it, a sentence each.
	Notes []string
	// Vector is the sanitised text of an SVG.
	Vector []byte
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
	info    Info
	config  image.Config // of the stored pixels
	profile *conversion  // to sRGB, nil if none is to be applied
	data    []byte       // without what follows the picture of a JPEG; the first frame of an animated WebP
	scans   jpegScans    // of a JPEG
	frame   *firstFrame  // of an animated WebP
	heif    heif         // of a HEIC or AVIF
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
	reader := bytes.NewReader(data)
	switch format {
	case JPEG:
		if f.config, err = jpeg.DecodeConfig(reader); err != nil {
			break
		}
		if f.scans, err = readScans(data); err != nil {
			return f, err
		}
		// What follows, such as the video of a motion photo, is not the picture's.
		data = data[:f.scans.end]
	case PNG:
		f.config, err = png.DecodeConfig(newPNGPixels(data))
	case GIF:
		f.config, err = gif.DecodeConfig(reader)
	case WebP:
		f.config, err = f.readWebP(data)
	case HEIC, AVIF:
		f.heif = readHEIF(data)
		if f.config = f.heif.config(format); f.heif.size == (image.Point{}) {
			return f, invalidf("the header of the %s file names no picture", format)
		}
		if f.heif.cut {
			return f, invalidf("the %s file is cut short", format)
		}
		if format == HEIC && f.config.Width < minHEICWidth {
			return f, invalidf("a HEIC of %d pixels in width is not read: it needs %d", f.config.Width, minHEICWidth)
		}
	case SVG:
		var document svg.Document
		if document, err = svg.Sanitize(data); err != nil {
			return f, invalidf("%s", err)
		}
		f.config, f.info.Vector, f.info.Notes = vectorConfig(document), document.Text, vectorNotes(document)
		data = document.Text
	}
	if invalid := (*InvalidError)(nil); err != nil && !errors.As(err, &invalid) {
		err = damaged(format, err)
	}
	if err != nil {
		return f, err
	}
	if err := limits.check(format, f.config, f.scans); err != nil {
		return f, err
	}
	if f.data == nil {
		f.data = data
	}
	metadata := ReadMetadata(format, data)
	f.info.Format, f.info.Orientation = format, metadata.Orientation
	f.info.Taken, f.info.Copyright, f.info.Artist = metadata.Taken, metadata.Copyright, metadata.Artist
	f.info.Width, f.info.Height = f.config.Width, f.config.Height
	f.info.DecodeBytes = decodeCost(format, f.config, f.scans.progressive)
	f.readProfile(metadata)
	f.info.Notes = append(f.info.Notes, f.heif.notes(format)...)
	if isAnimated(format, data) {
		f.info.Notes = append(f.info.Notes, "the file is an animation, of which the first frame is shown")
	}
	if f.info.Orientation.swaps() {
		f.info.Width, f.info.Height = f.info.Height, f.info.Width
	}
	return f, nil
}

// readWebP reads the size of a WebP. Of an animated one that is the size of its canvas.
func (f *file) readWebP(data []byte) (image.Config, error) {
	if !isAnimatedWebP(data) {
		return webp.DecodeConfig(bytes.NewReader(data))
	}
	first, err := readFirstFrame(data)
	if err != nil {
		return image.Config{}, err
	}
	config, err := webp.DecodeConfig(bytes.NewReader(first.file))
	if err != nil {
		return config, err
	}
	if size := first.within.Size(); size != image.Pt(config.Width, config.Height) {
		return config, invalidf("the first frame of the WebP file says %v pixels and holds %d×%d", size, config.Width, config.Height)
	}
	if first.within != first.canvas {
		config.ColorModel = color.NRGBAModel
	}
	config.Width, config.Height = first.canvas.Dx(), first.canvas.Dy()
	f.data, f.frame = first.file, &first
	return config, nil
}

// readProfile finds how colors become those of sRGB.
func (f *file) readProfile(metadata Metadata) {
	icc := metadata.ICC()
	var understood bool
	switch f.config.ColorModel {
	case color.GrayModel, color.Gray16Model:
		return
	case color.CMYKModel:
		if f.profile, understood = parseLUT(icc, 4); !understood {
			f.info.Notes = append(f.info.Notes, "the picture is in CMYK, which becomes RGB without a profile")
		}
		return
	}
	if len(icc) == 0 {
		return
	}
	if f.profile, understood = parseMatrix(icc); !understood {
		f.profile, understood = parseLUT(icc, 3)
	}
	if !understood {
		f.info.Notes = append(f.info.Notes, "the color profile cannot be read, and is not applied")
	}
}

// recoverDamage turns a panic of a decoder into an error.
func recoverDamage(format Format, err *error) {
	if cause := recover(); cause != nil {
		*err = damaged(format, fmt.Errorf("the decoder gave up: %v", cause))
	}
}

// decode decodes all pixels. It stops when the context ends.
func (f file) decode(ctx context.Context, codecs Codecs) (image.Image, error) {
	reader := &contextReader{ctx: ctx, reader: bytes.NewReader(f.data)}
	switch f.info.Format {
	case JPEG:
		return jpeg.Decode(reader)
	case PNG:
		reader.reader = newPNGPixels(f.data)
		return png.Decode(reader)
	case GIF:
		return gif.Decode(reader) // stops after the first frame
	case WebP:
		img, err := webp.Decode(reader)
		if err != nil {
			return nil, err
		}
		expandRange(img)
		if f.frame != nil {
			img = f.frame.onCanvas(img)
		}
		return img, nil
	case HEIC:
		return decodeBy(codecs.DecodeHEIC, f, reader)
	case AVIF:
		return decodeBy(codecs.DecodeAVIF, f, reader)
	}
	return nil, fmt.Errorf("no decoder for %s", f.info.Format)
}

// decodeBy decodes a HEIC or AVIF.
func decodeBy(decoder func(io.Reader) (image.Image, error), f file, reader io.Reader) (image.Image, error) {
	if decoder == nil {
		return nil, fmt.Errorf("this program has no decoder of %s", f.info.Format)
	}
	img, err := decoder(reader)
	if err == nil && f.heif.isVideoRange() {
		expandRange(img) // AVIF is in RGB by now.
	}
	return img, err
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
