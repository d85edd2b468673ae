package imaging_test

import (
	"bytes"
	"image"
	"image/color"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
)

// colors of the samples.
var (
	red, green   = color.NRGBA{R: 220, G: 30, B: 30, A: 255}, color.NRGBA{R: 30, G: 200, B: 30, A: 255}
	blue, yellow = color.NRGBA{R: 30, G: 30, B: 220, A: 255}, color.NRGBA{R: 220, G: 210, B: 30, A: 255}
)

func requireColors(t *testing.T, img image.Image, want ...color.NRGBA) {
	t.Helper()
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	for i, c := range want {
		got := nrgba(img.At(w/4+i%2*w/2, h/4+i/2*h/2))
		for _, pair := range [][2]uint8{{c.R, got.R}, {c.G, got.G}, {c.B, got.B}} {
			require.InDelta(t, pair[0], pair[1], 8, "quadrant %d: %v, not %v", i, got, c)
		}
	}
}

func TestHEIFFiles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file   []byte
		format imaging.Format
		size   image.Point
		colors []color.NRGBA
	}{
		"HEIC":            {imagingtest.HEIC(), imaging.HEIC, image.Pt(128, 96), []color.NRGBA{red, green, blue, yellow}},
		"AVIF":            {imagingtest.AVIF(), imaging.AVIF, image.Pt(64, 48), []color.NRGBA{red, green, blue, yellow}},
		"AVIF, turned":    {imagingtest.AVIFTurned(), imaging.AVIF, image.Pt(48, 64), []color.NRGBA{green, yellow, red, blue}},
		"AVIF of 10 bits": {imagingtest.DeepAVIF(), imaging.AVIF, image.Pt(64, 48), []color.NRGBA{red, green, blue, yellow}},
	} {
		info, err := imaging.Inspect(c.file, imaging.DefaultLimits())
		require.NoError(t, err, name)
		require.Equal(t, c.format, info.Format)
		require.Equal(t, c.size, image.Pt(info.Width, info.Height), name)
		require.Empty(t, info.Notes, name)
		img := decodePNG(t, all(t, engine, c.file, imaging.Wanted{Width: 200, Fit: imaging.Inside, Format: imaging.PNG})[0])
		require.Equal(t, c.size, img.Bounds().Size())
		requireColors(t, img, c.colors...)
		for cut := range len(c.file) {
			_, _ = imaging.Inspect(c.file[:cut], imaging.DefaultLimits())
		}
		var invalid *imaging.InvalidError
		for _, cut := range []int{len(c.file) - 10, len(c.file) * 3 / 4} {
			task := imaging.Task{Outputs: squares(20)}
			err := engine.Make(t.Context(), c.file[:cut], imaging.DefaultLimits(), task, func(imaging.Made) error { return nil })
			require.ErrorAs(t, err, &invalid, "%s cut to %d bytes", name, cut)
			require.NotContains(t, err.Error(), "\n")
		}
	}
}

// The decoder mixes up the colors of narrow ones.
func TestNarrowHEICIsRefused(t *testing.T) {
	t.Parallel()
	file := bytes.Clone(imagingtest.HEIC())
	file[bytes.LastIndex(file, []byte("ispe"))+11] = 126
	_, err := imaging.Inspect(file, imaging.DefaultLimits())
	var invalid *imaging.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.ErrorContains(t, err, "a HEIC of 126 pixels in width is not read: it needs 128")
}

// EXIF says when, and has no say in how the picture is turned.
func TestEXIFOfAVIF(t *testing.T) {
	t.Parallel()
	file := bytes.Clone(imagingtest.AVIF())
	orientation := bytes.Index(file, []byte("\x01\x12\x00\x03\x00\x00\x00\x01"))
	require.Positive(t, orientation)
	file[orientation+9] = 6
	info, err := imaging.Inspect(file, imaging.DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, "2026-07-08T09:10:11+02:00", info.Taken)
	require.Equal(t, "Ann Example", info.Artist)
	require.Equal(t, imaging.Normal, info.Orientation)
}

// Colors that are not converted are named.
func TestColorsOfHEIC(t *testing.T) {
	t.Parallel()
	for at, value := range map[int]byte{4: 9, 6: 16, 8: 1} { // BT.2020; PQ; the matrix of BT.709
		// The header of a HEIC is that of an AVIF of another brand.
		file := bytes.ReplaceAll(imagingtest.AVIF(), []byte("avif"), []byte("heic"))
		file[bytes.Index(file, []byte("ispe"))+11] = 128 // It is read by its header alone.
		info, err := imaging.Inspect(file, imaging.DefaultLimits())
		require.NoError(t, err)
		require.Empty(t, info.Notes)
		nclx := bytes.Index(file, []byte("nclx"))
		require.Positive(t, nclx)
		file[nclx+at+1] = value
		info, err = imaging.Inspect(file, imaging.DefaultLimits())
		require.NoError(t, err)
		require.Equal(t, []string{"the colors are not those of sRGB, and are not converted"}, info.Notes)
	}
}

// A program without codecs says that it has none.
func TestWithoutCodecs(t *testing.T) {
	t.Parallel()
	for _, file := range [][]byte{imagingtest.HEIC(), imagingtest.AVIF()} {
		err := imaging.Engine{}.Make(t.Context(), file, imaging.DefaultLimits(), imaging.Task{Outputs: squares(20)}, func(imaging.Made) error { return nil })
		require.ErrorContains(t, err, "this program has no decoder")
	}
}
