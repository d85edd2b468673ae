package imaging_test

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
)

// blankJPEG is a JPEG all of whose coefficients are zero: every sample is 128.
type blankJPEG struct {
	width, height uint16
	sampling      []byte // of each component, as in a frame header; ids count from 1
	sequential    bool
	restart       uint16 // blocks between restart markers
	scans         []blankScan
}

// blankScan is a scan of components (ids), a band of coefficients, and the
// lowest bits that were coded before and are coded now.
type blankScan struct {
	components               string
	first, last, before, now byte
	// runs codes 16,384 blocks without coefficients in 15 bits, and not one in
	// one. For bands without the first coefficient.
	runs bool
}

// blocks is the number of blocks of a component, whole units of all components.
func (f blankJPEG) blocks(component int) int {
	if len(f.sampling) == 1 {
		return (int(f.width) + 7) / 8 * ((int(f.height) + 7) / 8)
	}
	h, v := 8*int(f.sampling[0]>>4), 8*int(f.sampling[0]&15)
	factors := f.sampling[component]
	return (int(f.width) + h - 1) / h * ((int(f.height) + v - 1) / v) * int(factors>>4) * int(factors&15)
}

func (f blankJPEG) encode() []byte {
	file := []byte("\xff\xd8")
	segment := func(marker byte, payload ...byte) {
		file = append(file, 0xff, marker)
		file = binary.BigEndian.AppendUint16(file, uint16(len(payload)+2))
		file = append(file, payload...)
	}
	segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)
	frame := binary.BigEndian.AppendUint16([]byte{8}, f.height)
	frame = binary.BigEndian.AppendUint16(frame, f.width)
	frame = append(frame, byte(len(f.sampling)))
	for i, factors := range f.sampling {
		frame = append(frame, byte(i+1), factors, 0)
	}
	if f.sequential {
		segment(0xc0, frame...)
	} else {
		segment(0xc2, frame...)
	}
	if f.restart > 0 {
		segment(0xdd, binary.BigEndian.AppendUint16(nil, f.restart)...)
	}
	// Tables of one code, the bit 0: for the symbol 0, and for runs of 2^14.
	for table, symbol := range map[byte]byte{0x00: 0, 0x10: 0, 0x11: 0xe0} {
		segment(0xc4, append(append([]byte{table, 1}, make([]byte, 15)...), symbol)...)
	}
	for _, s := range f.scans {
		header := []byte{byte(len(s.components))}
		blocks := 0
		for _, id := range []byte(s.components) {
			header = append(header, id-'0', map[bool]byte{true: 1}[s.runs])
			blocks += f.blocks(int(id - '1'))
		}
		segment(0xda, append(header, s.first, s.last, s.before<<4|s.now)...)
		bits := blocks
		switch {
		case f.sequential:
			bits = 2 * blocks
		case s.runs:
			bits = 15 * ((blocks + 1<<14 - 1) >> 14)
		}
		if f.restart == 0 {
			file = append(file, make([]byte, (bits+7)/8)...)
			continue
		}
		for n := range blocks { // one block between restart markers
			file = append(file, 0)
			if n < blocks-1 {
				file = append(file, 0xff, 0xd0+byte(n%8))
			}
		}
	}
	return append(file, 0xff, 0xd9)
}

// usualScans is what libjpeg writes, with four scans of luma's coefficients.
func usualScans() []blankScan {
	return []blankScan{
		{"123", 0, 0, 0, 1, false},
		{"1", 1, 5, 0, 2, false},
		{"3", 1, 63, 0, 1, false},
		{"2", 1, 63, 0, 1, true},
		{"1", 6, 63, 0, 2, false},
		{"1", 1, 63, 2, 1, false},
		{"123", 0, 0, 1, 0, false},
		{"3", 1, 63, 1, 0, false},
		{"2", 1, 63, 1, 0, false},
		{"1", 1, 63, 1, 0, false},
	}
}

func requireBlank(t *testing.T, file []byte, w, h int) {
	t.Helper()
	got := asPNG(t, decoded(t, file))
	require.Equal(t, image.Pt(w, h), got.Bounds().Size())
	require.Equal(t, color.NRGBA{R: 128, G: 128, B: 128, A: 255}, color.NRGBAModel.Convert(got.At(w/2, h/2)))
}

