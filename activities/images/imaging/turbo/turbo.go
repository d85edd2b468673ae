// Package turbo decodes and encodes JPEG by libjpeg-turbo, where it is installed, without cgo. It
// calls C: a damaged file may crash the process, so it is for processes that may die.
//
// Functions and constants are those of TurboJPEG 2 (turbojpeg.h of libjpeg-turbo 2.0). The
// libraries of the versions 2 and 3 have them. Sizes of planes are those that the library gives.
package turbo

import "errors"

// Subsampling is how much less chroma than luma a JPEG has: TJSAMP of turbojpeg.h.
type Subsampling int32

// The subsamplings that are encoded. Decoding gives others too.
const (
	Full       Subsampling = 0 // 4:4:4
	HalfWidth  Subsampling = 1 // 4:2:2
	Quarter    Subsampling = 2 // 4:2:0
	Gray       Subsampling = 3 // no chroma
	HalfHeight Subsampling = 4 // 4:4:0
)

// Plane is one channel, of 8 bits a sample.
type Plane struct {
	Pix []byte
	// Stride is from one row to the next, in samples.
	Stride        int
	Width, Height int
	// Across and Down are how many samples it has for one of luma: 1 or less.
	Across, Down float64
}

// Planes are luma, or Y, Cb and Cr as in JFIF.
type Planes struct {
	Width, Height int // of luma
	Subsampling   Subsampling
	Planes        []Plane
}

// ErrOther says that a JPEG is in other colors than gray or YCbCr.
var ErrOther = errors.New("the JPEG is neither gray nor YCbCr")
