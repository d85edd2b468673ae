package imaging_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// progressiveHeader is a JPEG that says it is progressive and of side² pixels,
// and ends in the header of its first scan.
func progressiveHeader(t *testing.T, side uint16) []byte {
	t.Helper()
	file := encodeJPEG(t, scene(16, 16), 80)
	frame := bytes.Index(file, []byte{0xff, 0xc0})
	require.Positive(t, frame)
	file[frame+1] = 0xc2
	binary.BigEndian.PutUint16(file[frame+5:], side)
	binary.BigEndian.PutUint16(file[frame+7:], side)
	scan := bytes.Index(file, []byte{0xff, 0xda})
	require.Positive(t, scan)
	return file[:scan+4]
}

func TestProgressiveNeedsMoreMemory(t *testing.T) {
	t.Parallel()
	_, err := imaging.Inspect(progressiveHeader(t, 9000), imaging.DefaultLimits())
	var limit *imaging.LimitError
	require.ErrorAs(t, err, &limit)
	require.ErrorContains(t, err, "needs 1158 MiB, more than the limit of 1024 MiB")
}
