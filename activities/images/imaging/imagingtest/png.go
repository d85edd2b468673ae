package imagingtest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"
)

// PNG is a PNG of any color type and depth (PNG 3rd edition, 11.2.1).
type PNG struct {
	Width, Height    int
	Depth, ColorType int
	Interlaced       bool
	// Sample is that of a channel of a pixel, of as many bits as the depth.
	Sample                func(x, y, channel int) uint16
	Palette, Transparency []byte // the chunks PLTE and tRNS, if there are any
}

// passes of Adam7 (8.1): where they begin, and how far apart their pixels are.
var passes = [][4]int{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}

// Encode makes the file.
func (p PNG) Encode(t testing.TB) []byte {
	t.Helper()
	channels := map[int]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[p.ColorType]
	var rows bytes.Buffer
	z := zlib.NewWriter(&rows)
	pass := func(x0, y0, dx, dy int) {
		if x0 >= p.Width {
			return
		}
		for y := y0; y < p.Height; y += dy {
			row, bits, used := []byte{0}, uint32(0), 0 // of no filter
			for x := x0; x < p.Width; x += dx {
				for c := range channels {
					bits, used = bits<<p.Depth|uint32(p.Sample(x, y, c)), used+p.Depth
					for ; used >= 8; used -= 8 {
						row = append(row, byte(bits>>(used-8)))
					}
				}
			}
			if used > 0 {
				row = append(row, byte(bits<<(8-used)))
			}
			_, err := z.Write(row)
			require.NoError(t, err)
		}
	}
	if p.Interlaced {
		for _, of := range passes {
			pass(of[0], of[1], of[2], of[3])
		}
	} else {
		pass(0, 0, 1, 1)
	}
	require.NoError(t, z.Close())
	header := binary.BigEndian.AppendUint32(nil, uint32(p.Width))
	header = binary.BigEndian.AppendUint32(header, uint32(p.Height))
	header = append(header, byte(p.Depth), byte(p.ColorType), 0, 0, 0)
	if p.Interlaced {
		header[12] = 1
	}
	file := []byte("\x89PNG\r\n\x1a\n")
	file = AppendChunk(file, "IHDR", header)
	if p.Palette != nil {
		file = AppendChunk(file, "PLTE", p.Palette)
	}
	if p.Transparency != nil {
		file = AppendChunk(file, "tRNS", p.Transparency)
	}
	return AppendChunk(AppendChunk(file, "IDAT", rows.Bytes()), "IEND", nil)
}

// Bomb is a PNG of 100 KiB that says it has 30,000² pixels of a bit.
func Bomb() []byte {
	const side = 30_000
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, side), side)
	file := AppendChunk([]byte("\x89PNG\r\n\x1a\n"), "IHDR", append(header, 1, 0, 0, 0, 0))
	return append(file, make([]byte, 100<<10)...)
}

// AppendChunk adds a chunk with its checksum (5.3).
func AppendChunk(to []byte, kind string, body []byte) []byte {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	chunk = append(append(chunk, kind...), body...)
	return binary.BigEndian.AppendUint32(append(to, chunk...), crc32.ChecksumIEEE(chunk[4:]))
}

// WithChunk inserts a chunk after the header of a PNG.
func WithChunk(file []byte, kind string, body []byte) []byte {
	const end = 8 + 25
	return append(AppendChunk(bytes.Clone(file[:end]), kind, body), file[end:]...)
}
