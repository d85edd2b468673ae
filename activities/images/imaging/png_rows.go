package imaging

import (
	"compress/zlib"
	"context"
	"errors"
	"io"
)

// pngPixelData reads the bodies of the chunks of pixels, one after the other.
type pngPixelData struct{ body, rest []byte }

// Read implements io.Reader. It ends before the first chunk of another kind that a decoder reads.
func (p *pngPixelData) Read(into []byte) (int, error) {
	for len(p.body) == 0 {
		chunk, rest, found := nextPNGChunk(p.rest)
		switch {
		case !found:
			return 0, io.ErrUnexpectedEOF
		case chunk.kind == "IDAT" && chunk.isIntact():
			p.body = chunk.body
		case chunk.isRead():
			return 0, io.EOF
		}
		p.rest = rest
	}
	n := copy(into, p.body)
	p.body = p.body[n:]
	return n, nil
}

// decodePNGRows decodes a PNG row by row, reduced by k, so that a large one takes no more memory than
// what is left of it: RGB, with transparency or without, in 8 or 16 bits, that is not interlaced. It
// gives nil for others, for damaged ones, and when the context ends: the standard library decides
// about them.
func (f file) decodePNGRows(ctx context.Context, k int) *Picture {
	// The header (PNG 3rd edition, 11.2.1): width, height, depth, color type, and three methods, of
	// which the last one is interlacing.
	const depthAt, typeAt, methodsAt, size = 8, 9, 10, 13
	head, rest, found := nextPNGChunk(f.data[len(pngSignature):])
	if !found || head.kind != "IHDR" || len(head.body) != size || !head.isIntact() || [3]byte(head.body[methodsAt:]) != [3]byte{} {
		return nil
	}
	channels := map[byte]int{2: 3, 6: 4}[head.body[typeAt]]
	wide := int(head.body[depthAt]) / 8 // bytes of a sample, the high one first
	if channels == 0 || wide == 0 {
		return nil
	}
	pixels := &pngPixelData{rest: rest}
	inflated, err := zlib.NewReader(pixels)
	if err != nil {
		return nil
	}
	w, h, step := f.config.Width, f.config.Height, channels*wide
	planes := make([]*boxReducer, channels)
	for c := range planes {
		planes[c] = newBoxReducer(w, h, k)
	}
	opaque := true
	line, row, above := make([]uint8, w), make([]byte, 1+w*step), make([]byte, 1+w*step)
	for range h {
		if _, err := io.ReadFull(inflated, row); err != nil || ctx.Err() != nil || !unfilter(row[0], row[1:], above[1:], step) {
			return nil
		}
		for c := range planes {
			for x := range line {
				pixel := row[1+x*step:]
				line[x] = pixel[c*wide]
				if channels == 4 && pixel[3*wide] < 255 {
					opaque = false
					if c < 3 {
						line[x] = multiply(line[x], pixel[3*wide])
					}
				}
			}
			planes[c].add(line)
		}
		row, above = above, row
	}
	// Behind the last row stand a checksum, and nothing more.
	if n, err := io.ReadFull(inflated, row[:1]); n > 0 || !errors.Is(err, io.EOF) || !pixels.isAtEnd() {
		return nil
	}
	p := &Picture{w: w, h: h, model: modelRGBA}
	if opaque {
		p.model, planes = modelRGB, planes[:3]
	}
	for _, reduced := range planes {
		p.planes = append(p.planes, reduced.out)
	}
	return p
}

// isAtEnd reports whether nothing that a decoder reads follows but the end of the file.
func (p *pngPixelData) isAtEnd() bool {
	if len(p.body) > 0 {
		return false
	}
	for {
		chunk, rest, found := nextPNGChunk(p.rest)
		if !found || chunk.isRead() {
			return found && chunk.kind == "IEND"
		}
		p.rest = rest
	}
}

// unfilter undoes the filter of a row (PNG 3rd edition, 9.2), with the row above. A step is the bytes
// of a pixel. It reports false for a filter that there is not.
func unfilter(kind byte, row, above []byte, step int) bool {
	switch kind {
	case 0:
	case 1: // the pixel to the left
		for i := step; i < len(row); i++ {
			row[i] += row[i-step]
		}
	case 2: // the one above
		for i := range row {
			row[i] += above[i]
		}
	case 3: // the average of both
		for i := range row {
			left := 0
			if i >= step {
				left = int(row[i-step])
			}
			row[i] += byte((left + int(above[i])) / 2)
		}
	case 4: // what is nearest to left + above - the one between them
		for i := range row {
			left, between := 0, 0
			if i >= step {
				left, between = int(row[i-step]), int(above[i-step])
			}
			row[i] += byte(paeth(left, int(above[i]), between))
		}
	default:
		return false
	}
	return true
}

// paeth is that one of three that is nearest to left + above - between; the first of those that are
// equally near (PNG 3rd edition, 9.4).
func paeth(left, above, between int) int {
	toLeft, toAbove := above-between, left-between
	toBetween := toLeft + toAbove
	toLeft, toAbove, toBetween = max(toLeft, -toLeft), max(toAbove, -toAbove), max(toBetween, -toBetween)
	switch {
	case toLeft <= toAbove && toLeft <= toBetween:
		return left
	case toAbove <= toBetween:
		return above
	}
	return between
}
