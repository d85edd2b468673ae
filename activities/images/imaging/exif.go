package imaging

import (
	"encoding/binary"
	"iter"
	"strings"
	"time"
	"unicode"
)

// Orientation is the value of EXIF tag 0x0112: where the first row and the
// first column of the stored pixels belong in the upright picture.
type Orientation int

// The eight orientations, named by what makes the stored pixels upright.
const (
	Normal         Orientation = 1
	FlipHorizontal Orientation = 2
	Rotate180      Orientation = 3
	FlipVertical   Orientation = 4
	Transpose      Orientation = 5 // mirror at the diagonal from top left
	Rotate90       Orientation = 6 // clockwise
	Transverse     Orientation = 7 // mirror at the diagonal from top right
	Rotate270      Orientation = 8 // clockwise
)

// swaps reports whether width and height change places.
func (o Orientation) swaps() bool { return o >= Transpose && o <= Rotate270 }

// mirrors says along which axes of the stored pixels the order is reversed.
func (o Orientation) mirrors() (x, y bool) {
	x = o == FlipHorizontal || o == Rotate180 || o == Transverse || o == Rotate270
	y = o == FlipVertical || o == Rotate180 || o == Transverse || o == Rotate90
	return x, y
}

// exif is what is read of an EXIF structure (Exif 3.0, 4.6). Places are not.
type exif struct {
	orientation       Orientation
	taken             string // when: as [Info] has it
	copyright, artist string
}

// Tags of EXIF.
const (
	tagOrientation        = 0x0112
	tagArtist             = 0x013b
	tagCopyright          = 0x8298
	tagExif               = 0x8769 // where the directory of the photo's circumstances is
	tagDateTimeOriginal   = 0x9003
	tagOffsetTimeOriginal = 0x9011
)

// readEXIF reads a TIFF structure (EXIF without its JPEG prefix). What is broken is as if it were
// not there.
func readEXIF(data []byte) (e exif) {
	e.orientation = Normal
	t, ok := openTIFF(data)
	if !ok {
		return e
	}
	var artist, copyright, when, offset tiffEntry
	circumstances := int64(0)
	for entry := range t.directory(int64(t.order.Uint32(data[4:]))) {
		switch entry.tag {
		case tagOrientation:
			if value, ok := entry.short(); ok && value >= uint16(Normal) && value <= uint16(Rotate270) {
				e.orientation = Orientation(value)
			}
		case tagArtist:
			artist = entry
		case tagCopyright:
			copyright = entry
		case tagExif:
			circumstances = int64(t.order.Uint32(entry.value))
		}
	}
	for entry := range t.directory(circumstances) {
		switch entry.tag {
		case tagDateTimeOriginal:
			when = entry
		case tagOffsetTimeOriginal:
			offset = entry
		}
	}
	e.artist, e.copyright = artist.text(), copyright.text()
	e.taken = timeOfPhoto(when.text(), offset.text())
	return e
}

// timeOfPhoto is a time of EXIF in the form of RFC 3339, with the zone that EXIF names. Without
// one it has none.
func timeOfPhoto(text, offset string) string {
	when, err := time.Parse("2006:01:02 15:04:05", text)
	if err != nil {
		return ""
	}
	if _, err := time.Parse("-07:00", offset); err != nil {
		offset = ""
	}
	return when.Format("2006-01-02T15:04:05") + offset
}

// tiff is a TIFF structure.
type tiff struct {
	data  []byte
	order binary.ByteOrder
}

func openTIFF(data []byte) (t tiff, ok bool) {
	switch {
	case len(data) < 8:
		return t, false
	case hasAt(data, 0, "II*\x00"):
		return tiff{data, binary.LittleEndian}, true
	case hasAt(data, 0, "MM\x00*"):
		return tiff{data, binary.BigEndian}, true
	}
	return t, false
}

// tiffEntry is an entry of a directory: a tag, and a value or where it is.
type tiffEntry struct {
	tiff
	tag, kind uint16
	count     uint32
	value     []byte // four bytes
}

// directory yields the entries of an image file directory, of 12 bytes each.
func (t tiff) directory(at int64) iter.Seq[tiffEntry] {
	const size = 12
	return func(yield func(tiffEntry) bool) {
		if at < 8 || at+2 > int64(len(t.data)) {
			return
		}
		entries := t.data[at+2:]
		for range t.order.Uint16(t.data[at:]) {
			if len(entries) < size || !yield(tiffEntry{
				tiff: t, tag: t.order.Uint16(entries), kind: t.order.Uint16(entries[2:]),
				count: t.order.Uint32(entries[4:]), value: entries[8:size],
			}) {
				return
			}
			entries = entries[size:]
		}
	}
}

func (e tiffEntry) short() (value uint16, ok bool) {
	const typeShort = 3
	return e.order.Uint16(e.value), e.kind == typeShort && e.count == 1
}

// text is a text of at most 1,000 bytes, on one line, or nothing.
func (e tiffEntry) text() string {
	const typeASCII, typeUTF8, inline, most = 2, 129, 4, 1000
	if e.kind != typeASCII && e.kind != typeUTF8 || e.count > most {
		return ""
	}
	body := e.value
	if e.count > inline {
		at := int64(e.order.Uint32(e.value))
		if at+int64(e.count) > int64(len(e.data)) {
			return ""
		}
		body = e.data[at:]
	}
	// A copyright has two parts, with a zero between them.
	words := strings.FieldsFunc(strings.ToValidUTF8(string(body[:e.count]), "\ufffd"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
	return strings.Join(words, " ")
}
