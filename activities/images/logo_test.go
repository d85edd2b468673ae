package images_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
	"github.com/dendrascience/dendra-jobs/activities/images/process"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
)

func TestLogoIsFittedAndStaysTransparent(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.LogoAvatarVariants(store, pictures)
	logo := image.NewNRGBA(image.Rect(0, 0, 1000, 400))
	for y := range 400 {
		for x := range 1000 {
			if x < 100 || x >= 900 { // two bars at the ends, which a crop would lose
				logo.SetNRGBA(x, y, color.NRGBA{R: 20, G: 120, B: 200, A: 255})
			}
		}
	}
	upload(t, store, "logo.png", encodePNG(t, logo))
	spec := images.LogoAvatarSpec{Bucket: "uploads", Key: "logo.png", Prefix: "logo-test"}
	result, output := handle(t, typ, spec)
	require.Equal(t, "3 variants written", result.Message)
	for i, want := range []image.Point{{X: 64, Y: 26}, {X: 128, Y: 51}, {X: 512, Y: 205}} {
		data, info := get(t, store, output.Variants[i].Key)
		require.Equal(t, "image/png", info.ContentType)
		img, err := png.Decode(bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, want, img.Bounds().Size())
		require.Equal(t, want, image.Pt(output.Variants[i].Width, output.Variants[i].Height))
		for _, x := range []int{2, want.X - 3} {
			require.Equal(t, color.NRGBA{R: 20, G: 120, B: 200, A: 255}, color.NRGBAModel.Convert(img.At(x, want.Y/2)))
		}
		_, _, _, alpha := img.At(want.X/2, want.Y/2).RGBA()
		require.Zero(t, alpha)
	}
	result, _ = handle(t, typ, spec)
	require.Equal(t, "3 variants already there, nothing written", result.Message)
}

func TestSmallLogoIsNotEnlarged(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	upload(t, store, "avatar.jpg", encodeJPEG(t, quadrants(t, 100, 80)))
	_, output := handle(t, images.LogoAvatarVariants(store, pictures), images.LogoAvatarSpec{Bucket: "uploads", Key: "avatar.jpg", Prefix: "avatar-test"})
	for i, want := range []image.Point{{X: 64, Y: 51}, {X: 100, Y: 80}, {X: 100, Y: 80}} {
		data, _ := get(t, store, output.Variants[i].Key)
		img, err := png.Decode(bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, want, img.Bounds().Size())
		imagingtest.RequireQuadrants(t, img)
	}
}

// TestLogoThatIsAnSVG: it is passed on without what is hostile, and pictures are made of it.
func TestLogoThatIsAnSVG(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	typ := images.LogoAvatarVariants(store, pictures)
	upload(t, store, "logo.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10" onload="alert(1)">
<script>alert(1)</script><rect width="10" height="10" fill="#ff0000"/><text>Dendra</text></svg>`))
	spec := images.LogoAvatarSpec{Bucket: "uploads", Key: "logo.svg", Prefix: "svg-test"}
	result, output := handle(t, typ, spec)
	require.Equal(t, "4 variants written", result.Message)
	require.Equal(t, []string{"pictures made of the SVG leave out its elements script, text"}, output.Notes)
	for i, want := range []image.Point{{X: 64, Y: 32}, {X: 128, Y: 64}, {X: 512, Y: 256}} {
		data, _ := get(t, store, output.Variants[i].Key)
		img, err := png.Decode(bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, want, img.Bounds().Size())
		require.Equal(t, color.NRGBA{R: 255, A: 255}, color.NRGBAModel.Convert(img.At(want.X/4, want.Y/2)))
		_, _, _, alpha := img.At(3*want.X/4, want.Y/2).RGBA()
		require.Zero(t, alpha)
	}
	vector := output.Variants[3]
	require.Equal(t, []any{"vector", "image/svg+xml", 4096, 2048}, []any{vector.Name, vector.ContentType, vector.Width, vector.Height})
	data, info := get(t, store, vector.Key)
	require.Equal(t, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10"><rect width="10" height="10" fill="#ff0000"></rect><text>Dendra</text></svg>`, string(data))
	require.Equal(t, "image/svg+xml", info.ContentType)
	require.Equal(t, "default-src 'none'; style-src 'unsafe-inline'; sandbox", info.Metadata["content-security-policy"])
	require.Equal(t, `attachment; filename="logo.svg"`, info.ContentDisposition)
	again, _ := handle(t, typ, spec)
	require.Equal(t, "4 variants already there, nothing written", again.Message)
}

// TestSVGThatCostsTooMuch: what it costs to draw ends one process, and fails one run.
func TestSVGThatCostsTooMuch(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	pool := process.NewPool(process.Settings{Seconds: 1})
	t.Cleanup(pool.Close)
	layers := strings.Repeat(`<path d="M0 0h99v99h-99z" fill="url(#g)"/>`, 19_000)
	upload(t, store, "layers.svg", []byte(`<svg viewBox="0 0 99 99"><radialGradient id="g"><stop stop-color="red"/></radialGradient>`+layers+`</svg>`))
	typ := images.LogoAvatarVariants(store, pool)
	_, err := typ.Handle(t.Context(), newRun(typ, images.LogoAvatarSpec{Bucket: "uploads", Key: "layers.svg", Prefix: "svg-layers"}))
	require.Contains(t, []string{errclass.ImageTooLarge, errclass.ImageProcessDied}, job.ClassOf(err), err)
	require.Empty(t, keysUnder(t, store, "svg-layers"))
}
