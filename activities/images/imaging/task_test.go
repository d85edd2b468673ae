package imaging_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// What is made lies within its bounds and within the picture, keeps the ratio of sides, and is
// never enlarged.
func TestShapes(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		width, height := 1+random.IntN(9000), 1+random.IntN(9000)
		w := imaging.Wanted{Width: 1 + random.IntN(4096), Height: 1 + random.IntN(4096), Fit: imaging.Cover}
		if random.IntN(2) == 0 {
			w.Focus = &imaging.Point{X: random.Float64(), Y: random.Float64()}
		}
		if random.IntN(2) == 0 {
			w.Fit, w.Height = imaging.Inside, w.Height*random.IntN(2)
		}
		what := fmt.Sprintf("%+v of %d×%d", w, width, height)
		gotW, gotH := w.Size(width, height)
		cut := w.Cut(width, height)
		require.True(t, cut.In(image.Rect(0, 0, width, height)), what)
		require.True(t, gotW >= 1 && gotW <= min(w.Width, cut.Dx()), what)
		require.True(t, gotH >= 1 && gotH <= cut.Dy() && (w.Height == 0 || gotH <= w.Height), what)
		// Within a pixel of the ratio of what is shown.
		require.InDelta(t, float64(cut.Dx())*float64(gotH), float64(cut.Dy())*float64(gotW), float64(max(cut.Dx(), cut.Dy())), what)
		if w.Fit == imaging.Inside {
			require.Equal(t, image.Rect(0, 0, width, height), cut, what)
			require.True(t, gotW == w.Width || w.Height > 0 && gotH == w.Height || gotW == width && gotH == height, what)
		}
	}
}

// The focus is in the picture.
func TestFocus(t *testing.T) {
	t.Parallel()
	img := image.NewRGBA(image.Rect(0, 0, 900, 300))
	for y := range 300 {
		for x := range 900 {
			c := color.RGBA{128, 128, 128, 255}
			if x >= 600 {
				c = color.RGBA{200, 0, 0, 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	file := encodePNG(t, img)
	for name, test := range map[string]struct {
		focus *imaging.Point
		isRed bool
	}{"middle": {nil, false}, "right": {&imaging.Point{X: 1, Y: 0.5}, true}, "left": {&imaging.Point{X: 0, Y: 0.5}, false}} {
		task := imaging.Task{Outputs: []imaging.Wanted{{Width: 100, Height: 100, Fit: imaging.Cover, Focus: test.focus, Format: imaging.PNG}}}
		require.NoError(t, engine.Make(t.Context(), file, imaging.DefaultLimits(), task, func(m imaging.Made) error {
			require.Equal(t, [2]int{100, 100}, [2]int{m.Width, m.Height})
			r, g, _, _ := decodePNG(t, m.Data).At(50, 50).RGBA()
			require.Equal(t, test.isRed, r > 2*g, name)
			return nil
		}), name)
	}
}

// Outputs of several parts of a picture come out as each by itself.
func TestSeveralPartsOfOnePicture(t *testing.T) {
	t.Parallel()
	file := encodeJPEG(t, scene(640, 480), 90)
	outputs := []imaging.Wanted{
		{Width: 100, Height: 100, Fit: imaging.Cover}, {Width: 320, Fit: imaging.Inside}, {Width: 300, Height: 100, Fit: imaging.Cover},
		{Width: 640, Fit: imaging.Inside}, {Width: 200, Height: 200, Fit: imaging.Cover}, {Height: 90, Fit: imaging.Inside},
		{Width: 100, Height: 100, Fit: imaging.Cover, Focus: &imaging.Point{X: 1, Y: 1}},
	}
	for n := range outputs {
		outputs[n].Format = imaging.PNG
	}
	sizes := map[int][2]int{0: {100, 100}, 1: {320, 240}, 2: {300, 100}, 3: {640, 480}, 4: {200, 200}, 5: {120, 90}, 6: {100, 100}}
	made := map[int]imaging.Made{}
	require.NoError(t, engine.Make(t.Context(), file, imaging.DefaultLimits(), imaging.Task{Outputs: outputs}, func(m imaging.Made) error {
		made[m.Output] = m
		return nil
	}))
	require.Len(t, made, len(outputs))
	for n, w := range outputs {
		require.Equal(t, sizes[n], [2]int{made[n].Width, made[n].Height})
		require.NoError(t, engine.Make(t.Context(), file, imaging.DefaultLimits(), imaging.Task{Outputs: []imaging.Wanted{w}}, func(m imaging.Made) error {
			requireClose(t, decodePNG(t, m.Data), decodePNG(t, made[n].Data))
			return nil
		}))
	}
}

func decodePNG(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	return img
}

// requireClose compares pictures that were filtered once or twice.
func requireClose(t *testing.T, want, got image.Image) {
	t.Helper()
	require.Equal(t, want.Bounds(), got.Bounds())
	sum, n := 0, 0
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			a, b := rgba(want.At(x, y)), rgba(got.At(x, y))
			for _, d := range []int{int(a.R) - int(b.R), int(a.G) - int(b.G), int(a.B) - int(b.B)} {
				sum, n = sum+d*d, n+1
			}
		}
	}
	require.Less(t, float64(sum)/float64(n), 30.0, "mean square difference")
}
