package ldmp_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
)

// pieces gives a text in pieces of random size.
type pieces struct {
	text   []byte
	random *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.text) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.text[:min(len(p.text), 1+p.random.IntN(len(p.text)))])
	p.text = p.text[n:]
	return n, nil
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("a\x00bc\x00\x00d"), uint64(1), uint16(0))
	f.Add([]byte("a\x00b\x00"), uint64(2), uint16(2))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64, long uint16) {
		// Some frame is made longer than is kept, or just as long.
		if at := bytes.IndexByte(text, 0); at >= 0 && long > 0 {
			longer := bytes.Repeat([]byte{'x'}, ldmp.MaxFrame-at+int(long)-1)
			text = append(append(bytes.Clone(text[:at]), longer...), text[at:]...)
		}
		next := ldmp.Frames(&pieces{text, rand.New(rand.NewPCG(seed, 0))})
		whole := bytes.Split(text, []byte{0})
		for _, want := range whole[:len(whole)-1] { // what comes last has no end
			if len(want) == 0 {
				continue
			}
			frame, skipped, err := next()
			require.NoError(t, err)
			kept := min(len(want), ldmp.MaxFrame)
			require.True(t, bytes.Equal(want[:kept], frame), "%d bytes of %d", len(frame), len(want))
			require.Equal(t, len(want)-kept, skipped)
		}
		_, _, err := next()
		require.True(t, errors.Is(err, io.EOF), err)
	})
}
