package imaging_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
)

func TestSniffNamesWhatItSees(t *testing.T) {
	t.Parallel()
	for looks, file := range map[string]string{
		"empty":                           "",
		"SVG":                             "<?xml version='1.0'?>\n<!-- a logo -->\n<svg xmlns='http://www.w3.org/2000/svg'/>",
		"HTML":                            "<!DOCTYPE html><html></html>",
		"PDF":                             "%PDF-1.7\n",
		"of the HEIC file names no":       "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00",
		"of the AVIF file names no":       "\x00\x00\x00\x18ftypmif1\x00\x00\x00\x00miafavif",
		"TIFF":                            "II*\x00\x08\x00\x00\x00",
		"BMP":                             "BM\x00\x00",
		"plain text":                      "station,latitude\n",
		"unknown binary data":             "\x01\x02\x03\x00\x04",
		"application/zip":                 "PK\x03\x04",
		"video or another ISO media file": "\x00\x00\x00\x18ftypisom",
	} {
		_, err := imaging.Inspect([]byte(file), imaging.DefaultLimits())
		var invalid *imaging.InvalidError
		require.ErrorAs(t, err, &invalid, looks)
		require.ErrorContains(t, err, looks)
		require.NotContains(t, err.Error(), "\n")
	}
}

// Not parallel, so that nothing else allocates meanwhile.
//
//nolint:paralleltest // No other test may allocate meanwhile.
func TestBombIsRefusedBeforeItIsDecoded(t *testing.T) {
	file := imagingtest.Bomb()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := imaging.Decode(t.Context(), file, imaging.DefaultLimits(), whole)
	runtime.ReadMemStats(&after)
	var limit *imaging.LimitError
	require.ErrorAs(t, err, &limit)
	require.ErrorContains(t, err, "30000×30000 = 900.0 megapixels, more than the limit of 100.0")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

func TestLimits(t *testing.T) {
	t.Parallel()
	file := encodePNG(t, image.NewNRGBA64(image.Rect(0, 0, 40, 30)))
	limits := imaging.DefaultLimits()
	var limit *imaging.LimitError

	limits.MaxFileBytes = int64(len(file) - 1)
	_, err := imaging.Inspect(file, limits)
	require.ErrorAs(t, err, &limit)

	limits = imaging.DefaultLimits()
	limits.MaxDecodeBytes = 40*30*8 - 1
	_, err = imaging.Inspect(file, limits)
	require.ErrorAs(t, err, &limit)
	limits.MaxDecodeBytes++
	_, err = imaging.Inspect(file, limits)
	require.NoError(t, err)
}

func TestCutShortFilesFail(t *testing.T) {
	t.Parallel()
	frame := image.NewPaletted(image.Rect(0, 0, 120, 90), color.Palette{color.Black, color.White})
	for i := range frame.Pix {
		frame.Pix[i] = uint8(i*i/7) & 1
	}
	var animation bytes.Buffer
	require.NoError(t, gif.Encode(&animation, frame, nil))
	for name, file := range map[string][]byte{
		"JPEG": encodeJPEG(t, scene(120, 90), 90),
		"PNG":  encodePNG(t, noise(t, 120, 90)),
		"GIF":  animation.Bytes(),
		"WebP": webpSample(t),
	} {
		for _, share := range []int{10, 50, 90} {
			_, err := imaging.Decode(t.Context(), file[:len(file)*share/100], imaging.DefaultLimits(), whole)
			var invalid *imaging.InvalidError
			require.ErrorAs(t, err, &invalid, "%s cut to %d %%", name, share)
		}
	}
}

func TestDecodeStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := imaging.Decode(ctx, encodeJPEG(t, scene(64, 64), 90), imaging.DefaultLimits(), whole)
	require.ErrorIs(t, err, context.Canceled)
}

