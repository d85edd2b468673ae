package images_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images"
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
		requireQuadrants(t, img)
	}
}
