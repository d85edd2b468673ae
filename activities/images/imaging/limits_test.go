package imaging_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"
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

// Pictures that need every slot and pictures that need one must not lock each
// other out.
func TestLargeAndSmallDecodesTakeTurns(t *testing.T) {
	t.Parallel()
	large, small := progressiveHeader(t, 7000), encodeJPEG(t, scene(64, 64), 80)
	const n = 24
	errs := make([]error, 2*n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { _, errs[2*i] = imaging.Decode(t.Context(), large, imaging.DefaultLimits(), whole) })
		wait.Go(func() { _, errs[2*i+1] = imaging.Decode(t.Context(), small, imaging.DefaultLimits(), whole) })
	}
	wait.Wait()
	for i := range n {
		var invalid *imaging.InvalidError
		require.ErrorAs(t, errs[2*i], &invalid)
		require.NoError(t, errs[2*i+1])
	}
}

func TestProgressiveNeedsMoreMemory(t *testing.T) {
	t.Parallel()
	_, err := imaging.Inspect(progressiveHeader(t, 9000), imaging.DefaultLimits())
	var limit *imaging.LimitError
	require.ErrorAs(t, err, &limit)
	require.ErrorContains(t, err, "needs 1158 MiB, more than the limit of 1024 MiB")
}

// Those that give up while they wait give nothing away.
func TestWaitingDecodesEndWithTheirContext(t *testing.T) {
	t.Parallel()
	large := progressiveHeader(t, 7000)
	var wait sync.WaitGroup
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		wait.Go(func() {
			_, err := imaging.Decode(ctx, large, imaging.DefaultLimits(), whole)
			if invalid := (*imaging.InvalidError)(nil); !errors.As(err, &invalid) && !errors.Is(err, context.Canceled) {
				t.Errorf("decode %d: %v", i, err)
			}
		})
		wait.Go(cancel)
	}
	wait.Wait()
	_, err := imaging.Decode(t.Context(), encodeJPEG(t, scene(64, 64), 80), imaging.DefaultLimits(), whole)
	require.NoError(t, err)
}
