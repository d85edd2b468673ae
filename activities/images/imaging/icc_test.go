package imaging_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"image"
	"image/color"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// builtTag is a tag of a profile.
type builtTag struct {
	name string
	data []byte
}

// iccFile builds a profile of version 4 (ICC.1:2022, 7) from samples of a space to those of another.
func iccFile(space, to string, tags []builtTag) []byte {
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	body := []byte(zeros(8) + "\x04\x00\x00\x00" + "mntr" + space + to + zeros(12) + "acsp" + zeros(28))
	for _, v := range whiteD50 {
		body = binary.BigEndian.AppendUint32(body, uint32(math.Round(v*65536)))
	}
	body = append(body, zeros(48)...)
	body = binary.BigEndian.AppendUint32(body, uint32(len(tags)))
	offset := len(body) + 12*len(tags)
	var data []byte
	for _, t := range tags {
		body = append(body, t.name...)
		body = binary.BigEndian.AppendUint32(body, uint32(offset+len(data)))
		body = binary.BigEndian.AppendUint32(body, uint32(len(t.data)))
		data = append(data, t.data...)
	}
	return append(body, data...)
}

// whiteD50 is the white of profiles, in XYZ.
var whiteD50 = [3]float64{0.9642, 1, 0.8249}

// profile builds an RGB matrix profile.
func profile(colorants [3][3]float64, curve []byte) []byte {
	var tags []builtTag
	for i, name := range []string{"rXYZ", "gXYZ", "bXYZ"} {
		data := []byte("XYZ \x00\x00\x00\x00")
		for _, v := range colorants[i] {
			data = binary.BigEndian.AppendUint32(data, uint32(int32(math.Round(v*65536))))
		}
		tags = append(tags, builtTag{name, data})
	}
	for _, name := range []string{"rTRC", "gTRC", "bTRC"} {
		tags = append(tags, builtTag{name, curve})
	}
	return iccFile("RGB ", "XYZ ", tags)
}

// Colorants in XYZ of D50: of Display P3 and of Adobe RGB (1998), as their
// published profiles have them; sRGB's for comparison.
var (
	displayP3 = [3][3]float64{{0.51512, 0.24120, -0.00105}, {0.29198, 0.69225, 0.04189}, {0.15710, 0.06657, 0.78407}}
	adobeRGB  = [3][3]float64{{0.60974, 0.31111, 0.01947}, {0.20528, 0.62567, 0.06087}, {0.14919, 0.06322, 0.74457}}
	sRGB      = [3][3]float64{{0.43607, 0.22249, 0.01392}, {0.38515, 0.71687, 0.09708}, {0.14307, 0.06061, 0.71410}}
)

// sRGBCurve is a parametric curve of type 3: g, a, b, c, d.
func sRGBCurve() []byte {
	curve := []byte("para\x00\x00\x00\x00\x00\x03\x00\x00")
	for _, v := range []float64{2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045} {
		curve = binary.BigEndian.AppendUint32(curve, uint32(math.Round(v*65536)))
	}
	return curve
}

// gammaCurve is a curve of one exponent.
func gammaCurve(gamma float64) []byte {
	curve := []byte("curv\x00\x00\x00\x00\x00\x00\x00\x01")
	return binary.BigEndian.AppendUint16(curve, uint16(math.Round(gamma*256)))
}

// sampledCurve is sRGB's curve in a table.
func sampledCurve() []byte {
	const n = 1024
	curve := []byte("curv\x00\x00\x00\x00")
	curve = binary.BigEndian.AppendUint32(curve, n)
	for i := range n {
		v := float64(i) / (n - 1)
		light := v / 12.92
		if v > 0.04045 {
			light = math.Pow((v+0.055)/1.055, 2.4)
		}
		curve = binary.BigEndian.AppendUint16(curve, uint16(math.Round(light*65535)))
	}
	return curve
}

func iccp(icc []byte) []byte {
	var body bytes.Buffer
	body.WriteString("profile\x00\x00")
	w := zlib.NewWriter(&body)
	_, _ = w.Write(icc)
	_ = w.Close()
	return body.Bytes()
}

func flat(c color.Color) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, 32, 32))
	for y := range 32 {
		for x := range 32 {
			img.Set(x, y, c)
		}
	}
	return img
}

