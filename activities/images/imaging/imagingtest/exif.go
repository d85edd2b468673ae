// Package imagingtest makes metadata of pictures for tests.
package imagingtest

import (
	"encoding/binary"
	"slices"
)

// Place is in the GPS directory of every [EXIF]: a date of GPS. Nothing that is made of a photo may
// have it.
const Place = "2026:01:02"

// EXIF is what a camera says. Texts that are empty are left out.
type EXIF struct {
	Orientation       uint16
	Taken, Offset     string // DateTimeOriginal, OffsetTimeOriginal
	Artist, Copyright string
}

// entry is one of a directory: a value of four bytes, or one that is stored behind it.
type entry struct {
	tag, kind uint16
	count     uint32
	value     []byte
}

// TIFF is the structure without the prefix that it has in a JPEG (Exif 3.0, 4.6.2).
func (e EXIF) TIFF(order binary.AppendByteOrder) []byte {
	short := func(tag, v uint16) entry { return entry{tag, 3, 1, append(order.AppendUint16(nil, v), 0, 0)} }
	text := func(tag uint16, v string) entry {
		if v == "" {
			return entry{}
		}
		return entry{tag, 2, uint32(len(v) + 1), append([]byte(v), 0)}
	}
	degrees := func(tag uint16, whole, minutes, hundredths uint32) entry {
		var value []byte
		for _, n := range []uint32{whole, 1, minutes, 1, hundredths, 100} {
			value = order.AppendUint32(value, n)
		}
		return entry{tag, 5, 3, value}
	}
	pointer := func(tag uint16, at int) entry { return entry{tag, 4, 1, order.AppendUint32(nil, uint32(at))} }
	const header = 8
	main := func(circumstances, gps int) []byte {
		return directory(order, header, short(0x0112, e.Orientation), text(0x013b, e.Artist), text(0x8298, e.Copyright),
			pointer(0x8769, circumstances), pointer(0x8825, gps))
	}
	at := header + len(main(0, 0))
	circumstances := directory(order, at, text(0x9003, e.Taken), text(0x9011, e.Offset))
	gps := directory(order, at+len(circumstances), text(0x0001, "N"), degrees(0x0002, 37, 22, 5512),
		text(0x0003, "W"), degrees(0x0004, 121, 44, 1207), text(0x001d, Place))
	out := []byte("II*\x00")
	if order.String() == binary.BigEndian.String() {
		out = []byte("MM\x00*")
	}
	return slices.Concat(order.AppendUint32(out, header), main(at, at+len(circumstances)), circumstances, gps)
}

// InJPEG puts it into a JPEG, after the first marker.
func (e EXIF) InJPEG(file []byte) []byte {
	segment := append([]byte("Exif\x00\x00"), e.TIFF(binary.BigEndian)...)
	out := append([]byte{}, file[:2]...)
	out = binary.BigEndian.AppendUint16(append(out, 0xff, 0xe1), uint16(len(segment)+2))
	return slices.Concat(out, segment, file[2:])
}

// directory is an image file directory that begins at an offset, with what is longer behind it.
func directory(order binary.AppendByteOrder, at int, entries ...entry) []byte {
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.kind == 0 })
	out := order.AppendUint16(nil, uint16(len(entries)))
	var behind []byte
	first := at + 2 + 12*len(entries) + 4
	for _, e := range entries {
		out = order.AppendUint16(order.AppendUint16(out, e.tag), e.kind)
		out = order.AppendUint32(out, e.count)
		if len(e.value) <= 4 {
			out = append(append(out, e.value...), make([]byte, 4-len(e.value))...)
			continue
		}
		out = order.AppendUint32(out, uint32(first+len(behind)))
		behind = append(behind, e.value...)
	}
	return append(append(out, 0, 0, 0, 0), behind...)
}
