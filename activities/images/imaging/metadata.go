package imaging

import (
	"bytes"
	"compress/zlib"
	"io"
)

// Metadata is what of a file's metadata decides how its pixels are seen, when it was made and
// by whom.
type Metadata struct {
	// Orientation is how the stored pixels are to be turned.
	Orientation Orientation
	// Taken, Copyright and Artist are those of [Info].
	Taken, Copyright, Artist string

	seenEXIF bool
	icc      []byte // as it is stored
	deflated bool
}

// maxICCBytes bounds a profile. Display profiles have some hundred bytes, the
// largest printer profiles a few megabytes.
const maxICCBytes = 4 << 20

// ReadMetadata finds EXIF and ICC profile in a file of the given
// format. Metadata is optional and often broken, so that what cannot be read is
// taken as absent: the result is then Normal, or no profile. Where a file has
// several of a kind, the first counts.
//
// Sources: JPEG APP1 (Exif 2.32, 4.7.2) and APP2 (ICC.1:2022, B.4); PNG eXIf
// and iCCP (PNG 3rd edition, 11.3); WebP EXIF and ICCP (RFC 9649, 2.7); HEIC and AVIF
// properties and the item Exif (ISO/IEC 23008-12, 6.5 and annex A).
func ReadMetadata(format Format, data []byte) Metadata {
	m := Metadata{Orientation: Normal}
	switch format {
	case JPEG:
		m.readJPEG(data)
	case PNG:
		m.readPNG(data)
	case WebP:
		m.readWebP(data)
	case HEIC, AVIF:
		m.readHEIF(format, data)
	case GIF: // has neither
	}
	return m
}

// ICC is the embedded color profile of at most 4 MiB, or nil. That of a PNG is
// inflated anew by every call.
func (m Metadata) ICC() []byte {
	if m.deflated {
		return inflate(m.icc)
	}
	return m.icc
}

func (m *Metadata) readEXIF(tiff []byte) {
	if !m.seenEXIF {
		m.seenEXIF = true
		e := readEXIF(tiff)
		m.Orientation, m.Taken, m.Copyright, m.Artist = e.orientation, e.taken, e.copyright, e.artist
	}
}

func (m *Metadata) readJPEG(data []byte) {
	var pieces [256][]byte // of the profile, by their numbers
	for segment := range jpegSegments(data) {
		body := segment.data
		switch {
		case segment.marker == markerSOS:
			m.joinProfile(pieces[:])
			return
		case segment.marker == markerAPP1 && hasAt(body, 0, "Exif\x00\x00"):
			m.readEXIF(body[6:])
		case segment.marker == markerAPP2 && hasAt(body, 0, "ICC_PROFILE\x00") && len(body) > 14:
			if number := body[12]; pieces[number] == nil {
				pieces[number] = body[14:]
			}
		}
	}
}

func (m *Metadata) joinProfile(pieces [][]byte) {
	size := 0
	for _, piece := range pieces {
		size += len(piece)
	}
	if size <= maxICCBytes {
		m.icc = bytes.Join(pieces, nil)
	}
}

func (m *Metadata) readPNG(data []byte) {
	rest := bytes.TrimPrefix(data, []byte(pngSignature))
	for {
		chunk, after, found := nextPNGChunk(rest)
		if !found {
			return
		}
		rest = after
		switch chunk.kind {
		case "eXIf":
			m.readEXIF(chunk.body)
		case "iCCP":
			if !m.deflated {
				m.icc, m.deflated = chunk.body, true
			}
		case "IEND":
			return
		}
	}
}

// inflate reads the body of an iCCP chunk: a name, a zero, the compression
// method zero, and a zlib stream.
func inflate(body []byte) []byte {
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
	for kind, body := range webpChunks(data) {
		switch kind {
		case "EXIF": // some writers keep the JPEG prefix
			m.readEXIF(bytes.TrimPrefix(body, []byte("Exif\x00\x00")))
		case "ICCP":
			if m.icc == nil && len(body) <= maxICCBytes {
				m.icc = body
			}
		}
	}
}

// readHEIF reads the header. EXIF has no say in the orientation (23008-12, 6.5.10).
func (m *Metadata) readHEIF(format Format, data []byte) {
	h := readHEIF(data)
	m.icc = h.icc
	m.readEXIF(h.exif)
	if m.Orientation = h.orientation; format == HEIC {
		m.Orientation = Normal // Its decoder turns the picture.
	}
}
