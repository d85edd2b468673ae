package imaging

import (
	"bytes"
	"image"
	"image/color"
	"io"
	"slices"
	"strings"

	"github.com/gen2brain/jpegn"
)

const (
	endOfImage = "\xff\xd9"
	// noCode are 64 bits of entropy-coded data that no code begins with: ones (T.81, C.2).
	noCode = "\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00\xff\x00"
)

// decodeSequential decodes what most photos are: a JPEG with one sequential scan and no restart
// markers, in gray or YCbCr. It gives it at 1/k of its size, rounded up; k is 1, 2, 4 or 8. It gives
// nil for other files, and for damaged ones, which its decoder would conceal: the standard library
// decides about them.
func (f file) decodeSequential(k int) (img image.Image) {
	if f.scans.first == 0 || f.scans.progressive || f.config.ColorModel != color.YCbCrModel && f.config.ColorModel != color.GrayModel {
		return nil
	}
	end := entropyEnd(f.data, f.scans.first)
	if string(f.data[end:]) != endOfImage {
		return nil
	}
	defer func() { // A panic of the decoder is one more file that is not for it.
		if recover() != nil {
			img = nil
		}
	}()
	// At a wrong code the decoder stops, and leaves the rest of the planes as it was: 0. Where the
	// data end early it would not stop: a wrong code stands behind them.
	decoded, err := jpegn.Decode(sized{
		io.MultiReader(bytes.NewReader(f.data[:end]), strings.NewReader(noCode+endOfImage)), end + len(noCode+endOfImage),
	}, &jpegn.Options{ScaleDenom: k})
	if err != nil {
		return nil
	}
	switch m := decoded.(type) {
	case *image.YCbCr:
		if endsWritten(m.Cr, m.CStride, 8/k) {
			return m
		}
	case *image.Gray:
		if endsWritten(m.Pix, m.Stride, 8/k) {
			return m
		}
	}
	return nil
}

// sized is a reader that knows its length, for which the decoder makes room at once.
type sized struct {
	io.Reader

	size int
}

func (s sized) Len() int { return s.size }

// entropyEnd is where entropy-coded data end that begin at a place: at the first byte FF that no 00
// follows.
func entropyEnd(data []byte, at int) int {
	for {
		next := bytes.IndexByte(data[at:], 0xff)
		if next < 0 {
			return len(data)
		}
		if at += next; at+1 == len(data) || data[at+1] != 0 {
			return at
		}
		at += 2
	}
}

// endsWritten reports whether the last block of n×n samples of a plane has one that is not 0. The
// plane has whole blocks.
func endsWritten(pix []uint8, stride, n int) bool {
	for row := range n {
		end := len(pix) - row*stride
		if slices.ContainsFunc(pix[end-n:end], func(v uint8) bool { return v != 0 }) {
			return true
		}
	}
	return false
}
