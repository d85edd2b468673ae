package imaging_test

import (
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"math/bits"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/draw"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// The hashes are those that the published implementation in JavaScript makes of the same pixels.
func TestThumbHash(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		w, h        int
		transparent bool
		want        string
	}{
		{100, 75, false, "HwgKLZpwdndwd3d3d2d3d5CACfiI"},
		{60, 100, false, "H/gJLBpwBnd3d3Z3d3eQgAn3eA=="},
		{90, 90, true, "o/iFFQwnoIawh3poiKCwCvlncHdweId3dw=="},
	} {
		img := image.NewNRGBA(image.Rect(0, 0, c.w, c.h))
		for y := range c.h {
			for x := range c.w {
				at := color.NRGBA{R: uint8(255 * x / c.w), G: uint8(255 * y / c.h), B: uint8(x * y), A: 255}
				if c.transparent {
					at.A = uint8(255 * (x + y) / (c.w + c.h))
				}
				img.SetNRGBA(x, y, at)
			}
		}
		require.Equal(t, c.want, base64.StdEncoding.EncodeToString(imaging.ThumbHash(img)))
	}
}

// look is how a file looks, of a run with one square variant.
func look(t testing.TB, engine imaging.Engine, file []byte) (l imaging.Look) {
	t.Helper()
	made := all(t, engine, file, append(squares(200), imaging.Wanted{Fit: imaging.Inside, Format: imaging.LookFormat})...)
	require.NoError(t, json.Unmarshal(made[1], &l))
	require.Len(t, l.Hash, 16)
	return l
}

// distance is in how many bits hashes differ.
func distance(t testing.TB, a, b imaging.Look) int {
	t.Helper()
	x, err := strconv.ParseUint(a.Hash, 16, 64)
	require.NoError(t, err)
	y, err := strconv.ParseUint(b.Hash, 16, 64)
	require.NoError(t, err)
	return bits.OnesCount64(x ^ y)
}

// A picture has a hash near to that of the same one in another size, quality, format and
// orientation of its samples, and far from that of another.
func TestHashOfOnePicture(t *testing.T) {
	t.Parallel()
	picture := scene(900, 601)
	want := look(t, engine, encodeJPEG(t, picture, 95))
	smaller := image.NewRGBA(image.Rect(0, 0, 450, 300))
	draw.CatmullRom.Scale(smaller, smaller.Rect, picture, picture.Rect, draw.Src, nil)
	for name, file := range map[string][]byte{
		"another quality": encodeJPEG(t, picture, 30),
		"PNG":             encodePNG(t, picture),
		"half the size":   encodeJPEG(t, smaller, 80),
		"turned":          withEXIF(encodeJPEG(t, upright(picture, 8), 95), bigEndian, 6),
	} {
		require.LessOrEqual(t, distance(t, want, look(t, engine, file)), 4, name)
	}
	require.Greater(t, distance(t, want, look(t, engine, encodeJPEG(t, upright(picture, 2), 95))), 16, "mirrored")
	require.Greater(t, distance(t, want, look(t, engine, encodePNG(t, noise(t, 300, 200)))), 16, "noise")
	if turbo, err := imaging.OpenEngine(imaging.Turbo, imaging.Codecs{}); err == nil {
		require.LessOrEqual(t, distance(t, want, look(t, turbo, encodeJPEG(t, picture, 95))), 2, "another engine")
	}
}

func TestMainColor(t *testing.T) {
	t.Parallel()
	img := image.NewNRGBA(image.Rect(0, 0, 300, 200))
	require.Empty(t, look(t, engine, encodePNG(t, img)).Color, "all is transparent")
	draw.Draw(img, image.Rect(0, 0, 300, 120), image.NewUniform(color.NRGBA{R: 40, G: 120, B: 200, A: 255}), image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(0, 0, 60, 60), image.NewUniform(color.NRGBA{R: 255, A: 255}), image.Point{}, draw.Src)
	require.Regexp(t, "^#2[78]7[78]c[78]$", look(t, engine, encodePNG(t, img)).Color)
}

// A look is the same whether variants are made too or were stored before: JPEGs have less chroma
// than PNGs.
func TestLookOfStoredVariants(t *testing.T) {
	t.Parallel()
	file := encodeJPEG(t, noise(t, 900, 600), 90)
	if _, err := imaging.OpenEngine(imaging.Turbo, imaging.Codecs{}); err == nil {
		file = subsampled(t, noise(t, 900, 600), image.YCbCrSubsampleRatio444)
	}
	wanted := imaging.Wanted{Fit: imaging.Inside, Format: imaging.LookFormat}
	for _, format := range []imaging.Format{imaging.JPEG, imaging.PNG} {
		variant := squares(200)[0]
		variant.Format = format
		var looks [2]imaging.Look
		for n, task := range []imaging.Task{{Outputs: []imaging.Wanted{variant, wanted}}, {Stored: []imaging.Wanted{variant}, Outputs: []imaging.Wanted{wanted}}} {
			require.NoError(t, engine.Make(t.Context(), file, imaging.DefaultLimits(), task, func(m imaging.Made) error {
				if task.Outputs[m.Output].Format != imaging.LookFormat {
					return nil
				}
				return json.Unmarshal(m.Data, &looks[n])
			}))
		}
		require.Equal(t, looks[0], looks[1], "%s", format)
	}
}
