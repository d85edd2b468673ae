package imaging

import (
	"encoding/binary"
	"image"
	"image/draw"
	"iter"
)

// isAnimated reports whether a file has more than one frame. Of those that follow the first it
// reads nothing.
func isAnimated(format Format, data []byte) bool {
	switch format {
	case GIF:
		return isAnimatedGIF(data)
	case PNG:
		return isAnimatedPNG(data)
	case WebP:
		return isAnimatedWebP(data)
	case HEIC, AVIF:
		return isHEIFSequence(data)
	case JPEG:
	}
	return false
}

// isAnimatedGIF looks for a second frame (GIF89a, 17 to 27).
func isAnimatedGIF(data []byte) bool {
	const (
		header, descriptor          = 13, 10 // with the logical screen; with its separator
		extension, separator        = 0x21, 0x2c
		packedOfScreen, packedOfOne = 10, 9 // where the flags are
	)
	table := func(packed byte) int {
		if packed&0x80 == 0 {
			return 0
		}
		return 3 << (packed&7 + 1)
	}
	if len(data) < header {
		return false
	}
	frames := 0
	for at := header + table(data[packedOfScreen]); at < len(data); {
		switch data[at] {
		case extension:
			at += 2 // with its label
		case separator:
			if frames++; frames > 1 {
				return true
			}
			if at+descriptor > len(data) {
				return false
			}
			at += descriptor + table(data[at+packedOfOne]) + 1 // with the size of the first code
		default:
			return false
		}
		for at < len(data) && data[at] != 0 { // Blocks of data, each after its length.
			at += 1 + int(data[at])
		}
		at++
	}
	return false
}

// riffChunks yields the chunks of a WebP, or of a frame of one, with their names (RFC 9649, 2.3).
func riffChunks(data []byte) iter.Seq2[string, []byte] {
	const overhead = 8
	return func(yield func(string, []byte) bool) {
		for len(data) >= overhead {
			length := int64(binary.LittleEndian.Uint32(data[4:]))
			if length > int64(len(data)-overhead) || !yield(string(data[:4]), data[overhead:overhead+int(length)]) {
				return
			}
			data = data[min(overhead+int(length+length%2), len(data)):]
		}
	}
}

func appendRIFFChunk(to []byte, kind string, body []byte) []byte {
	to = binary.LittleEndian.AppendUint32(append(to, kind...), uint32(len(body)))
	to = append(to, body...)
	return append(to, make([]byte, len(body)%2)...)
}

// webpChunks yields the chunks of a whole file.
func webpChunks(data []byte) iter.Seq2[string, []byte] {
	const header = 12 // RIFF, size, WEBP
	return riffChunks(data[min(header, len(data)):])
}

// isAnimatedWebP reads the flag of the extended header.
func isAnimatedWebP(data []byte) bool {
	return hasAt(data, 12, "VP8X") && len(data) > 20 && data[20]&(1<<1) != 0
}

// firstFrame is the first frame of an animated WebP (RFC 9649, 2.7.1).
type firstFrame struct {
	file   []byte          // a WebP of it alone
	within image.Rectangle // of the canvas
	canvas image.Rectangle
}

// uint24 reads three bytes, the lowest first.
func uint24(data []byte) int { return int(data[0]) | int(data[1])<<8 | int(data[2])<<16 }

// readFirstFrame reads an animated WebP up to the end of its first frame.
func readFirstFrame(data []byte) (f firstFrame, err error) {
	const extended, frame, alphaFlag = 10, 16, 1 << 4
	for kind, body := range webpChunks(data) {
		switch {
		case kind == "VP8X" && len(body) >= extended:
			f.canvas = image.Rect(0, 0, 1+uint24(body[4:]), 1+uint24(body[7:]))
		case kind == "ANMF" && len(body) >= frame:
			at, size := image.Pt(2*uint24(body), 2*uint24(body[3:])), image.Pt(1+uint24(body[6:]), 1+uint24(body[9:]))
			f.within = image.Rectangle{Min: at, Max: at.Add(size)}
			if !f.within.In(f.canvas) {
				return f, invalidf("the first frame of the WebP file lies at %v, outside of its %v pixels", f.within, f.canvas.Size())
			}
			var parts []byte
			for kind, part := range riffChunks(body[frame:]) {
				switch kind {
				case "ALPH":
					// The decoder wants to be told. Size is that of the frame.
					header := append([]byte{alphaFlag, 0, 0, 0}, body[6:12]...)
					parts = appendRIFFChunk(appendRIFFChunk(parts, "VP8X", header), kind, part)
				case "VP8 ", "VP8L":
					parts = appendRIFFChunk(parts, kind, part)
				}
			}
			f.file = binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len("WEBP")+len(parts)))
			f.file = append(append(f.file, "WEBP"...), parts...)
			return f, nil
		}
	}
	return f, invalidf("the animated WebP file has no whole frame")
}

// onCanvas puts a frame where it belongs. What it does not cover is transparent.
func (f firstFrame) onCanvas(frame image.Image) image.Image {
	if f.within == f.canvas {
		return frame
	}
	canvas := image.NewNRGBA(f.canvas)
	draw.Draw(canvas, f.within, frame, frame.Bounds().Min, draw.Src)
	return canvas
}