func TestColorModels(t *testing.T) {
	t.Parallel()
	base := scene(61, 47)
	bounds := base.Bounds()
	fill := func(dst interface {
		image.Image
		Set(x, y int, c color.Color)
	}) image.Image {
		for y := range bounds.Dy() {
			for x := range bounds.Dx() {
				dst.Set(x, y, base.At(x, y))
			}
		}
		return dst
	}
	transparent := image.NewNRGBA(bounds)
	deep := image.NewNRGBA64(bounds)
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			c := base.RGBAAt(x, y)
			a := uint8(200)
			if x < 20 {
				a = 0
			}
			transparent.SetNRGBA(x, y, color.NRGBA{R: c.R, G: c.G, B: c.B, A: a})
			deep.SetNRGBA64(x, y, color.NRGBA64{R: uint16(c.R) * 257, G: uint16(c.G) * 257, B: uint16(c.B) * 257, A: uint16(a) * 257})
		}
	}
	palette := make(color.Palette, 0, 256)
	for i := range 256 {
		palette = append(palette, color.NRGBA{R: uint8(i), G: uint8(i * 3), B: 100, A: uint8(min(255, i*2))})
	}
	for name, img := range map[string]image.Image{
		"RGB":                base,
		"RGB, 16 bits":       fill(image.NewRGBA64(bounds)),
		"gray":               fill(image.NewGray(bounds)),
		"gray, 16 bits":      fill(image.NewGray16(bounds)),
		"paletted":           fill(image.NewPaletted(bounds, palette)),
		"alpha":              transparent,
		"alpha, 16 bits":     deep,
		"paletted, opaque":   fill(image.NewPaletted(bounds, color.Palette{color.Black, color.White})),
		"paletted, two inks": fill(image.NewPaletted(bounds, color.Palette{color.Transparent, color.White})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			picture := decoded(t, encodePNG(t, img))
			got := asPNG(t, picture)
			for y := range bounds.Dy() {
				for x := range bounds.Dx() {
					want, have := rgba(img.At(x, y)), rgba(got.At(x, y))
					require.Equal(t, want.A, have.A, "alpha at %d,%d", x, y)
					for _, d := range [][2]uint8{{want.R, have.R}, {want.G, have.G}, {want.B, have.B}} {
						require.InDelta(t, d[0], d[1], 1, "pixel %d,%d: %v, not %v", x, y, have, want)
					}
				}
			}
			require.Equal(t, bounds.Size(), asJPEG(t, picture, 82).Bounds().Size())
		})
	}
}

func TestTransparentBecomesWhiteInJPEG(t *testing.T) {
	t.Parallel()
	img := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 32 {
			img.SetNRGBA(x, y, color.NRGBA{R: 200, A: 255})
		}
	}
	got := asJPEG(t, decoded(t, encodePNG(t, img)), 95)
	r, g, b, _ := got.At(60, 30).RGBA()
	require.Equal(t, []uint32{255, 255, 255}, []uint32{r >> 8, g >> 8, b >> 8})
	r, g, _, _ = got.At(4, 30).RGBA()
	require.InDelta(t, 200, r>>8, 4)
	require.InDelta(t, 0, g>>8, 4)
}

// Colors of transparent pixels must not bleed into the edge when reduced.
func TestReducedEdgeKeepsItsColor(t *testing.T) {
	t.Parallel()
	img := image.NewNRGBA(image.Rect(0, 0, 300, 300))
	for y := range 300 {
		for x := range 300 {
			c := color.NRGBA{G: 255} // green, unseen
			if x < 151 {
				c = color.NRGBA{R: 255, A: 255}
			}
			img.SetNRGBA(x, y, c)
		}
	}
	got := variant(t, encodePNG(t, img), imaging.Target{Side: 70})
	edges := 0
	for x := range 70 {
		c := nrgba(got.At(x, 35))
		require.Zero(t, c.G, "column %d: %v", x, c)
		if c.A > 0 {
			require.Greater(t, c.R, uint8(250), "column %d: %v", x, c)
		}
		if c.A > 0 && c.A < 255 {
			edges++
		}
	}
	require.Positive(t, edges)
}

// cmykJPEG builds a JPEG of 16×16 pixels in four components, as Adobe's programs
// mark it: with an APP14 segment, after which inks are stored inverted. All
// coefficients are zero, so that every sample is 128.
func cmykJPEG() []byte {
	file := []byte("\xff\xd8")
	segment := func(marker byte, payload ...byte) {
		file = append(file, 0xff, marker)
		file = binary.BigEndian.AppendUint16(file, uint16(len(payload)+2))
		file = append(file, payload...)
	}
	segment(0xee, []byte("Adobe\x00\x64\x00\x00\x00\x00\x00")...)
	segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)
	segment(0xc0, 8, 0, 16, 0, 16, 4, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0, 4, 0x11, 0)
	oneCode := append([]byte{1}, make([]byte, 16)...) // one code of one bit, for the symbol 0
	segment(0xc4, append([]byte{0x00}, oneCode...)...)
	segment(0xc4, append([]byte{0x10}, oneCode...)...)
	segment(0xda, 4, 1, 0, 2, 0, 3, 0, 4, 0, 0, 63, 0)
	// Four blocks in each of four units, two bits per block: no difference, no coefficients.
	file = append(file, 0, 0, 0, 0)
	return append(file, 0xff, 0xd9)
}

