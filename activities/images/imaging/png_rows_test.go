package imaging_test

import (
	"bytes"
	"compress/zlib"
	"image"
	"image/draw"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
)

// pngImages are those that are decoded row by row, at an odd size: in RGB with and without
// transparency, of 8 and of 16 bits, soft and noisy, so that all filters are used.
func pngImages(t *testing.T) []draw.Image {
	t.Helper()
	random := seeded(t)
	bounds := image.Rect(0, 0, 131, 77)
	all := []draw.Image{image.NewRGBA(bounds), image.NewNRGBA(bounds), image.NewRGBA64(bounds), image.NewNRGBA64(bounds)}
	for _, img := range all {
		draw.Draw(img, bounds, scene(131, 77), image.Point{}, draw.Src)
	}
	through, deep := image.NewNRGBA(bounds), image.NewNRGBA64(bounds)
	for i := range through.Pix {
		through.Pix[i] = uint8(random.IntN(256))
	}
	for i := range deep.Pix {
		deep.Pix[i] = uint8(i/8%131 + random.IntN(90))
	}
	return append(all, through, deep)
}

// Row by row a PNG has the pixels of the standard library.
func TestPNGRowsAreAsTheStandardLibrary(t *testing.T) {
	t.Parallel()
	for _, img := range pngImages(t) {
		for _, k := range []int{1, 2, 3, 8, 200} {
			rows, standard, err := imaging.DecodePNG(encodePNG(t, img), k)
			require.NoError(t, err)
			require.NotNil(t, rows, "%T", img)
			require.Equal(t, standard, rows, "%T, 1/%d", img, k)
		}
	}
}

// What is wrong with a file is for the standard library to say, and whatever it takes is decoded as it
// does: any filters, in any number of chunks, with rows that are too few or too many.
func TestPNGRowsTakeWhatTheStandardLibraryTakes(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	taken, refused := 0, 0
	for range 600 {
		w, h, depth, kind := 1+random.IntN(30), 1+random.IntN(20), []int{8, 16}[random.IntN(2)], []int{2, 6}[random.IntN(2)]
		step := depth / 8 * map[int]int{2: 3, 6: 4}[kind]
		var pixels []byte
		for range h {
			pixels = append(pixels, byte(random.IntN(5)))
			for range w * step {
				pixels = append(pixels, byte(random.IntN(256)))
			}
		}
		switch random.IntN(5) {
		case 0:
			pixels = pixels[:random.IntN(len(pixels))]
		case 1:
			pixels = append(pixels, make([]byte, random.IntN(3))...)
		case 2:
			pixels[random.IntN(h)*(1+w*step)] = byte(4 + random.IntN(2))
		}
		var body bytes.Buffer
		z := zlib.NewWriter(&body)
		_, _ = z.Write(pixels)
		_ = z.Close()
		file := imagingtest.AppendChunk([]byte("\x89PNG\r\n\x1a\n"), "IHDR", []byte{0, 0, 0, byte(w), 0, 0, 0, byte(h), byte(depth), byte(kind), 0, 0, 0})
		for body.Len() > 0 {
			file = imagingtest.AppendChunk(file, "IDAT", body.Next(1+random.IntN(body.Len())))
			if random.IntN(4) == 0 {
				file = imagingtest.AppendChunk(file, []string{"tEXt", "IDAT", "PLTE"}[random.IntN(3)], nil)
			}
		}
		file = imagingtest.AppendChunk(file, "IEND", nil)
		if random.IntN(4) == 0 {
			at := 33 + random.IntN(len(file)-33)
			file[at] ^= 1 << random.IntN(8)
		}
		rows, standard, err := imaging.DecodePNG(file, 1)
		require.NoError(t, err)
		if standard == nil {
			refused++
			require.Nil(t, rows, "%x", file)
		} else if rows != nil {
			taken++
			require.Equal(t, standard, rows, "%x", file)
		}
	}
	t.Logf("%d taken, %d refused by the standard library", taken, refused)
	require.Positive(t, taken)
	require.Positive(t, refused)
}

// Interlaced ones, those of other kinds, and those with a transparent color are for the standard
// library.
func TestPNGRowsLeaveOthers(t *testing.T) {
	t.Parallel()
	whole := imagingtest.PNG{Width: 9, Height: 9, Depth: 8, ColorType: 2, Sample: func(x, _, _ int) uint16 { return uint16(x) }}
	taken, _, err := imaging.DecodePNG(whole.Encode(t), 1)
	require.NoError(t, err)
	require.NotNil(t, taken)
	interlaced, gray, colored := whole, whole, whole
	interlaced.Interlaced, gray.ColorType, colored.Transparency = true, 0, make([]byte, 6)
	for _, other := range []imagingtest.PNG{interlaced, gray, colored} {
		rows, standard, err := imaging.DecodePNG(other.Encode(t), 1)
		require.NoError(t, err)
		require.Nil(t, rows)
		require.NotNil(t, standard)
	}
}

// A large picture takes the memory of what is left of it: a PNG row by row, a JPEG at a part of its
// size. Not parallel, so that nothing else allocates.
//
//nolint:paralleltest // No other test may allocate meanwhile.
func TestLargePicturesTakeLittleMemory(t *testing.T) {
	bounds := image.Rect(0, 0, 1500, 1500)
	for format, file := range map[string][]byte{"PNG": encodePNG(t, image.NewNRGBA64(bounds)), "JPEG": encodeJPEG(t, scene(1500, 1500), 80)} {
		took := allocated(func() {
			_, err := imaging.Decode(t.Context(), file, imaging.DefaultLimits(), imaging.Target{Side: 100})
			require.NoError(t, err)
		})
		t.Logf("%s of %d kB: %d kB", format, len(file)>>10, took>>10)
		require.Less(t, took, uint64(1500*1500)) // Decoded as a whole they take 8 and 1.5 bytes for each pixel.
	}
}
