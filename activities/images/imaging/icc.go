package imaging

import (
	"encoding/binary"
	"iter"
	"math"
	"sync"

	"github.com/kovidgoyal/imaging/prism/meta/icc"
)

// conversion takes samples of a profile to sRGB: RGB by a matrix or a look-up table, CMYK by a table.
type conversion struct {
	linear [3][256]int32 // sample to light, 0 to 65535
	matrix [3][3]int64   // light to light of sRGB, 14 fractional bits
	encode *[65536]uint8 // light to sample of sRGB

	lut *icc.Pipeline // nil for a matrix
}

// parseMatrix reads an RGB matrix profile (ICC.1:2022, 8.3.3): three colorants
// in XYZ of D50, and a tone curve for each. The conversion is nil for sRGB, which
// needs none. Other profiles, and broken ones, are not understood.
func parseMatrix(icc []byte) (c *conversion, understood bool) {
	if !hasAt(icc, 16, "RGB ") || !hasAt(icc, 20, "XYZ ") || !hasAt(icc, 36, "acsp") {
		return nil, false
	}
	c = &conversion{}
	var colorants [3][3]float64 // row per X, Y, Z; column per channel
	for i, channel := range []string{"r", "g", "b"} {
		xyz, ok := readXYZ(profileTag(icc, channel+"XYZ"))
		if !ok {
			return nil, false
		}
		for row := range 3 {
			colorants[row][i] = xyz[row]
		}
		curve, ok := readCurve(profileTag(icc, channel+"TRC"))
		if !ok {
			return nil, false
		}
		for v := range c.linear[i] {
			c.linear[i][v] = int32(math.Round(65535 * min(max(curve(float64(v)/255), 0), 1)))
		}
	}
	for row := range 3 {
		for column := range 3 {
			sum := 0.0
			for k := range 3 {
				sum += float64(xyzToSRGB[row][k] * colorants[k][column])
			}
			if math.Abs(sum) > 16 || math.IsNaN(sum) {
				return nil, false
			}
			c.matrix[row][column] = int64(math.Round(sum * one))
		}
	}
	c.encode = encodeTable()
	if c.changesNothing() {
		return nil, true
	}
	return c, true
}

// xyzToSRGB is the inverse of sRGB's colorants adapted to D50 (IEC 61966-2-1,
// Bradford adaptation).
var xyzToSRGB = [3][3]float64{
	{3.1338561, -1.6168667, -0.4906146},
	{-0.9787684, 1.9161415, 0.0334540},
	{0.0719453, -0.2289914, 1.4052427},
}

// encodeTable is sRGB's own tone curve, from light to samples.
var encodeTable = sync.OnceValue(func() *[65536]uint8 {
	var table [65536]uint8
	for i := range table {
		light := float64(i) / 65535
		value := 12.92 * light
		if light > 0.0031308 {
			value = float64(1.055*math.Pow(light, 1/2.4)) - 0.055
		}
		table[i] = uint8(math.Round(value * 255))
	}
	return &table
})

// changesNothing tries a coarse grid of colors; a difference of one is rounding.
func (c *conversion) changesNothing() bool {
	for r := 0; r < 256; r += 51 {
		for g := 0; g < 256; g += 51 {
			for b := 0; b < 256; b += 51 {
				r2, g2, b2 := c.convert(uint8(r), uint8(g), uint8(b))
				if max(apart(r, r2), apart(g, g2), apart(b, b2)) > 1 {
					return false
				}
			}
		}
	}
	return true
}

func apart(a int, b uint8) int { return max(a-int(b), int(b)-a) }

func (c *conversion) convert(r, g, b uint8) (r2, g2, b2 uint8) {
	if c.lut != nil {
		x, y, z := c.lut.Transform(float64(r)/255, float64(g)/255, float64(b)/255)
		return toSample(x), toSample(y), toSample(z)
	}
	lr, lg, lb := int64(c.linear[0][r]), int64(c.linear[1][g]), int64(c.linear[2][b])
	to := func(row int) uint8 {
		m := c.matrix[row]
		light := (m[0]*lr + m[1]*lg + m[2]*lb + half) >> fraction
		return c.encode[min(max(light, 0), 65535)]
	}
	return to(0), to(1), to(2)
}

