package imaging

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/kovidgoyal/imaging/prism/meta/icc"
)

// maxTablesBytes is how large a profile of tables may be. Those of printers have up to 3 MB; reading
// one takes about eight times its size.
const maxTablesBytes = 4 << 20

// oneProfile has profiles read one at a time: the worker reads them too, to tell what is not applied.
var oneProfile sync.Mutex

// parseTables reads a profile of tables (ICC.1:2022, 8.3.2): of RGB, or of CMYK.
func parseTables(profile []byte, channels int) (c *conversion, understood bool) {
	if len(profile) > maxTablesBytes || !hasSoundTags(profile) {
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
	tables, err := read.CreateTransformerToSRGB(icc.PerceptualRenderingIntent, false, channels, true, false, true)
	if err != nil {
		return nil, false
	}
	return &conversion{tables: tables, inks: channels == 4}, true
}

// hasSoundTags reports whether the tags of a profile are few and lie within it, behind their table:
// the library makes room for as many as a profile says.
func hasSoundTags(profile []byte) bool {
	const header, entry, maxTags = 128 + 4, 12, 100
	if len(profile) < header {
		return false
	}
	count := int64(binary.BigEndian.Uint32(profile[header-4:]))
	begin := header + count*entry
	if count > maxTags || begin > int64(len(profile)) {
		return false
	}
	for at := int64(header); at < begin; at += entry {
		offset, size := int64(binary.BigEndian.Uint32(profile[at+4:])), int64(binary.BigEndian.Uint32(profile[at+8:]))
		if offset < begin || offset+size > int64(len(profile)) {
			return false
		}
	}
	return true
}

// sampled is a sample of a light from 0 to 1.
func sampled(light float64) uint8 { return uint8(min(max(light, 0), 1)*255 + 0.5) }

// applyToInks makes a picture of inks one in sRGB.
func (c *conversion) applyToInks(p *Picture) {
	var inks [4]float64
	var light [4]float64 // The library uses all of them in between.
	for i := range p.planes[0].pix {
		for n := range inks {
			inks[n] = float64(p.planes[n].pix[i]) / 255
		}
		c.tables.TransformGeneral(light[:], inks[:])
		for n := range 3 {
			p.planes[n].pix[i] = sampled(light[n])
		}
	}
	p.model, p.planes = modelRGB, p.planes[:3]
}
