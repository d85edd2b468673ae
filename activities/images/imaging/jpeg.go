package imaging

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
)

// Markers of a JPEG (ITU-T T.81, table B.1).
const (
	markerSOF0 = 0xc0 // start of frame, baseline
	markerSOF1 = 0xc1 // start of frame, extended sequential
	markerSOF2 = 0xc2 // start of frame, progressive
	markerRST0 = 0xd0
	markerRST7 = 0xd7
	markerEOI  = 0xd9 // end of image
	markerSOS  = 0xda // start of scan
	markerAPP1 = 0xe1
	markerAPP2 = 0xe2
)

// segment is a marker segment of a JPEG.
type segment struct {
	marker byte
	data   []byte // without marker and length
	end    int    // offset of what follows
}

// jpegSegments yields the marker segments of a JPEG, the end-of-image marker
// last. It passes over what the decoder passes over: fill bytes, entropy-coded
// data (in which 00 or a restart marker follows a byte FF), and bytes that
// belong nowhere. It ends where a segment is cut short.
func jpegSegments(data []byte) iter.Seq[segment] {
	return func(yield func(segment) bool) {
		at := min(2, len(data)) // after the start-of-image marker
		for {
			skipped := bytes.IndexByte(data[at:], 0xff)
			if skipped < 0 {
				return
			}
			at += skipped
			for at < len(data) && data[at] == 0xff {
				at++
			}
			if at == len(data) {
				return
			}
			marker := data[at]
			at++
			switch {
			case marker == 0 || marker >= markerRST0 && marker <= markerRST7:
				continue
			case marker == markerEOI:
				yield(segment{marker: marker, end: at})
				return
			case at+2 > len(data):
				return
			}
			length := int(binary.BigEndian.Uint16(data[at:]))
			if length < 2 || at+length > len(data) {
				return
			}
			if !yield(segment{marker: marker, data: data[at+2 : at+length], end: at + length}) {
				return
			}
			at += length
		}
	}
}

// jpegScans is what the scans of a JPEG cost. The zero value is that of a file
// without scans.
type jpegScans struct {
	components  []jpegComponent
	progressive bool
	scans       int
	blocks      int64 // of 8×8 samples, added up over the scans
	first       int   // offset of the entropy-coded data of the first scan
	end         int   // offset of what follows the picture
}

type jpegComponent struct {
	id     byte
	blocks int64
	coded  [64]int8 // lowest bit coded so far of each coefficient, in zigzag order
}

// uncoded is a coefficient of which no scan has coded a bit.
const uncoded = -1

// readScans reads the headers of all scans, and checks that they code each bit
// of each coefficient once and in order (T.81, G.1.1.1). So a file cannot ask
// for the same work again and again. What else is wrong is left to the decoder,
// which goes no further there.
func readScans(data []byte) (jpegScans, error) {
	s := jpegScans{end: len(data)}
	for segment := range jpegSegments(data) {
		switch segment.marker {
		case markerSOF0, markerSOF1, markerSOF2:
			if s.components == nil {
				s.readFrame(segment)
			}
		case markerSOS:
			if err := s.readScan(segment.data); err != nil {
				return s, err
			}
			s.first = cmp.Or(s.first, segment.end)
		case markerEOI:
			s.end = segment.end
		}
	}
	return s, nil
}

// readFrame reads a frame header: precision, height, width, and per component
// its id, its sampling factors and a table (T.81, B.2.2).
func (s *jpegScans) readFrame(frame segment) {
	const header, perComponent = 6, 3
	data := frame.data
	if len(data) < header+perComponent || len(data) != header+perComponent*int(data[5]) {
		return
	}
	s.progressive = frame.marker == markerSOF2
	factors := func(i int) (h, v int64) {
		if data[5] == 1 {
			return 1, 1 // those of a single component mean nothing
		}
		hv := int64(data[header+perComponent*i+1])
		return hv >> 4, hv & 15
	}
	h0, v0 := factors(0)
	if h0 == 0 || v0 == 0 {
		return
	}
	height, width := int64(binary.BigEndian.Uint16(data[1:])), int64(binary.BigEndian.Uint16(data[3:]))
	units := ((width + 8*h0 - 1) / (8 * h0)) * ((height + 8*v0 - 1) / (8 * v0))
	for i := range int(data[5]) {
		h, v := factors(i)
		c := jpegComponent{id: data[header+perComponent*i], blocks: units * h * v}
		for k := range c.coded {
			c.coded[k] = uncoded
		}
		s.components = append(s.components, c)
	}
}

// readScan reads a scan header: the components and their tables, and for
// progressive files the first and last coefficient, and the lowest bit that was
// coded before and that is coded now (T.81, B.2.3).
func (s *jpegScans) readScan(data []byte) error {
	if len(data) == 0 || len(data) != 4+2*int(data[0]) {
		return nil
	}
	s.scans++
	first, last, before, now := 0, 63, 0, 0 // a sequential scan codes everything
	if s.progressive {
		band := data[len(data)-3:]
		first, last, before, now = int(band[0]), int(band[1]), int(band[2]>>4), int(band[2]&15)
		if first > last || last > 63 || (first == 0) != (last == 0) || first > 0 && data[0] > 1 || now > 13 {
			return invalidf("scan %d of the JPEG file codes coefficients %d to %d of %d components from bit %d on, which no scan may",
				s.scans, first, last, data[0], now)
		}
	}
	for i := range int(data[0]) {
		for j := range s.components {
			c := &s.components[j]
			if c.id != data[1+2*i] {
				continue
			}
			s.blocks += c.blocks
			if first > 0 && c.coded[0] == uncoded {
				return invalidf("scan %d of the JPEG file codes component %d, of which no scan before it has the DC coefficients", s.scans, c.id)
			}
			for k := first; k <= last; k++ {
				if !continues(int(c.coded[k]), before, now) {
					return invalidf("scan %d of the JPEG file codes coefficient %d of component %d again or out of order", s.scans, k, c.id)
				}
				c.coded[k] = int8(now)
			}
		}
	}
	return nil
}

// continues reports whether a scan codes what comes next of a coefficient: at first
// all bits down to one, later one bit more.
func continues(coded, before, now int) bool {
	if coded == uncoded {
		return before == 0
	}
	return before == coded && now == coded-1
}
