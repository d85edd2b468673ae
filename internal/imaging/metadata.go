package imaging

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"encoding/binary"
	"io"
	"slices"
)

// Metadata is what of a file's metadata decides how its pixels are seen.
type Metadata struct {
	// Orientation is how the stored pixels are to be turned.
	Orientation Orientation
	// ICC is the embedded color profile, or nil.
	ICC []byte
}

// maxICCBytes bounds a profile. Display profiles have some hundred bytes, the
// largest printer profiles a few megabytes.
const maxICCBytes = 4 << 20

// ReadMetadata finds EXIF orientation and ICC profile in a file of the given
// format. Metadata is optional and often broken, so that what cannot be read is
// taken as absent: the result is then Normal, or no profile.
//
// Sources: JPEG APP1 (Exif 2.32, 4.7.2) and APP2 (ICC.1:2022, B.4); PNG eXIf
// and iCCP (PNG 3rd edition, 11.3); WebP EXIF and ICCP (RFC 9649, 2.7).
func ReadMetadata(format Format, data []byte) Metadata {
	m := Metadata{Orientation: Normal}
	switch format {
	case JPEG:
		m.readJPEG(data)
	case PNG:
		m.readPNG(data)
	case WebP:
		m.readWebP(data)
	case GIF: // has neither
	}
	return m
}

func (m *Metadata) readJPEG(data []byte) {
	type piece struct {
		number byte
		data   []byte
	}
	var pieces []piece
	seenEXIF := false
	for marker, segment := range jpegSegments(data) {
		switch {
		case marker == 0xe1 && !seenEXIF && hasAt(segment, 0, "Exif\x00\x00"):
			seenEXIF = true
			m.Orientation = exifOrientation(segment[6:])
		case marker == 0xe2 && hasAt(segment, 0, "ICC_PROFILE\x00") && len(segment) > 14:
			pieces = append(pieces, piece{segment[12], segment[14:]})
		}
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(a.number, b.number) })
	for _, p := range pieces {
		if len(m.ICC)+len(p.data) > maxICCBytes {
			m.ICC = nil
			return
		}
		m.ICC = append(m.ICC, p.data...)
	}
}

// jpegSegments yields the marker segments up to the first scan.
func jpegSegments(data []byte) func(yield func(marker byte, segment []byte) bool) {
	return func(yield func(byte, []byte) bool) {
		at := 2
		for at+4 <= len(data) && data[at] == 0xff {
			marker := data[at+1]
			if marker == 0xff { // fill byte
				at++
				continue
			}
			if marker == 0x01 || marker >= 0xd0 && marker <= 0xd7 { // no segment follows
				at += 2
				continue
			}
			length := int(binary.BigEndian.Uint16(data[at+2:]))
			if marker == 0xda || marker == 0xd9 || length < 2 || at+2+length > len(data) {
				return
			}
			if !yield(marker, data[at+4:at+2+length]) {
				return
			}
			at += 2 + length
		}
	}
}

// isProgressive says whether a JPEG's frame header is one of progressive coding.
func isProgressive(data []byte) bool {
	for marker := range jpegSegments(data) {
		if marker == 0xc2 {
			return true
		}
	}
	return false
}

func (m *Metadata) readPNG(data []byte) {
	const signature, overhead = 8, 12 // a chunk has length, type and checksum
	for at := signature; at+overhead <= len(data); {
		length := int64(binary.BigEndian.Uint32(data[at:]))
		if length > int64(len(data)-at-overhead) {
			return
		}
		kind, body := string(data[at+4:at+8]), data[at+8:at+8+int(length)]
		switch kind {
		case "eXIf":
			m.Orientation = exifOrientation(body)
		case "iCCP":
			m.ICC = inflateProfile(body)
		}
		at += overhead + int(length)
	}
}

// inflateProfile reads the body of an iCCP chunk: a name, a zero, the
// compression method zero, and a zlib stream.
func inflateProfile(body []byte) []byte {
	_, rest, found := bytes.Cut(body, []byte{0})
	if !found || len(rest) < 1 || rest[0] != 0 {
		return nil
	}
	reader, err := zlib.NewReader(bytes.NewReader(rest[1:]))
	if err != nil {
		return nil
	}
	profile, err := io.ReadAll(io.LimitReader(reader, maxICCBytes+1))
	if err != nil || len(profile) > maxICCBytes {
		return nil
	}
	return profile
}

func (m *Metadata) readWebP(data []byte) {
	const header, overhead = 12, 8
	for at := header; at+overhead <= len(data); {
		length := int64(binary.LittleEndian.Uint32(data[at+4:]))
		if length > int64(len(data)-at-overhead) {
			return
		}
		kind, body := string(data[at:at+4]), data[at+8:at+8+int(length)]
		switch kind {
		case "EXIF": // some writers keep the JPEG prefix
			m.Orientation = exifOrientation(bytes.TrimPrefix(body, []byte("Exif\x00\x00")))
		case "ICCP":
			if length <= maxICCBytes {
				m.ICC = body
			}
		}
		at += overhead + int(length+length%2)
	}
}

// isAnimatedWebP reads the animation flag of the extended header.
func isAnimatedWebP(data []byte) bool {
	return hasAt(data, 12, "VP8X") && len(data) > 20 && data[20]&(1<<1) != 0
}