// Expected values come from the definitions of the spaces.
func TestProfilesAreConverted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		icc  []byte
		from color.NRGBA
		want color.NRGBA
	}{
		"P3 gray stays":         {profile(displayP3, sRGBCurve()), color.NRGBA{128, 128, 128, 255}, color.NRGBA{128, 128, 128, 255}},
		"P3 orange":             {profile(displayP3, sRGBCurve()), color.NRGBA{200, 120, 60, 255}, color.NRGBA{212, 117, 44, 255}},
		"P3 red beyond sRGB":    {profile(displayP3, sRGBCurve()), color.NRGBA{255, 0, 0, 255}, color.NRGBA{255, 0, 0, 255}},
		"P3 with a table":       {profile(displayP3, sampledCurve()), color.NRGBA{200, 120, 60, 255}, color.NRGBA{212, 117, 44, 255}},
		"P3 under transparency": {profile(displayP3, sRGBCurve()), color.NRGBA{200, 120, 60, 128}, color.NRGBA{212, 117, 44, 128}},
		"Adobe RGB gray":        {profile(adobeRGB, gammaCurve(563.0/256)), color.NRGBA{128, 128, 128, 255}, color.NRGBA{128, 128, 128, 255}},
		"Adobe RGB green":       {profile(adobeRGB, gammaCurve(563.0/256)), color.NRGBA{120, 160, 90, 255}, color.NRGBA{99, 160, 85, 255}},
		"sRGB is left alone":    {profile(sRGB, sRGBCurve()), color.NRGBA{200, 120, 60, 255}, color.NRGBA{200, 120, 60, 255}},
		"cut short: left alone": {profile(displayP3, sRGBCurve())[:200], color.NRGBA{200, 120, 60, 255}, color.NRGBA{200, 120, 60, 255}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := withChunk(encodePNG(t, flat(c.from)), "iCCP", iccp(c.icc))
			got := nrgba(asPNG(t, decoded(t, file)).At(16, 16))
			require.Equal(t, c.want.A, got.A)
			for _, d := range [][2]uint8{{c.want.R, got.R}, {c.want.G, got.G}, {c.want.B, got.B}} {
				require.InDelta(t, d[0], d[1], 2, "want %v, got %v", c.want, got)
			}
		})
	}
}

func TestProfileOfJPEGInPieces(t *testing.T) {
	t.Parallel()
	icc := profile(displayP3, sampledCurve())
	file := encodeJPEG(t, flat(color.NRGBA{R: 200, G: 120, B: 60, A: 255}), 98)
	// Stored last piece first, each with its number and the count.
	for _, number := range []byte{1, 2} {
		piece := icc[:1000]
		if number == 2 {
			piece = icc[1000:]
		}
		file = withSegment(file, 0xe2, append([]byte("ICC_PROFILE\x00"+string(number)+"\x02"), piece...))
	}
	r, g, b, _ := asJPEG(t, decoded(t, file), 98).At(16, 16).RGBA()
	require.InDelta(t, 212, r>>8, 3)
	require.InDelta(t, 117, g>>8, 3)
	require.InDelta(t, 44, b>>8, 3)
}

// Of several profiles the first counts, and is inflated once. Not
// parallel, so that nothing else allocates meanwhile.
//
//nolint:paralleltest // No other test may allocate meanwhile.
func TestProfileOfPNGIsInflatedOnce(t *testing.T) {
	large := iccp(make([]byte, 4<<20))
	file := encodePNG(t, flat(color.NRGBA{R: 200, G: 120, B: 60, A: 255}))
	for range 20 {
		file = withChunk(file, "iCCP", large)
	}
	once := allocated(func() { require.Len(t, imaging.ReadMetadata(imaging.PNG, file).ICC(), 4<<20) })
	require.Less(t, allocated(func() {
		info, err := imaging.Inspect(file, imaging.DefaultLimits())
		require.NoError(t, err)
		require.Equal(t, []string{"the color profile cannot be read, and is not applied"}, info.Notes)
	}), once+1<<20)
	require.Less(t, allocated(func() { decoded(t, file) }), once+1<<20)

	file = withChunk(file, "iCCP", iccp(profile(displayP3, sRGBCurve())))
	got := nrgba(asPNG(t, decoded(t, file)).At(16, 16))
	require.InDelta(t, 212, got.R, 2, "converted by the first")
}