func TestScansInOrderAreDecoded(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]blankJPEG{
		"progressive, 4:2:0":      {sampling: []byte{0x22, 0x11, 0x11}, scans: usualScans()},
		"progressive, gray":       {sampling: []byte{0x22}, scans: []blankScan{{"1", 0, 0, 0, 0, false}, {"1", 1, 63, 0, 0, true}}},
		"a scan per component":    {sampling: []byte{0x21, 0x11, 0x11}, sequential: true, scans: []blankScan{{components: "2", last: 63}, {components: "1", last: 63}, {components: "3", last: 63}}},
		"one scan":                {sampling: []byte{0x11, 0x11, 0x11}, sequential: true, scans: []blankScan{{components: "123", last: 63}}},
		"restarts":                {sampling: []byte{0x11}, sequential: true, restart: 1, scans: []blankScan{{components: "1", last: 63}}},
		"some coefficients only":  {sampling: []byte{0x11, 0x11, 0x11}, scans: []blankScan{{"123", 0, 0, 0, 3, false}, {"1", 2, 2, 0, 0, false}}},
		"bits of one coefficient": {sampling: []byte{0x11}, scans: []blankScan{{"1", 0, 0, 0, 2, false}, {"1", 0, 0, 2, 1, false}, {"1", 0, 0, 1, 0, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.width, f.height = 70, 41
			requireBlank(t, f.encode(), 70, 41)
		})
	}
}

