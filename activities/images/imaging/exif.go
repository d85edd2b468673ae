package imaging

import "encoding/binary"

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

// exifOrientation reads the orientation out of a TIFF structure (EXIF without
// its JPEG prefix). It is Normal when there is none or the structure is broken.
//
// The first image file directory alone is looked at: entries of 12 bytes, each
// a tag, a type, a count and a value; type 3 is an unsigned 16-bit number.
func exifOrientation(tiff []byte) Orientation {
	const (
		entrySize      = 12
		tagOrientation = 0x0112
		typeShort      = 3
	)
	var order binary.ByteOrder
	switch {
	case hasAt(tiff, 0, "II*\x00"):
		order = binary.LittleEndian
	case hasAt(tiff, 0, "MM\x00*"):
		order = binary.BigEndian
	default:
		return Normal
	}
	if len(tiff) < 8 {
		return Normal
	}
	directory := int64(order.Uint32(tiff[4:]))
	if directory < 8 || directory+2 > int64(len(tiff)) {
		return Normal
	}
	entries := tiff[directory+2:]
	for range order.Uint16(tiff[directory:]) {
		if len(entries) < entrySize {
			return Normal
		}
		if order.Uint16(entries) == tagOrientation {
			value := Orientation(order.Uint16(entries[8:]))
			if order.Uint16(entries[2:]) != typeShort || order.Uint32(entries[4:]) != 1 ||
				value < Normal || value > Rotate270 {
				return Normal
			}
			return value
		}
		entries = entries[entrySize:]
	}
	return Normal
}