// apply converts an RGB or CMYK picture in place.
func (c *conversion) apply(p *Picture) {
	if p.model == modelCMYK {
		c.applyToCMYK(p)
		return
	}
	r, g, b := p.planes[0].pix, p.planes[1].pix, p.planes[2].pix
	if p.model == modelRGBA {
		for i, alpha := range p.planes[3].pix {
			if alpha == 0 {
				continue
			}
			r2, g2, b2 := c.convert(divide(r[i], alpha), divide(g[i], alpha), divide(b[i], alpha))
			r[i], g[i], b[i] = multiply(r2, alpha), multiply(g2, alpha), multiply(b2, alpha)
		}
		return
	}
	for i := range r {
		r[i], g[i], b[i] = c.convert(r[i], g[i], b[i])
	}
}

// A profile has a header, the number of its tags, and for each a signature, an offset and a size
// (ICC.1:2022, 7.3).
const (
	iccHeader   = 128
	iccTagEntry = 12
	maxICCTags  = 100
)

type iccTag struct {
	signature string
	offset    int64
	data      []byte
}

// iccTags yields those of the first 100 tags of a profile that lie within it.
func iccTags(profile []byte) iter.Seq[iccTag] {
	return func(yield func(iccTag) bool) {
		if len(profile) < iccHeader+4 {
			return
		}
		table := profile[iccHeader+4:]
		for range min(binary.BigEndian.Uint32(profile[iccHeader:]), maxICCTags) {
			if len(table) < iccTagEntry {
				return
			}
			offset, size := int64(binary.BigEndian.Uint32(table[4:])), int64(binary.BigEndian.Uint32(table[8:]))
			signature := string(table[:4])
			table = table[iccTagEntry:]
			if offset+size <= int64(len(profile)) && !yield(iccTag{signature, offset, profile[offset : offset+size]}) {
				return
			}
		}
	}
}

// profileTag finds the data of a tag.
func profileTag(profile []byte, signature string) []byte {
	for tag := range iccTags(profile) {
		if tag.signature == signature {
			return tag.data
		}
	}
	return nil
}

// fixed reads a signed number with 16 fractional bits.
func fixed(data []byte) float64 { return float64(int32(binary.BigEndian.Uint32(data))) / 65536 }

func readXYZ(tag []byte) (xyz [3]float64, ok bool) {
	if !hasAt(tag, 0, "XYZ ") || len(tag) < 20 {
		return xyz, false
	}
	return [3]float64{fixed(tag[8:]), fixed(tag[12:]), fixed(tag[16:])}, true
}

// readCurve reads a tone curve of type curv (ICC.1:2022, 10.6) or para (10.18),
// from a sample to light, both from 0 to 1.
func readCurve(tag []byte) (curve func(float64) float64, ok bool) {
	switch {
	case hasAt(tag, 0, "curv") && len(tag) >= 12:
		return readSampledCurve(tag[12:], int64(binary.BigEndian.Uint32(tag[8:])))
	case hasAt(tag, 0, "para") && len(tag) >= 12:
		return readParametricCurve(tag[12:], binary.BigEndian.Uint16(tag[8:]))
	}
	return nil, false
}

func readSampledCurve(data []byte, count int64) (curve func(float64) float64, ok bool) {
	if int64(len(data)) < 2*count {
		return nil, false
	}
	switch count {
	case 0:
		return func(x float64) float64 { return x }, true
	case 1: // an exponent with 8 fractional bits
		gamma := float64(binary.BigEndian.Uint16(data)) / 256
		return func(x float64) float64 { return math.Pow(x, gamma) }, true
	}
	at := func(i int64) float64 { return float64(binary.BigEndian.Uint16(data[2*i:])) / 65535 }
	return func(x float64) float64 {
		position := x * float64(count-1)
		i := min(int64(position), count-2)
		part := position - float64(i)
		return float64(at(i)*(1-part)) + float64(at(i+1)*part)
	}, true
}

func readParametricCurve(data []byte, kind uint16) (curve func(float64) float64, ok bool) {
	counts := []int{1, 3, 4, 5, 7}
	if int(kind) >= len(counts) || len(data) < 4*counts[kind] {
		return nil, false
	}
	var p [7]float64 // g, a, b, c, d, e, f
	for i := range counts[kind] {
		p[i] = fixed(data[4*i:])
	}
	g, a, b, c, d, e, f := p[0], p[1], p[2], p[3], p[4], p[5], p[6]
	switch kind {
	case 0:
		a, d = 1, math.Inf(-1)
	case 1:
		d = -b / a
		c = 0
	case 2: // the constant c belongs to both pieces
		d, e, f, c = -b/a, c, c, 0
	}
	return func(x float64) float64 {
		value := float64(c*x) + f
		if x >= d {
			value = math.Pow(math.Max(float64(a*x)+b, 0), g) + e
		}
		if math.IsNaN(value) {
			return 0
		}
		return value
	}, true
}
