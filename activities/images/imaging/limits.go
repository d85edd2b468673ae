package imaging

import (
	"image"
	"image/color"
)

// Limits bound what one picture may cost. They are checked against what the
// file says of itself, before anything is decoded.
type Limits struct {
	// MaxDecodeBytes bounds the memory that a decoder needs, as estimated from
	// dimensions, color model and, for JPEG, progressive coding.
	MaxDecodeBytes int64
	// MaxFileBytes bounds the encoded file.
	MaxFileBytes int64
	// MaxPixels bounds width × height.
	MaxPixels int64
	// MaxSide bounds width and height.
	MaxSide int
	// MaxScanBlocks bounds the blocks of 8×8 samples that the scans of a JPEG
	// code, added up over its scans: each may cost a pass over a component for a
	// few bytes of file.
	MaxScanBlocks int64
}

// DefaultLimits allow 60 MB files, 100 megapixels, sides as long as those of a JPEG, 1 GiB
// for a decode, and 40 million blocks in scans. The largest progressive JPEG within them has
// 3.4 million blocks, of which encoders code each about five times.
func DefaultLimits() Limits {
	return Limits{MaxDecodeBytes: 1 << 30, MaxFileBytes: 60_000_000, MaxPixels: 100_000_000, MaxSide: 65_535, MaxScanBlocks: 40_000_000}
}

func (l Limits) check(format Format, config image.Config, scans jpegScans) error {
	pixels := int64(config.Width) * int64(config.Height)
	switch {
	case config.Width <= 0 || config.Height <= 0:
		return invalidf("the %s file says it is %d×%d pixels", format, config.Width, config.Height)
	case max(config.Width, config.Height) > l.MaxSide:
		return limitf("the picture of %d×%d pixels has a side of more than %d", config.Width, config.Height, l.MaxSide)
	case pixels > l.MaxPixels:
		return limitf("the picture has %d×%d = %.1f megapixels, more than the limit of %.1f",
			config.Width, config.Height, float64(pixels)/1e6, float64(l.MaxPixels)/1e6)
	}
	if cost := decodeCost(format, config, scans.progressive); cost > l.MaxDecodeBytes {
		return limitf("decoding the picture of %d×%d pixels needs %d MiB, more than the limit of %d MiB",
			config.Width, config.Height, cost>>20, l.MaxDecodeBytes>>20)
	}
	if scans.blocks > l.MaxScanBlocks {
		return limitf("the %d scans of the JPEG file code %.1f million blocks of 8×8 samples, more than the limit of %.1f million",
			scans.scans, float64(scans.blocks)/1e6, float64(l.MaxScanBlocks)/1e6)
	}
	return nil
}

// What the decoders in WebAssembly take: for a pixel, and for a byte of one.
const (
	costOfHEIC = 12
	costOfAVIF = 9
)

// decodeCost estimates the bytes that the decoders allocate.
func decodeCost(format Format, config image.Config, progressive bool) int64 {
	pixels := int64(config.Width) * int64(config.Height)
	channels := int64(4)
	switch config.ColorModel {
	case color.GrayModel:
		channels = 1
	case color.YCbCrModel:
		channels = 3
	case color.Gray16Model:
		channels = 2
	case color.RGBA64Model, color.NRGBA64Model:
		channels = 8
	}
	switch format {
	case GIF: // one byte per pixel; the palette is its color model
		return pixels
	case JPEG:
		if progressive { // all coefficients are held, four bytes each
			return pixels * channels * 5
		}
	case HEIC:
		return pixels * costOfHEIC
	case AVIF:
		return pixels * channels * costOfAVIF
	case PNG:
		if _, paletted := config.ColorModel.(color.Palette); paletted {
			return pixels
		}
	}
	return pixels * channels
}
