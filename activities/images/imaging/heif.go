package imaging

import (
	"encoding/binary"
	"image"
	"image/color"
	"iter"
	"math/bits"
	"slices"
	"strings"
)

// heif is what the header of a HEIC or AVIF says of its primary picture (ISO/IEC 23008-12).
type heif struct {
	size        image.Point // as it is stored
	orientation Orientation
	depth       int    // bits of a sample
	icc, exif   []byte // nil if there is none
	cut         bool   // the file ends within its pictures
	cicp        []byte // primaries, transfer, matrix in two bytes each, and the range; or nil
}

// isoBoxes yields boxes by their types (ISO/IEC 14496-12, 4.2). It ends where one is cut short,
// which has no body.
func isoBoxes(data []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for len(data) >= 8 {
			size, header := uint64(binary.BigEndian.Uint32(data)), uint64(8)
			switch {
			case size == 0: // to the end
				size = uint64(len(data))
			case size == 1 && len(data) >= 16:
				size, header = binary.BigEndian.Uint64(data[8:]), 16
			}
			if size > uint64(len(data)) {
				yield(string(data[4:8]), nil)
				return
			}
			if size < header || !yield(string(data[4:8]), data[header:size]) {
				return
			}
			data = data[size:]
		}
	}
}

// isoReader reads numbers, one after the other. Beyond the end they are 0.
type isoReader struct{ rest []byte }

func (r *isoReader) bytes(n int) []byte {
	n = min(n, len(r.rest))
	part := r.rest[:n]
	r.rest = r.rest[n:]
	return part
}