func TestScansOutOfOrderAreRefused(t *testing.T) {
	t.Parallel()
	dc := blankScan{"1", 0, 0, 0, 0, false}
	for name, c := range map[string]struct {
		scans      []blankScan
		sequential bool
		say        string
	}{
		"AC before DC":                {scans: []blankScan{{"1", 1, 63, 0, 0, false}, dc}, say: "scan 1 of the JPEG file codes component 1"},
		"DC of another component":     {scans: []blankScan{{"2", 0, 0, 0, 0, false}, {"1", 1, 63, 0, 0, false}}, say: "scan 2"},
		"DC again":                    {scans: []blankScan{dc, dc}, say: "scan 2 of the JPEG file codes coefficient 0 of component 1"},
		"AC again, overlapping":       {scans: []blankScan{dc, {"1", 1, 5, 0, 0, false}, {"1", 5, 63, 0, 0, false}}, say: "scan 3 of the JPEG file codes coefficient 5"},
		"refined before it is coded":  {scans: []blankScan{dc, {"1", 1, 63, 1, 0, false}}, say: "scan 2"},
		"refined by two bits":         {scans: []blankScan{{"1", 0, 0, 0, 2, false}, {"1", 0, 0, 2, 0, false}}, say: "scan 2"},
		"refined with a bit left out": {scans: []blankScan{{"1", 0, 0, 0, 3, false}, {"1", 0, 0, 2, 1, false}}, say: "scan 2"},
		"refined again":               {scans: []blankScan{dc, {"1", 1, 63, 0, 1, false}, {"1", 1, 63, 1, 0, false}, {"1", 1, 63, 1, 0, false}}, say: "scan 4"},
		"bits beyond those there are": {scans: []blankScan{{"1", 0, 0, 0, 14, false}}, say: "scan 1"},
		"DC and AC at once":           {scans: []blankScan{{"1", 0, 63, 0, 0, false}}, say: "coefficients 0 to 63 of 1 components"},
		"AC of two components":        {scans: []blankScan{{"12", 0, 0, 0, 0, false}, {"12", 1, 63, 0, 0, false}}, say: "of 2 components"},
		"coefficients beyond 63":      {scans: []blankScan{dc, {"1", 1, 64, 0, 0, false}}, say: "1 to 64"},
		"a sequential component twice": {
			scans: []blankScan{{components: "123", last: 63}, {components: "2", last: 63}}, sequential: true,
			say: "scan 2 of the JPEG file codes coefficient 0 of component 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := blankJPEG{width: 70, height: 41, sampling: []byte{0x11, 0x11, 0x11}, sequential: c.sequential, scans: c.scans}
			_, err := imaging.Inspect(f.encode(), imaging.DefaultLimits())
			var invalid *imaging.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.ErrorContains(t, err, c.say)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// A few bytes of a scan make the decoder go through all blocks of a component.
// So the files of this test are never decoded.
func TestWorkOfScansIsBounded(t *testing.T) {
	t.Parallel()
	refinements := blankJPEG{width: 10_000, height: 10_000, sampling: []byte{0x11}, scans: []blankScan{{components: "1", now: 0}}}
	for range 198 {
		refinements.scans = append(refinements.scans, blankScan{"1", 1, 63, 1, 0, true})
	}
	file := refinements.encode()
	require.Less(t, len(file), 300_000)
	_, err := imaging.Inspect(file, imaging.DefaultLimits())
	var invalid *imaging.InvalidError
	require.ErrorAs(t, err, &invalid)

	// In order, and still too many.
	narrow := blankJPEG{width: 10_000, height: 10_000, sampling: []byte{0x11}, scans: []blankScan{{components: "1"}}}
	for k := byte(1); k <= 63; k++ {
		narrow.scans = append(narrow.scans, blankScan{"1", k, k, 0, 0, true})
	}
	_, err = imaging.Inspect(narrow.encode(), imaging.DefaultLimits())
	var limit *imaging.LimitError
	require.ErrorAs(t, err, &limit)
	require.EqualError(t, err, "the 64 scans of the JPEG file code 100.0 million blocks of 8×8 samples, more than the limit of 40.0 million")
}

func TestBlocksOfScansAreCounted(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]blankJPEG{
		"4:2:0":      {sampling: []byte{0x22, 0x11, 0x11}, scans: usualScans()},
		"4:4:4":      {sampling: []byte{0x11, 0x11, 0x11}, scans: usualScans()},
		"gray":       {sampling: []byte{0x22}, scans: []blankScan{{"1", 0, 0, 0, 0, false}, {"1", 1, 63, 0, 0, true}}},
		"sequential": {sampling: []byte{0x21, 0x11, 0x11}, sequential: true, scans: []blankScan{{components: "2", last: 63}, {components: "13", last: 63}}},
	} {
		f.width, f.height = 70, 41
		blocks := 0
		for _, s := range f.scans {
			for _, id := range []byte(s.components) {
				blocks += f.blocks(int(id - '1'))
			}
		}
		limits := imaging.DefaultLimits()
		limits.MaxScanBlocks = int64(blocks)
		_, err := imaging.Inspect(f.encode(), limits)
		require.NoError(t, err, name)
		limits.MaxScanBlocks--
		_, err = imaging.Inspect(f.encode(), limits)
		var limit *imaging.LimitError
		require.ErrorAs(t, err, &limit, name)
	}
}

// manyScans is data that has the marker of a scan more often than any picture.
var manyScans = bytes.Repeat([]byte("\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00data"), 300)

func TestWhatFollowsTheEndIsIgnored(t *testing.T) {
	t.Parallel()
	photo := encodeJPEG(t, scene(120, 90), 90)
	want := asPNG(t, decoded(t, photo))
	progressive := blankJPEG{width: 70, height: 41, sampling: []byte{0x22, 0x11, 0x11}, scans: usualScans()}.encode()
	gainMap := blankJPEG{width: 7000, height: 9000, sampling: []byte{0x11}, scans: []blankScan{{components: "1"}, {components: "1"}}}.encode()
	for name, tail := range map[string][]byte{
		"video":       append([]byte("\x00\x00\x00\x18ftypmp42"), manyScans...),
		"a gain map":  withSegment(gainMap, 0xe1, append([]byte("Exif\x00\x00"), exif(binary.BigEndian, 6)...)),
		"half a scan": manyScans[:7],
	} {
		file := append(bytes.Clone(photo), tail...)
		info, err := imaging.Inspect(file, imaging.DefaultLimits())
		require.NoError(t, err, name)
		require.Equal(t, imaging.Info{Format: imaging.JPEG, Width: 120, Height: 90, Orientation: imaging.Normal, DecodeBytes: 3 * 120 * 90}, info)
		requireSamePixels(t, want, asPNG(t, decoded(t, file)))
		requireBlank(t, append(bytes.Clone(progressive), tail...), 70, 41)
	}
}

// Segments may hold whatever looks like scans: profiles, previews, notes.
func TestWhatIsInSegmentsIsNoScan(t *testing.T) {
	t.Parallel()
	icc := append(profile(displayP3, sRGBCurve()), bytes.Repeat(manyScans, 40)...)
	preview := append(exif(binary.BigEndian, 1), encodeJPEG(t, scene(16, 16), 50)...)
	file := encodeJPEG(t, flat(color.NRGBA{R: 200, G: 120, B: 60, A: 255}), 98)
	count := byte((len(icc) + 59_999) / 60_000)
	for number := count; number >= 1; number-- {
		piece := icc[int(number-1)*60_000 : min(len(icc), int(number)*60_000)]
		file = withSegment(file, 0xe2, append([]byte("ICC_PROFILE\x00"+string([]byte{number, count})), piece...))
	}
	file = withSegment(file, 0xe1, append([]byte("Exif\x00\x00"), preview...))
	file = withSegment(file, 0xed, bytes.Repeat(manyScans, 10))
	r, g, b, _ := asJPEG(t, decoded(t, file), 98).At(16, 16).RGBA()
	require.InDelta(t, 212, r>>8, 3)
	require.InDelta(t, 117, g>>8, 3)
	require.InDelta(t, 44, b>>8, 3)
}

// The decoder passes over bytes between segments, so that a frame header behind
// some is a frame header.
func TestBytesBetweenSegmentsHideNothing(t *testing.T) {
	t.Parallel()
	f := blankJPEG{width: 9_000, height: 9_000, sampling: []byte{0x11, 0x11, 0x11}, scans: usualScans()[:1]}
	const afterTable = 2 + 2 + 67
	file := slices.Insert(f.encode(), afterTable, []byte(" some bytes \xff\x00\xff")...)
	_, err := imaging.Inspect(file, imaging.DefaultLimits())
	var limit *imaging.LimitError
	require.ErrorAs(t, err, &limit)
	require.ErrorContains(t, err, "needs 1158 MiB")
}

func TestCutShortProgressiveFilesFail(t *testing.T) {
	t.Parallel()
	file := blankJPEG{width: 70, height: 41, sampling: []byte{0x22, 0x11, 0x11}, scans: usualScans()}.encode()
	for end := 300; end < len(file); end += 20 {
		_, err := imaging.Decode(t.Context(), file[:end], imaging.DefaultLimits(), whole)
		var invalid *imaging.InvalidError
		require.ErrorAs(t, err, &invalid, "cut to %d of %d bytes", end, len(file))
		require.ErrorContains(t, err, "damaged or cut short")
	}
}

// Not parallel, so that nothing else allocates meanwhile.
//
//nolint:paralleltest // No other test may allocate meanwhile.
func TestPiecesOfAProfileAreBounded(t *testing.T) {
	file := encodeJPEG(t, flat(color.White), 90)
	head, tail := bytes.Clone(file[:2]), file[2:]
	for i := range 200_000 {
		head = append(head, "\xff\xe2\x00\x11ICC_PROFILE\x00"...)
		head = append(head, byte(i), 255, 0)
	}
	file = append(head, tail...)
	require.Less(t, allocated(func() {
		_, err := imaging.Inspect(file, imaging.DefaultLimits())
		require.NoError(t, err)
	}), uint64(1<<20))
}

func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzJPEGScans: what is accepted and decoded is decoded alike whatever follows
// it, and as the standard decoder does.
func FuzzJPEGScans(f *testing.F) {
	f.Add(encodeJPEG(f, scene(20, 14), 80))
	f.Add(blankJPEG{width: 20, height: 14, sampling: []byte{0x22, 0x11, 0x11}, scans: usualScans()}.encode())
	f.Add(blankJPEG{width: 20, height: 14, sampling: []byte{0x11}, sequential: true, restart: 1, scans: []blankScan{{components: "1", last: 63}}}.encode())
	f.Add(blankJPEG{width: 9, height: 9, sampling: []byte{0x11}, scans: []blankScan{{"1", 0, 0, 0, 1, false}, {"1", 1, 63, 0, 0, true}, {"1", 0, 0, 1, 0, false}}}.encode())
	f.Add(cmykJPEG())
	f.Fuzz(func(t *testing.T, data []byte) {
		if format, err := imaging.Sniff(data); err != nil || format != imaging.JPEG {
			return
		}
		if _, err := imaging.Inspect(data, fuzzLimits()); err != nil {
			return
		}
		standard, err := jpeg.Decode(bytes.NewReader(data))
		if err != nil || standard.Bounds().Empty() {
			return
		}
		picture, err := imaging.Decode(t.Context(), data, fuzzLimits(), whole)
		require.NoError(t, err)
		followed, err := imaging.Decode(t.Context(), append(bytes.Clone(data), manyScans...), fuzzLimits(), whole)
		require.NoError(t, err)
		require.Equal(t, picture, followed)
	})
}
