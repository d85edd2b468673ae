package imaging

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/kovidgoyal/imaging/prism/meta/icc"
)

// maxLUTBytes is how large a profile with a look-up table may be. Those of printers have up to 3 MB;
// reading one takes about eight times its size.
const maxLUTBytes = 4 << 20

// oneProfile has profiles read one at a time: the worker reads them too, to tell what is not applied.
var oneProfile sync.Mutex

// parseLUT reads a profile with a look-up table (ICC.1:2022, 8.3.2): of RGB, or of CMYK.
func parseLUT(profile []byte, channels int) (c *conversion, understood bool) {
	if len(profile) > maxLUTBytes || !hasSoundTags(profile) {
		return nil, false
	}
	oneProfile.Lock()
	defer oneProfile.Unlock()
	defer func() { // A panic of the library is one more profile that is not understood.
		if recover() != nil {
			c, understood = nil, false
		}
	}()
	read, err := icc.NewProfileReader(bytes.NewReader(profile)).ReadProfile()
	if err != nil {
		return nil, false
	}
	// As sharp and browsers do it: as the maker of the profile means it to be seen.
	lut, err := read.CreateTransformerToSRGB(icc.PerceptualRenderingIntent, false, channels, true, false, true)
	if err != nil {
		return nil, false
	}
	return &conversion{lut: lut}, true
}

// hasSoundTags reports whether a profile has as many tags as it says, behind their table: the library
// makes room for what a profile says.
func hasSoundTags(profile []byte) bool {
	if len(profile) < iccHeader+4 {
		return false
	}
	count := int64(binary.BigEndian.Uint32(profile[iccHeader:]))
	found := int64(0)
	for tag := range iccTags(profile) {
		if tag.offset < iccHeader+4+count*iccTagEntry {
			return false
		}
		found++
	}
	return found == count
}

// toSample makes a sample of a value from 0 to 1.
func toSample(v float64) uint8 { return uint8(min(max(v, 0), 1)*255 + 0.5) }

// applyToCMYK makes a picture in CMYK one in sRGB.
func (c *conversion) applyToCMYK(p *Picture) {
	var cmyk, rgb [4]float64 // The library uses all four in between.
	for i := range p.planes[0].pix {
		for n := range cmyk {
			cmyk[n] = float64(p.planes[n].pix[i]) / 255
		}
		c.lut.TransformGeneral(rgb[:], cmyk[:])
		for n := range 3 {
			p.planes[n].pix[i] = toSample(rgb[n])
		}
	}
	p.model, p.planes = modelRGB, p.planes[:3]
}
