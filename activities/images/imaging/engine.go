package imaging

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"io"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging/turbo"
)

// EngineName says what decodes and encodes JPEG.
type EngineName string

// The engines.
const (
	// Turbo is libjpeg-turbo, with [Standard] for files that it does not take.
	Turbo EngineName = "libjpeg-turbo"
	// Standard is jpegn for sequential files, and Go's standard library for others.
	Standard EngineName = "go"
)

// Engine makes pictures. Its zero value is [Standard] without codecs. Engines make pictures of the
// same sizes, which differ by what people do not see.
type Engine struct {
	turbo  *turbo.Library
	codecs Codecs
}

// Codecs read and make formats that Go's libraries do not. Those that are nil are not there.
type Codecs struct {
	// EncodeWebP makes a lossy WebP, at a quality from 1 to 100.
	EncodeWebP func(to io.Writer, m image.Image, quality int) error
	// DecodeHEIC and DecodeAVIF give the upright picture.
	DecodeHEIC, DecodeAVIF func(from io.Reader) (image.Image, error)
}

// OpenEngine gives an engine. It fails for [Turbo] where the library is not installed.
func OpenEngine(name EngineName, codecs Codecs) (e Engine, err error) {
	e.codecs = codecs
	if name == Turbo {
		e.turbo, err = turbo.Open()
	}
	return e, err
}

// Name is what the engine uses.
func (e Engine) Name() EngineName {
	if e.turbo == nil {
		return Standard
	}
	return Turbo
}

// maxScale is the most that a decoder of JPEG reduces by.
const maxScale = 8

// progressivePixels is from where on a JPEG is progressive. The headers of its scans cost about 400
// bytes, which a small picture does not save. The bound is an estimate.
const progressivePixels = 200 * 200

// scaled decodes a JPEG at 1/k of its size or larger. It reports false for files that are for the
// standard library: in other colors, or damaged, so that both engines refuse the same files.
func (e Engine) scaled(f file, k int) (*Picture, bool) {
	if f.info.Format != JPEG {
		return nil, false
	}
	k = min(k, maxScale)
	if e.turbo == nil {
		img := f.decodeSequential(k)
		if img == nil {
			return nil, false
		}
		p := read(img, img.Bounds(), 1)
		p.setGrid(f.config.Width, f.config.Height, 1/float64(k), 1/float64(k))
		return p, true
	}
	decoded, err := e.turbo.Decode(f.data, k)
	if err != nil {
		return nil, false
	}
	p := &Picture{w: f.config.Width, h: f.config.Height}
	if len(decoded.Planes) == 3 {
		p.model = modelYCC
	}
	for _, from := range decoded.Planes {
		p.planes = append(p.planes, plane{
			pix: from.Pix, stride: from.Stride, w: from.Width, h: from.Height,
			sx: from.Across / float64(k), sy: from.Down / float64(k),
		})
	}
	// The library pads luma to whole groups of samples.
	p.planes[0].w, p.planes[0].h = decoded.Width, decoded.Height
	return p, true
}

// jpeg encodes a picture as [Picture.JPEG] does. It is progressive where that is smaller.
func (e Engine) jpeg(p *Picture, quality int) ([]byte, error) {
	if e.turbo == nil {
		return p.JPEG(quality)
	}
	progressive := p.w*p.h >= progressivePixels
	switch p.model {
	case modelRGB, modelRGBA:
		return e.turbo.EncodeRGB(p.opaqueImage().Pix, p.w, p.h, quality, progressive)
	case modelGray, modelYCC:
	}
	planes := turbo.Planes{Width: p.w, Height: p.h, Subsampling: turbo.Gray}
	if p.model == modelYCC {
		planes.Subsampling = map[image.YCbCrSubsampleRatio]turbo.Subsampling{
			image.YCbCrSubsampleRatio444: turbo.Full, image.YCbCrSubsampleRatio422: turbo.HalfWidth,
			image.YCbCrSubsampleRatio420: turbo.Quarter, image.YCbCrSubsampleRatio440: turbo.HalfHeight,
		}[p.subsampling()]
	}
	for _, from := range p.planes {
		planes.Planes = append(planes.Planes, turbo.Plane{Pix: from.pix, Stride: from.stride, Width: from.w, Height: from.h})
	}
	file, err := e.turbo.Encode(planes, quality, progressive)
	if err != nil {
		return nil, fmt.Errorf("encode JPEG of %d×%d pixels: %w", p.w, p.h, err)
	}
	return file, nil
}

// webp encodes a picture as lossy WebP with its transparency, at a quality from 1 to 100.
func (e Engine) webp(p *Picture, quality int) ([]byte, error) {
	if e.codecs.EncodeWebP == nil {
		return nil, errors.New("this program has no encoder of WebP")
	}
	var out bytes.Buffer
	if err := e.codecs.EncodeWebP(&out, p.videoImage(), quality); err != nil {
		return nil, fmt.Errorf("encode WebP of %d×%d pixels: %w", p.w, p.h, err)
	}
	return out.Bytes(), nil
}
