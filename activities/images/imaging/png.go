package imaging

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
)

// What stands before the chunks of a PNG, and around the body of one: length and type, and a
// checksum (PNG 3rd edition, 5.3).
const (
	pngSignature = "\x89PNG\r\n\x1a\n"
	pngOverhead  = 12
)

// pngChunk is a chunk of a PNG.
type pngChunk struct {
	kind  string
	body  []byte
	whole []byte // with length, type and checksum
}

// nextPNGChunk takes a chunk from what follows the signature. It reports false where there is
// none that is whole.
func nextPNGChunk(data []byte) (c pngChunk, rest []byte, found bool) {
	if len(data) < pngOverhead {
		return c, data, false
	}
	length := int64(binary.BigEndian.Uint32(data))
	if length > int64(len(data)-pngOverhead) {
		return c, data, false
	}
	end := pngOverhead + int(length)
	return pngChunk{kind: string(data[4:8]), body: data[8 : end-4], whole: data[:end]}, data[end:], true
}

// isIntact reports whether the checksum is right.
func (c pngChunk) isIntact() bool {
	return binary.BigEndian.Uint32(c.whole[len(c.whole)-4:]) == crc32.ChecksumIEEE(c.whole[4:len(c.whole)-4])
}

// isRead reports whether a chunk is of those that a decoder reads. Others say nothing of the pixels.
func (c pngChunk) isRead() bool {
	return slices.Contains([]string{"IHDR", "PLTE", "tRNS", "IDAT", "IEND"}, c.kind)
}

// newPNGChunk makes a chunk as it is in a file.
func newPNGChunk(kind string, body []byte) []byte {
	whole := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	whole = append(append(whole, kind...), body...)
	return binary.BigEndian.AppendUint32(whole, crc32.ChecksumIEEE(whole[4:]))
}

// pngPixels reads a PNG as it is but for the chunks that say nothing of the pixels. So their
// checksums do not matter, and neither does that of the chunk that ends the file.
type pngPixels struct {
	part, rest []byte
	header     []byte // the body of IHDR
}

func newPNGPixels(data []byte) *pngPixels {
	return &pngPixels{part: data[:len(pngSignature)], rest: data[len(pngSignature):]}
}

// Read implements io.Reader.
func (p *pngPixels) Read(into []byte) (int, error) {
	for len(p.part) == 0 {
		if len(p.rest) == 0 {
			return 0, io.EOF
		}
		chunk, rest, found := nextPNGChunk(p.rest)
		if !found { // The decoder says what is wrong with it.
			p.part, p.rest = p.rest, nil
			break
		}
		p.rest = rest
		switch chunk.kind {
		case "IHDR":
			p.part, p.header = chunk.whole, chunk.body
		case "PLTE", "IDAT":
			p.part = chunk.whole
		case "tRNS":
			p.part = p.transparent(chunk)
		case "IEND":
			p.part, p.rest = newPNGChunk("IEND", nil), nil
		}
	}
	n := copy(into, p.part)
	p.part = p.part[n:]
	return n, nil
}

// transparent is the chunk of the gray that is transparent without the bits that samples do not
// have: they mean nothing (PNG 3rd edition, 11.3.1.1), and Go's decoder compares them.
func (p *pngPixels) transparent(chunk pngChunk) []byte {
	const depth, colorType, gray = 8, 9, 0
	if len(p.header) <= colorType || p.header[colorType] != gray || p.header[depth] >= 16 || len(chunk.body) != 2 || !chunk.isIntact() {
		return chunk.whole
	}
	sample := binary.BigEndian.Uint16(chunk.body) & (1<<p.header[depth] - 1)
	return newPNGChunk(chunk.kind, binary.BigEndian.AppendUint16(nil, sample))
}

// isAnimatedPNG looks for the chunk that says so, which stands before the pixels.
func isAnimatedPNG(data []byte) bool {
	rest := bytes.TrimPrefix(data, []byte(pngSignature))
	for {
		chunk, after, found := nextPNGChunk(rest)
		if !found || chunk.kind == "IDAT" {
			return false
		}
		if chunk.kind == "acTL" {
			return true
		}
		rest = after
	}
}
