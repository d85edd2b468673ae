package imaging_test

import (
	"bytes"
	"image"
	"image/jpeg"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/draw"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

func sequential(t *testing.T, file []byte, k int) image.Image {
	t.Helper()
	img, err := imaging.DecodeSequential(file, k)
	require.NoError(t, err)
	return img
}

// What the fast decoder takes has the pixels of the standard library.
func TestSequentialIsAsTheStandardLibrary(t *testing.T) {
	t.Parallel()
	gray := image.NewGray(image.Rect(0, 0, 211, 97))
	random := seeded(t)
	for i := range gray.Pix {
		gray.Pix[i] = uint8(i%211 + random.IntN(30))
	}
	files := [][]byte{encodeJPEG(t, gray, 90), encodeJPEG(t, scene(533, 401), 85), encodeJPEG(t, noise(t, 121, 64), 75)}
	if _, err := imaging.OpenEngine(imaging.Turbo, imaging.Codecs{}); err == nil {
		for _, ratio := range ratios {
			files = append(files, subsampled(t, scene(135, 135), ratio)) // Larger ones are progressive.
		}
	}
	for _, file := range files {
		got := sequential(t, file, 1)
		require.NotNil(t, got)
		want := decodeStandard(t, file)
		require.Equal(t, want.Bounds(), got.Bounds())
		require.Greater(t, psnr(t, want, got), 48.0)
	}
	want := decodeStandard(t, files[1])
	for _, k := range []int{2, 4, 8} {
		got := sequential(t, files[1], k)
		reduced := image.NewRGBA(image.Rect(0, 0, (533+k-1)/k, (401+k-1)/k))
		draw.BiLinear.Scale(reduced, reduced.Rect, want, want.Bounds(), draw.Src, nil)
		require.Equal(t, reduced.Rect, got.Bounds())
		t.Logf("1/%d: %.1f dB", k, psnr(t, reduced, got))
		require.Greater(t, psnr(t, reduced, got), 28.0)
	}
}

// What is wrong with a file is for the standard library to say: the fast decoder takes nothing that
// it refuses.
func TestSequentialTakesNothingThatIsDamaged(t *testing.T) {
	t.Parallel()
	random := seeded(t)
	taken, refused := 0, 0
	for range 400 {
		file := encodeJPEG(t, scene(40+random.IntN(90), 40+random.IntN(60)), 60+random.IntN(40))
		begin := bytes.Index(file, []byte("\xff\xda")) + 14 // behind the header of the scan
		at := begin + random.IntN(len(file)-2-begin)
		switch random.IntN(4) {
		case 0: // cut
			file = file[:at]
		case 1: // cut, and ended
			file = append(file[:at], 0xff, 0xd9)
		case 2: // a part is missing
			file = slices.Delete(file, at, min(at+1+random.IntN(40), len(file)-2))
		case 3:
			file[at] ^= 1 << random.IntN(8)
		}
		_, err := jpeg.Decode(bytes.NewReader(file))
		switch got := sequential(t, file, 1<<random.IntN(4)); {
		case err != nil:
			refused++
			require.Nil(t, got, "%v: %x", err, file)
		case got != nil:
			taken++
		}
	}
	t.Logf("%d taken, %d refused by the standard library", taken, refused)
	require.Positive(t, taken)
	require.Positive(t, refused)
}

// Files of other kinds are for the standard library.
func TestSequentialLeavesOthers(t *testing.T) {
	t.Parallel()
	blank := blankJPEG{width: 40, height: 40, sampling: []byte{0x11, 0x11, 0x11}, sequential: true, scans: []blankScan{{components: "123", last: 63}}}
	require.NotNil(t, sequential(t, blank.encode(), 1))
	restarts, scans, progressive := blank, blank, blank
	restarts.restart = 1
	scans.scans = []blankScan{{components: "1", last: 63}, {components: "23", last: 63}}
	progressive.sequential, progressive.scans = false, usualScans()
	for _, other := range []blankJPEG{restarts, scans, progressive} {
		require.Nil(t, sequential(t, other.encode(), 1))
	}
	require.Nil(t, sequential(t, cmykJPEG(), 1))
}
