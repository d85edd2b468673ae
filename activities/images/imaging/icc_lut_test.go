package imaging_test

import (
	"bytes"
	"encoding/binary"
	"image/color"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// lutProfile builds a profile whose table says which color of sRGB samples are (lut16Type of ICC.1:2022,
// 10.10, with the Lab of version 2, 10.10.1).
func lutProfile(space string, channels int, shown func(samples []float64) [3]float64) []byte {
	const grid = 9
	table := append([]byte("mft2\x00\x00\x00\x00"), byte(channels), 3, grid, 0)
	for i := range 9 { // a matrix that changes nothing
		table = binary.BigEndian.AppendUint32(table, map[bool]uint32{true: 65536}[i%4 == 0])
	}
	straight := []byte{0, 0, 0xff, 0xff}
	table = append(table, 0, 2, 0, 2)
	table = append(table, bytes.Repeat(straight, channels)...)
	samples := make([]float64, channels)
	for at := range int(math.Pow(grid, float64(channels))) {
		for i := channels - 1; i >= 0; i-- {
			samples[i] = float64(at%grid) / (grid - 1)
			at /= grid
		}
		l, a, b := lab(shown(samples))
		for _, v := range []float64{l * 652.8, (a + 128) * 256, (b + 128) * 256} {
			table = binary.BigEndian.AppendUint16(table, uint16(min(max(math.Round(v), 0), 65535)))
		}
	}
	table = append(table, bytes.Repeat(straight, 3)...)
	return iccFile(space, "Lab ", []builtTag{{"A2B0", table}})
}

// lab is a color of sRGB in Lab of D50 (CIE 15).
func lab(c [3]float64) (l, a, b float64) {
	var xyz [3]float64
	for i, v := range c {
		light := v / 12.92
		if v > 0.04045 {
			light = math.Pow((v+0.055)/1.055, 2.4)
		}
		for n := range xyz {
			xyz[n] += light * sRGB[i][n] / whiteD50[n]
		}
	}
	for n, v := range xyz {
		if xyz[n] = math.Cbrt(v); v <= 216.0/24389 {
			xyz[n] = (24389.0/27*v + 16) / 116
		}
	}
	return 116*xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])
}

// reversed is a profile of samples that are blue, green and red.
func reversed() []byte {
	return lutProfile("RGB ", 3, func(s []float64) [3]float64 { return [3]float64{s[2], s[1], s[0]} })
}

func requireColor(t *testing.T, want, got color.Color, within int) {
	t.Helper()
	w, g := nrgba(want), nrgba(got)
	for _, d := range [][2]uint8{{w.R, g.R}, {w.G, g.G}, {w.B, g.B}, {w.A, g.A}} {
		require.InDelta(t, d[0], d[1], float64(within), "want %v, got %v", w, g)
	}
}

// A profile with a look-up table is applied: to RGB, with its transparency, and to CMYK.
func TestLUTsAreApplied(t *testing.T) {
	t.Parallel()
	for _, alpha := range []uint8{255, 128} {
		file := withChunk(encodePNG(t, flat(color.NRGBA{200, 120, 60, alpha})), "iCCP", iccp(reversed()))
		requireColor(t, color.NRGBA{60, 120, 200, alpha}, asPNG(t, decoded(t, file)).At(16, 16), 3)
		requireNotes(t, file)
	}
	jpeg := withSegment(encodeJPEG(t, flat(color.NRGBA{200, 120, 60, 255}), 95), 0xe2, append([]byte("ICC_PROFILE\x00\x01\x01"), reversed()...))
	requireColor(t, color.NRGBA{60, 120, 200, 255}, asPNG(t, decoded(t, jpeg)).At(16, 16), 4)

	// Its inks are all at a half.
	inks := lutProfile("CMYK", 4, func(s []float64) [3]float64 { return [3]float64{s[0] * s[3] * 2, s[1], s[2] / 2} })
	file := withSegment(cmykJPEG(), 0xe2, append([]byte("ICC_PROFILE\x00\x01\x01"), inks...))
	requireColor(t, color.NRGBA{128, 128, 64, 255}, asPNG(t, decoded(t, file)).At(8, 8), 4)
	requireNotes(t, file)
}

func requireNotes(t *testing.T, file []byte, notes ...string) {
	t.Helper()
	info, err := imaging.Inspect(file, imaging.DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, notes, info.Notes)
}

// A profile that is broken changes nothing, and is told.
func TestBrokenLUTsAreTold(t *testing.T) {
	t.Parallel()
	whole := reversed()
	change := func(at int, value uint32) []byte {
		changed := bytes.Clone(whole)
		binary.BigEndian.PutUint32(changed[at:], value)
		return changed
	}
	for name, broken := range map[string][]byte{
		"cut":                    whole[:len(whole)-500],
		"without tags":           whole[:132],
		"billions of tags":       change(128, 1<<32-1),
		"a tag in the header":    change(136, 4),
		"a tag that has no end":  change(140, 1<<32-1),
		"a grid of 255 a side":   bytes.Replace(whole, []byte{3, 3, 9, 0}, []byte{3, 3, 255, 0}, 1),
		"of inks, for a picture": lutProfile("CMYK", 4, func(s []float64) [3]float64 { return [3]float64(s[:3]) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := color.NRGBA{200, 120, 60, 255}
			file := withChunk(encodePNG(t, flat(from)), "iCCP", iccp(broken))
			requireColor(t, from, asPNG(t, decoded(t, file)).At(16, 16), 0)
			requireNotes(t, file, "the color profile cannot be read, and is not applied")
		})
	}
}
