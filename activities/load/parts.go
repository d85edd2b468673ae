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

var seriesSeed = maphash.MakeSeed()

// parts splits lines that are all pending into bodies that can be written at the
// same time: the lines of a series stay together and in their order, since the last
// one about a time has to win.
func (g *group) parts(all []line, body []byte) [][]byte {
	if len(all) < partsOfWrite*minLinesOfPart {
		return [][]byte{body}
	}
	if g.shares == nil {
		g.shares = make([][]byte, partsOfWrite)
	}
	for n := range g.shares {
		g.shares[n] = g.shares[n][:0]
	}
	for i := range all {
		text := g.text[all[i].start:all[i].end]
		n := seriesHash(text) % partsOfWrite
		g.shares[n] = append(g.shares[n], text...)
	}
	var parts [][]byte
	for _, share := range g.shares {
		if len(share) > 0 {
			parts = append(parts, share)
		}
	}
	return parts
}

// seriesHash is the same for all lines of a series, in whatever order their tags
// are: the sum over what stands between the commas of its key. An escaped comma
// within a name splits that name the same way each time.
func seriesHash(text []byte) uint64 {
	key := text
	for from := 0; ; {
		n := bytes.IndexByte(text[from:], ' ')
		if n < 0 {
			break
		}
		if n += from; n > 0 && text[n-1] == '\\' {
			from = n + 1
			continue
		}
		key = text[:n]
		break
	}
	var sum uint64
	for piece := range bytes.SplitSeq(key, []byte{','}) {
		sum += maphash.Bytes(seriesSeed, piece)
	}
	return sum
}
