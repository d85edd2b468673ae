package load

import (
	"bytes"
	"hash/maphash"
)

const (
	// partsOfWrite is how many requests carry a large write at the same time: the
	// server reads the text of each on a core of its own.
	partsOfWrite = 2
	// minLinesOfPart is how many lines make a further request worth it: below some
	// thousand, what a request costs by itself outweighs it.
	minLinesOfPart = 2000
)

var measurementSeed = maphash.MakeSeed()

// parts splits lines that are all pending into bodies that can be written at the same
// time. Those of a measurement stay together and in their order: the last one about a
// time has to win, and the first one with a new field decides on its type.
func (w *mirrorWriter) parts(g *group, all []line, body []byte) [][]byte {
	if len(all) < partsOfWrite*minLinesOfPart {
		return [][]byte{body}
	}
	for n := range w.shares {
		w.shares[n] = w.shares[n][:0]
	}
	for i := range all {
		text := g.text[all[i].start:all[i].end]
		share := &w.shares[maphash.Bytes(measurementSeed, measurement(text))%partsOfWrite]
		*share = append(*share, text...)
	}
	var parts [][]byte
	for _, share := range w.shares {
		if len(share) > 0 {
			parts = append(parts, share)
		}
	}
	return parts
}

// measurement is what stands before the first comma or space of a line, with its
// escapes: the same text for all lines of a measurement.
func measurement(text []byte) []byte {
	for from := 0; ; {
		n := bytes.IndexAny(text[from:], ", ")
		if n < 0 {
			return text
		}
		if n += from; n == 0 || text[n-1] != '\\' {
			return text[:n]
		}
		from = n + 1
	}
}