// number reads one of n bytes, at most eight.
func (r *isoReader) number(n int) (v uint64) {
	for _, b := range r.bytes(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

// version reads what stands before the fields of a full box.
func (r *isoReader) version() (version, flags uint64) {
	return r.number(1), r.number(3)
}

// long reads a number of two or four bytes.
func (r *isoReader) long(isLong bool) uint64 {
	if isLong {
		return r.number(4)
	}
	return r.number(2)
}

// brands are those of a file that begins with them: the main one first.
func brands(data []byte) (all []string) {
	if !hasAt(data, 4, "ftyp") {
		return nil
	}
	size := min(uint64(binary.BigEndian.Uint32(data)), uint64(len(data)))
	for at := uint64(8); at+4 <= size; at += 4 {
		if at != 12 { // a version
			all = append(all, string(data[at:at+4]))
		}
	}
	return all
}

// sniffHEIF tells HEIC and AVIF from other ISO media files, by their brands.
func sniffHEIF(data []byte) (Format, bool) {
	for _, brand := range brands(data[:min(len(data), 256)]) {
		switch brand {
		case "avif", "avis":
			return AVIF, true
		case "heic", "heix", "heim", "heis":
			return HEIC, true
		}
	}
	return "", false
}

// readHEIF reads the header. A file without a picture has no size.
func readHEIF(data []byte) (h heif) {
	h.orientation = Normal
	var meta []byte
	h.cut = true // until its pictures are there
	for kind, body := range isoBoxes(data) {
		switch {
		case kind == "meta" && len(body) > 4 && meta == nil:
			meta = body[4:]
		case kind == "mdat":
			h.cut = body == nil
		}
	}
	var primary, exif uint64
	var properties []isoProperty
	var uses, places []byte
	for kind, body := range isoBoxes(meta) {
		r := isoReader{body}
		switch kind {
		case "pitm":
			version, _ := r.version()
			primary = r.long(version > 0)
		case "iinf":
			exif = exifItem(r)
		case "iloc":
			places = body
		case "iprp":
			for kind, body := range isoBoxes(body) {
				switch kind {
				case "ipco":
					for kind, body := range isoBoxes(body) {
						properties = append(properties, isoProperty{kind, body})
					}
				case "ipma":
					uses = body
				}
			}
		}
	}
	var angle, mirror uint64
	for _, p := range propertiesOf(primary, properties, uses) {
		r := isoReader{p.body}
		switch p.kind {
		case "ispe":
			r.version()
			h.size.X, h.size.Y = int(r.number(4)), int(r.number(4))
		case "irot":
			angle = r.number(1) & 3
		case "imir":
			mirror = 1 + r.number(1)&1
		case "pixi":
			r.version()
			r.number(1)
			h.depth = int(r.number(1))
		case "colr":
			switch string(r.bytes(4)) {
			case "prof", "rICC":
				if len(r.rest) <= maxICCBytes {
					h.icc = r.rest
				}
			case "nclx":
				h.cicp = r.bytes(7)
			}
		}
	}
	// Turned against the clock, then mirrored: top to bottom (1), or left to right (2).
	h.orientation = [4][3]Orientation{
		{Normal, FlipVertical, FlipHorizontal}, {Rotate270, Transpose, Transverse},
		{Rotate180, FlipHorizontal, FlipVertical}, {Rotate90, Transverse, Transpose},
	}[angle][mirror]
	if body := placeOf(exif, data, places); len(body) > 4 {
		// What stands before it says where it begins.
		if skip := uint64(binary.BigEndian.Uint32(body)); skip < uint64(len(body)-4) {
			h.exif = body[4+skip:]
		}
	}
	return h
}

// exifItem finds the item that is EXIF (14496-12, 8.11.6), or 0.
func exifItem(r isoReader) uint64 {
	version, _ := r.version()
	r.long(version > 0)
	for kind, body := range isoBoxes(r.rest) {
		entry := isoReader{body}
		version, _ := entry.version()
		if kind != "infe" || version < 2 {
			continue
		}
		item := entry.long(version > 2)
		entry.number(2)
		if string(entry.bytes(4)) == "Exif" {
			return item
		}
	}
	return 0
}

// isoProperty is a property of pictures.
type isoProperty struct {
	kind string
	body []byte
}

// propertiesOf are the properties of an item, in order (23008-12, 9.3).
func propertiesOf(item uint64, all []isoProperty, uses []byte) (found []isoProperty) {
	r := isoReader{uses}
	version, flags := r.version()
	for count := r.number(4); count > 0 && len(r.rest) > 0; count-- {
		id := r.long(version > 0)
		for n := r.number(1); n > 0; n-- {
			index := r.number(1 + int(flags&1))
			index &= 1<<(7+8*(flags&1)) - 1 // Without the bit that says that it matters.
			if id == item && index > 0 && index <= uint64(len(all)) {
				found = append(found, all[index-1])
			}
		}
	}
	return found
}

// placeOf is the content of an item that lies in one piece in the file (14496-12, 8.11.3), or nil.
func placeOf(item uint64, data, places []byte) []byte {
	r := isoReader{places}
	version, _ := r.version()
	sizes := r.number(2)
	offsetSize, lengthSize, baseSize, indexSize := int(sizes>>12), int(sizes>>8&15), int(sizes>>4&15), int(sizes&15)
	if version == 0 {
		indexSize = 0
	}
	if max(offsetSize, lengthSize, baseSize, indexSize) > 8 {
		return nil
	}
	for count := r.long(version > 1); count > 0 && len(r.rest) > 0; count-- {
		id := r.long(version > 1)
		inFile := version == 0 || r.number(2)&15 == 0
		r.number(2)
		base := r.number(baseSize)
		for extents := r.number(2); extents > 0 && len(r.rest) > 0; extents-- {
			r.number(indexSize)
			at, length := r.number(offsetSize), r.number(lengthSize)
			if id != item || item == 0 {
				continue
			}
			at, over := bits.Add64(base, at, 0)
			end, overEnd := bits.Add64(at, length, 0)
			if !inFile || over+overEnd > 0 || end > uint64(len(data)) {
				return nil
			}
			return data[at:end]
		}
	}
	return nil
}

// notes say which colors the decoders do not convert.
func (h heif) notes(format Format) []string {
	const (
		unspecified, bt709, bt601, sRGB = 2, 1, 6, 13
		bt470                           = 5 // as BT.601
	)
	r := isoReader{h.cicp}
	primaries, transfer, matrix := r.number(2), r.number(2), r.number(2)
	switch {
	case h.cicp == nil || h.icc != nil:
		return nil
	case !slices.Contains([]uint64{bt709, unspecified}, primaries) || !slices.Contains([]uint64{bt709, unspecified, bt601, sRGB}, transfer),
		format == HEIC && !slices.Contains([]uint64{unspecified, bt470, bt601}, matrix):
		return []string{"the colors are not those of sRGB, and are not converted"}
	}
	return nil
}

// isVideoRange reports whether samples are those of video: luma from 16 to 235.
func (h heif) isVideoRange() bool { return len(h.cicp) > 6 && h.cicp[6]&0x80 == 0 }

// config is what the decoder gives.
func (h heif) config(format Format) image.Config {
	c := image.Config{Width: h.size.X, Height: h.size.Y, ColorModel: color.RGBAModel}
	switch {
	case format == HEIC:
		c.ColorModel = color.YCbCrModel
		if h.orientation.swaps() { // It turns them.
			c.Width, c.Height = c.Height, c.Width
		}
	case h.depth > 8:
		c.ColorModel = color.RGBA64Model
	}
	return c
}

// minHEICWidth is the least width of a HEIC. The planes of libheif have rows of 64 bytes at least,
// and the decoder takes those of chroma for half as wide as the picture.
const minHEICWidth = 128

// isHEIFSequence reports whether the file is a sequence of pictures.
func isHEIFSequence(data []byte) bool {
	return slices.ContainsFunc(brands(data), func(brand string) bool { return strings.Contains("avis msf1 hevc hevx", brand) })
}
