package imaging_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/webp"

	"github.com/dendrascience/dendra-jobs/activities/images/codecs"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// engine is the standard one.
var engine, _ = imaging.OpenEngine(imaging.Standard, codecs.All())

// openTurbo skips where the library is not installed.
func openTurbo(tb testing.TB) imaging.Engine {
	tb.Helper()
	turbo, err := imaging.OpenEngine(imaging.Turbo, codecs.All())
	if err != nil {
		tb.Skip(err)
	}
	return turbo
}

// all makes the outputs of a file.
func all(tb testing.TB, engine imaging.Engine, file []byte, outputs ...imaging.Wanted) [][]byte {
	tb.Helper()
	made := make([][]byte, len(outputs))
	require.NoError(tb, engine.Make(tb.Context(), file, imaging.DefaultLimits(), imaging.Task{Outputs: outputs}, func(m imaging.Made) error {
		made[m.Output] = m.Data
		return nil
	}))
	return made
}

func squares(sides ...int) (outputs []imaging.Wanted) {
	for _, side := range sides {
		outputs = append(outputs, imaging.Wanted{Width: side, Height: side, Fit: imaging.Cover, Format: imaging.JPEG, Quality: 82})
	}
	return outputs
}

// subsampled is a JPEG with chroma of a ratio, made of a picture by the library.
func subsampled(tb testing.TB, img image.Image, ratio image.YCbCrSubsampleRatio) []byte {
	tb.Helper()
	file, err := imaging.EncodeTurbo(img, ratio)
	require.NoError(tb, err)
	return file
}

var ratios = []image.YCbCrSubsampleRatio{
	image.YCbCrSubsampleRatio444, image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio420, image.YCbCrSubsampleRatio440,
}

// Both engines make the same pictures of every subsampling, at odd sizes and at every scale, and
// of gray ones.
func TestEnginesAgree(t *testing.T) {
	t.Parallel()
	turbo := openTurbo(t)
	gray := image.NewGray(image.Rect(0, 0, 533, 401))
	for n := range gray.Pix {
		gray.Pix[n] = uint8(n % 533 / 3)
	}
	files := map[string][]byte{"gray": encodeJPEG(t, gray, 90)}
	for _, ratio := range ratios {
		for _, size := range []image.Point{{X: 320, Y: 240}, {X: 533, Y: 401}, {X: 17, Y: 9}, {X: 1, Y: 1}} {
			files[fmt.Sprintf("%s of %s", ratio, size)] = subsampled(t, scene(size.X, size.Y), ratio)
		}
	}
	outputs := squares(400, 201, 100, 60, 24)
	for name, file := range files {
		want := all(t, engine, file, outputs...)
		for n, data := range all(t, turbo, file, outputs...) {
			requireClose(t, decodeStandard(t, want[n]), decodeStandard(t, data))
			config, err := jpeg.DecodeConfig(bytes.NewReader(data))
			require.NoError(t, err, name)
			require.LessOrEqual(t, config.Width, outputs[n].Width, name)
		}
		// Each at a scale of its own.
		for _, output := range outputs {
			t.Log(name, output.Width)
			requireClose(t, decodeStandard(t, all(t, engine, file, output)[0]), decodeStandard(t, all(t, turbo, file, output)[0]))
		}
	}
}

// The scaled decoders cost nothing of the quality: both engines are as near to the original with a
// JPEG as with a PNG, which is decoded whole.
func TestScaledIsAsSharp(t *testing.T) {
	t.Parallel()
	original := scene(1512, 1134)
	output := imaging.Wanted{Width: 540, Fit: imaging.Inside, Format: imaging.JPEG, Quality: 95}
	want := scene(540, 405)
	whole := psnr(t, want, decodeStandard(t, all(t, engine, encodePNG(t, original), output)[0]))
	for name, open := range map[imaging.EngineName]func(testing.TB) imaging.Engine{
		imaging.Standard: func(testing.TB) imaging.Engine { return engine }, imaging.Turbo: openTurbo,
	} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			got := psnr(t, want, decodeStandard(t, all(t, open(t), encodeJPEG(t, original, 95), output)[0]))
			t.Logf("%.2f dB, whole %.2f dB", got, whole)
			require.Greater(t, got, whole-0.5)
		})
	}
}

// Both engines refuse the same files: the library stops at the first warning, and then the
// standard library decides.
func TestTurboRefusesWhatGoRefuses(t *testing.T) {
	t.Parallel()
	turbo := openTurbo(t)
	file := encodeJPEG(t, scene(300, 200), 90)
	for _, cut := range []int{len(file) / 4, len(file) / 2, len(file) - 20} {
		err := turbo.Make(t.Context(), file[:cut], imaging.DefaultLimits(), imaging.Task{Outputs: squares(60)}, func(imaging.Made) error { return nil })
		var invalid *imaging.InvalidError
		require.ErrorAs(t, err, &invalid)
	}
}

// Turned pictures with a color profile take the way of RGB.
func TestTurboAppliesOrientationAndProfile(t *testing.T) {
	t.Parallel()
	turbo := openTurbo(t)
	icc := profile(displayP3, sRGBCurve())
	file := withEXIF(withSegment(encodeJPEG(t, scene(300, 203), 90), 0xe2, append([]byte("ICC_PROFILE\x00\x01\x01"), icc...)), bigEndian, 6)
	output := imaging.Wanted{Width: 203, Height: 300, Fit: imaging.Inside, Format: imaging.JPEG, Quality: 90}
	requireClose(t, decodeStandard(t, all(t, engine, file, output)[0]), decodeStandard(t, all(t, turbo, file, output)[0]))
}

// A large picture is progressive, a small one is not: each is the smaller way.
func TestProgressiveWhereSmaller(t *testing.T) {
	t.Parallel()
	turbo := openTurbo(t)
	made := all(t, turbo, photo(t, 640, 480), squares(400, 60)...)
	require.Contains(t, string(made[0]), "\xff\xc2", "SOF2")
	require.NotContains(t, string(made[1]), "\xff\xc2")
}

// Lossy WebP has the pixels of the picture, and its transparency. Beside a PNG it is made by way of RGB.
func TestWebP(t *testing.T) {
	t.Parallel()
	output := imaging.Wanted{Width: 91, Height: 61, Fit: imaging.Inside, Format: imaging.WebP, Quality: 100}
	lossless := output
	lossless.Format = imaging.PNG
	file := encodeJPEG(t, scene(91, 61), 95)
	want := asPNG(t, decoded(t, file))
	for _, outputs := range [][]imaging.Wanted{{output}, {output, lossless}} {
		got := psnr(t, want, asPNG(t, decoded(t, all(t, engine, file, outputs...)[0])))
		t.Logf("%d outputs: %.1f dB", len(outputs), got)
		require.Greater(t, got, 40.0)
	}
	output.Width, output.Height = 90, 60
	through := image.NewNRGBA(image.Rect(0, 0, 90, 60))
	through.SetNRGBA(1, 1, color.NRGBA{R: 200, A: 255})
	got, err := webp.Decode(bytes.NewReader(all(t, engine, encodePNG(t, through), output)[0]))
	require.NoError(t, err)
	_, _, _, alpha := got.At(60, 40).RGBA()
	require.Zero(t, alpha)
}