func TestCMYK(t *testing.T) {
	t.Parallel()
	picture := decoded(t, cmykJPEG())
	got := asPNG(t, picture)
	require.Equal(t, image.Pt(16, 16), got.Bounds().Size())
	// Half of an ink under half of black lets a quarter of the light through.
	require.Equal(t, color.NRGBA{R: 64, G: 64, B: 64, A: 255}, color.NRGBAModel.Convert(got.At(8, 8)))
	require.Equal(t, image.Pt(16, 16), asJPEG(t, picture, 82).Bounds().Size())
	info, err := imaging.Inspect(cmykJPEG(), imaging.DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, []string{"the picture is in CMYK, which becomes RGB without a profile"}, info.Notes)
}

func TestFirstFrameOfGIF(t *testing.T) {
	t.Parallel()
	palette := color.Palette{color.RGBA{R: 255, A: 255}, color.RGBA{B: 255, A: 255}}
	animation := gif.GIF{Config: image.Config{Width: 40, Height: 30, ColorModel: palette}}
	for i := range 1_000 {
		frame := image.NewPaletted(image.Rect(0, 0, 20, 30), palette)
		if i > 0 {
			for j := range frame.Pix {
				frame.Pix[j] = 1
			}
		}
		animation.Image = append(animation.Image, frame)
		animation.Delay = append(animation.Delay, 1)
	}
	var file bytes.Buffer
	require.NoError(t, gif.EncodeAll(&file, &animation))

	got := asPNG(t, decoded(t, file.Bytes()))
	require.Equal(t, image.Pt(40, 30), got.Bounds().Size(), "the canvas, not the frame")
	require.Equal(t, color.NRGBA{R: 255, A: 255}, color.NRGBAModel.Convert(got.At(10, 10)))
	require.Equal(t, color.NRGBA{}, color.NRGBAModel.Convert(got.At(30, 10)), "outside of the frame")
}

// The sample is 16×16 pixels of lossy WebP: the left half black, the right
// half white.
func TestLossyWebPHasFullContrast(t *testing.T) {
	t.Parallel()
	got := asPNG(t, decoded(t, webpSample(t)))
	require.Equal(t, image.Pt(16, 16), got.Bounds().Size())
	dark, _, _, _ := got.At(2, 8).RGBA()
	bright, _, _, _ := got.At(13, 8).RGBA()
	require.InDelta(t, 0, dark>>8, 3)
	require.InDelta(t, 255, bright>>8, 3)
}

func webpSample(t testing.TB) []byte {
	t.Helper()
	file, err := base64.StdEncoding.DecodeString(
		"UklGRigAAABXRUJQVlA4IBwAAABQAQCdASoQABAAAMASJaQABHQAAP6D///0g8AA")
	require.NoError(t, err)
	return file
}

func TestNothingOfTheMetadataIsLeft(t *testing.T) {
	t.Parallel()
	file := withEXIF(encodeJPEG(t, scene(90, 60), 90), binary.LittleEndian, 6)
	file = withSegment(file, 0xfe, []byte("<script>alert('comment')</script>"))
	file = withSegment(file, 0xe1, []byte("http://ns.adobe.com/xap/1.0/\x00<x:xmpmeta/>"))
	file = append(file, "<html><body>polyglot</body></html>"...)
	picture := decoded(t, file)
	asJPEG, err := picture.JPEG(82)
	require.NoError(t, err)
	asPNG, err := picture.PNG()
	require.NoError(t, err)
	for _, out := range [][]byte{asJPEG, asPNG} {
		for _, trace := range []string{"Exif", imagingtest.Place, "script", "xmpmeta", "html", "eXIf", "tEXt", "iCCP", "ICC_PROFILE"} {
			require.NotContains(t, string(out), trace)
		}
	}
}
