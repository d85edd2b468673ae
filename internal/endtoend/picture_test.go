package endtoend_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// corners are the colors of a test picture: above left and right, below left
// and right.
var corners = [4]color.RGBA{{R: 210, G: 40, B: 40}, {R: 40, G: 190, B: 40}, {R: 40, G: 40, B: 210}, {R: 210, G: 200, B: 40}}

// quadrants is an upright picture of four colors, with grain that makes its file
// one of its own.
func quadrants(random *rand.Rand, w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		row := img.Pix[y*img.Stride:]
		for x := range w {
			c := corners[2*(2*y/h)+2*x/w]
			grain := uint8(random.Uint32() & 15)
			row[4*x], row[4*x+1], row[4*x+2], row[4*x+3] = c.R+grain, c.G+grain, c.B+grain, 255
		}
	}
	return img
}

// turned is what a camera on its side stores of an upright picture: orientation 6
// turns it back by a quarter to the right.
func turned(upright *image.RGBA) *image.RGBA {
	w, h := upright.Rect.Dx(), upright.Rect.Dy()
	out := image.NewRGBA(image.Rect(0, 0, h, w))
	for y := range w { // of out
		for x := range h {
			from := upright.PixOffset(w-1-y, x)
			copy(out.Pix[out.PixOffset(x, y):][:4], upright.Pix[from:from+4])
		}
	}
	return out
}

// photo is a JPEG file of 4000×3000 pixels, upright, as a telephone on its side
// makes it: turned, with the orientation and the position in its EXIF.
func photo(t *testing.T, random *rand.Rand) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, jpeg.Encode(&file, turned(quadrants(random, 4000, 3000)), &jpeg.Options{Quality: 90}))
	return withEXIF(file.Bytes(), 6)
}

func smallPhoto(t *testing.T, random *rand.Rand) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, jpeg.Encode(&file, quadrants(random, 400, 300), nil))
	return file.Bytes()
}

func logo(t *testing.T, random *rand.Rand) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, png.Encode(&file, quadrants(random, 300, 200)))
	return file.Bytes()
}

// place is the GPS area information of the photo.
const place = "Blue Oak Ranch"

// withEXIF puts an APP1 segment into a JPEG file: the orientation, and a GPS
// directory with latitude, longitude and the name of the place (EXIF 2.32, 4.6).
func withEXIF(file []byte, orientation uint16) []byte {
	const ascii, short, long, rational, undefined = 2, 3, 4, 5, 7
	const directories = 8 + 2 + 2*12 + 4 // the GPS directory stands here
	const values = directories + 2 + 5*12 + 4
	tiff := []byte("II*\x00\x08\x00\x00\x00")
	entry := func(tag, kind uint16, count, value uint32) {
		tiff = binary.LittleEndian.AppendUint16(tiff, tag)
		tiff = binary.LittleEndian.AppendUint16(tiff, kind)
		tiff = binary.LittleEndian.AppendUint32(tiff, count)
		tiff = binary.LittleEndian.AppendUint32(tiff, value)
	}
	directory := func(entries uint16) { tiff = binary.LittleEndian.AppendUint16(tiff, entries) }
	last := func() { tiff = binary.LittleEndian.AppendUint32(tiff, 0) }

	directory(2)
	entry(0x0112, short, 1, uint32(orientation))
	entry(0x8825, long, 1, directories)
	last()
	directory(5)
	entry(0x0001, ascii, 2, 'N')
	entry(0x0002, rational, 3, values)
	entry(0x0003, ascii, 2, 'W')
	entry(0x0004, rational, 3, values+24)
	entry(0x001c, undefined, uint32(len("ASCII\x00\x00\x00"+place)), values+48)
	last()
	for _, n := range []uint32{37, 1, 22, 1, 5512, 100, 121, 1, 44, 1, 1207, 100} {
		tiff = binary.LittleEndian.AppendUint32(tiff, n)
	}
	tiff = append(tiff, "ASCII\x00\x00\x00"+place...)

	segment := append([]byte("Exif\x00\x00"), tiff...)
	out := append([]byte{}, file[:2]...)
	out = append(out, 0xff, 0xe1)
	out = binary.BigEndian.AppendUint16(out, uint16(len(segment)+2))
	return append(append(out, segment...), file[2:]...)
}

// requireUpright checks the color of each corner.
func requireUpright(t *testing.T, img image.Image) {
	t.Helper()
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	for i, want := range corners {
		x, y := w/8+(i%2)*(w-w/4), h/8+(i/2)*(h-h/4)
		r, g, b, _ := img.At(x, y).RGBA()
		for c, pair := range [3][2]uint32{{uint32(want.R), r >> 8}, {uint32(want.G), g >> 8}, {uint32(want.B), b >> 8}} {
			require.InDelta(t, pair[0]+7, pair[1], 16, "corner %d, channel %d of %d×%d", i, c, w, h)
		}
	}
}
