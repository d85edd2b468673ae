package imaging_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/draw"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
)

// Files that are sound, though some decoders refuse them.

// chunkOf finds a chunk of a PNG: from its length to the end of its checksum.
func chunkOf(t testing.TB, file []byte, kind string) (start, end int) {
	t.Helper()
	at := bytes.Index(file, []byte(kind))
	require.Positive(t, at, kind)
	return at - 4, at + 8 + int(binary.BigEndian.Uint32(file[at-4:]))
}

// withWrongChecksum changes the checksum of a chunk.
func withWrongChecksum(t testing.TB, file []byte, kind string) []byte {
	t.Helper()
	file = bytes.Clone(file)
	_, end := chunkOf(t, file, kind)
	file[end-1] ^= 1
	return file
}

func TestChecksumsOutsideOfPixelsDoNotMatter(t *testing.T) {
	t.Parallel()
	palette := color.Palette{color.NRGBA{R: 200, A: 255}, color.NRGBA{B: 200, A: 100}}
	drawing := image.NewPaletted(image.Rect(0, 0, 40, 30), palette)
	for i := range drawing.Pix {
		drawing.Pix[i] = uint8(i/7) & 1
	}
	file := encodePNG(t, drawing)
	want := asPNG(t, decoded(t, file))
	for _, kind := range []string{"tEXt", "gAMA", "zzZz"} {
		file = withChunk(file, kind, []byte("abcd"))
	}
	for _, kind := range []string{"tEXt", "gAMA", "zzZz", "IEND"} {
		requireSamePixels(t, want, asPNG(t, decoded(t, withWrongChecksum(t, file, kind))))
	}
	for _, kind := range []string{"IHDR", "PLTE", "tRNS", "IDAT"} {
		_, err := imaging.Decode(t.Context(), withWrongChecksum(t, file, kind), imaging.DefaultLimits(), whole)
		var invalid *imaging.InvalidError
		require.ErrorAs(t, err, &invalid, kind)
	}
}

// One-bit gray has a transparent one, of which the high bits mean nothing.
func TestTransparentGrayOfFewBits(t *testing.T) {
	t.Parallel()
	for depth := 1; depth <= 4; depth *= 2 {
		most := uint16(1)<<depth - 1
		p := imagingtest.PNG{Width: 9, Height: 5, Depth: depth, Sample: func(x, _, _ int) uint16 { return uint16(x) & most }}
		p.Transparency = binary.BigEndian.AppendUint16(nil, 0xff00|1<<depth|1)
		img := asPNG(t, decoded(t, p.Encode(t)))
		for x := range 9 {
			_, _, _, alpha := img.At(x, 2).RGBA()
			require.Equal(t, uint16(x)&most == 1, alpha == 0, "column %d of %d bits", x, depth)
		}
	}
}

func TestLongSidesAreRefused(t *testing.T) {
	t.Parallel()
	p := imagingtest.PNG{Width: 65_536, Height: 1, Depth: 1, Sample: func(int, int, int) uint16 { return 0 }}
	_, err := imaging.Inspect(p.Encode(t), imaging.DefaultLimits())
	var limit *imaging.LimitError
	require.ErrorAs(t, err, &limit)
	require.EqualError(t, err, "the picture of 65536×1 pixels has a side of more than 65535")
	p.Width--
	_, err = imaging.Inspect(p.Encode(t), imaging.DefaultLimits())
	require.NoError(t, err)
}

// animatedWebP is an animation of stills, each at a place of the canvas (RFC 9649, 2.7.1).
func animatedWebP(canvas image.Point, at image.Point, stills ...[]byte) []byte {
	uint24 := func(to []byte, v int) []byte { return append(to, byte(v), byte(v>>8), byte(v>>16)) }
	chunk := func(to []byte, kind string, body []byte) []byte {
		to = binary.LittleEndian.AppendUint32(append(to, kind...), uint32(len(body)))
		return append(append(to, body...), make([]byte, len(body)%2)...)
	}
	header := uint24(uint24([]byte{1<<1 | 1<<4, 0, 0, 0}, canvas.X-1), canvas.Y-1)
	body := chunk(chunk([]byte("WEBP"), "VP8X", header), "ANIM", make([]byte, 6))
	for n, still := range stills {
		info, err := imaging.Inspect(still, imaging.DefaultLimits())
		if err != nil {
			panic(err)
		}
		frame := uint24(uint24(nil, at.X/2), at.Y/2)
		frame = uint24(uint24(frame, info.Width-1), info.Height-1)
		frame = append(uint24(frame, 100+n), 0)
		parts := still[12:]
		if bytes.HasPrefix(parts, []byte("VP8X")) {
			parts = parts[18:]
		}
		body = chunk(body, "ANMF", append(frame, parts...))
	}
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

func TestFirstFrameOfWebP(t *testing.T) {
	t.Parallel()
	asWebP := func(img image.Image) []byte {
		return all(t, engine, encodePNG(t, img), imaging.Wanted{Width: 4096, Fit: imaging.Inside, Format: imaging.WebP, Quality: 90})[0]
	}
	red, blue := image.NewNRGBA(image.Rect(0, 0, 40, 30)), image.NewNRGBA(image.Rect(0, 0, 40, 30))
	draw.Draw(red, red.Rect, image.NewUniform(color.NRGBA{R: 200, A: 255}), image.Point{}, draw.Src)
	draw.Draw(blue, blue.Rect, image.NewUniform(color.NRGBA{B: 200, A: 255}), image.Point{}, draw.Src)
	half := image.NewNRGBA(red.Rect)
	draw.Draw(half, image.Rect(0, 0, 20, 30), image.NewUniform(color.NRGBA{R: 200, A: 255}), image.Point{}, draw.Src)
	isRed := func(c color.Color) bool { n := nrgba(c); return n.A == 255 && n.R > 180 && n.B < 20 }

	for name, first := range map[string]image.Image{"opaque": red, "with transparency": half} {
		file := animatedWebP(image.Pt(40, 30), image.Point{}, asWebP(first), asWebP(blue))
		info, err := imaging.Inspect(file, imaging.DefaultLimits())
		require.NoError(t, err, name)
		require.Equal(t, []string{"the file is an animation, of which the first frame is shown"}, info.Notes)
		got := asPNG(t, decoded(t, file))
		require.Equal(t, image.Pt(40, 30), got.Bounds().Size())
		require.True(t, isRed(got.At(10, 15)), name)
		_, _, _, alpha := got.At(35, 15).RGBA()
		require.Equal(t, name == "opaque", alpha != 0, name)
	}

	apart := asPNG(t, decoded(t, animatedWebP(image.Pt(100, 80), image.Pt(50, 40), asWebP(red), asWebP(blue))))
	require.Equal(t, image.Pt(100, 80), apart.Bounds().Size(), "the canvas, not the frame")
	require.True(t, isRed(apart.At(70, 55)))
	for _, at := range []image.Point{{X: 20, Y: 20}, {X: 95, Y: 55}, {X: 70, Y: 75}} {
		require.Equal(t, color.NRGBA{}, nrgba(apart.At(at.X, at.Y)), at)
	}

	var invalid *imaging.InvalidError
	for say, file := range map[string][]byte{
		"lies at (50,40)-(90,70), outside of its (60,80) pixels": animatedWebP(image.Pt(60, 80), image.Pt(50, 40), asWebP(red)),
		"has no whole frame": animatedWebP(image.Pt(40, 30), image.Point{}),
	} {
		_, err := imaging.Inspect(file, imaging.DefaultLimits())
		require.ErrorAs(t, err, &invalid)
		require.ErrorContains(t, err, say)
	}
}

func TestAnimationsAreNamed(t *testing.T) {
	t.Parallel()
	frame := image.NewPaletted(image.Rect(0, 0, 70, 50), color.Palette{color.Black, color.White, color.Transparent})
	for name, c := range map[string]struct {
		file  []byte
		noted bool
	}{
		"GIF of one frame":  {encodeGIF(t, frame), false},
		"GIF of two frames": {encodeGIF(t, frame, frame), true},
		"PNG":               {encodePNG(t, frame), false},
		"animated PNG":      {withChunk(encodePNG(t, frame), "acTL", make([]byte, 8)), true},
		"WebP":              {webpSample(t), false},
	} {
		info, err := imaging.Inspect(c.file, imaging.DefaultLimits())
		require.NoError(t, err, name)
		require.Equal(t, c.noted, strings.Contains(strings.Join(info.Notes, "\n"), "animation"), name)
		for cut := range len(c.file) { // Wherever a file is cut.
			_, _ = imaging.Inspect(c.file[:cut], imaging.DefaultLimits())
		}
	}
}

func encodeGIF(t testing.TB, frames ...*image.Paletted) []byte {
	t.Helper()
	animation := gif.GIF{Image: frames, Delay: make([]int, len(frames))}
	for i := range frames {
		animation.Delay[i] = 5
	}
	var file bytes.Buffer
	require.NoError(t, gif.EncodeAll(&file, &animation))
	return file.Bytes()
}

// A JPEG may store luma and chroma at many ratios. Those are read whose chroma planes are of one
// size, which divides that of luma.
func TestSubsamplings(t *testing.T) {
	t.Parallel()
	for factors, accepted := range map[[3]byte]bool{
		{0x11, 0x11, 0x11}: true, {0x21, 0x11, 0x11}: true, {0x12, 0x11, 0x11}: true, {0x22, 0x11, 0x11}: true,
		{0x41, 0x11, 0x11}: true, {0x42, 0x11, 0x11}: true, {0x22, 0x21, 0x21}: true, {0x22, 0x12, 0x12}: true,
		{0x21, 0x21, 0x21}: true, {0x41, 0x21, 0x21}: true,
		{0x22, 0x21, 0x12}: false, {0x22, 0x11, 0x21}: false, {0x31, 0x11, 0x11}: false, {0x14, 0x11, 0x11}: false,
		{0x11, 0x21, 0x21}: false,
	} {
		f := blankJPEG{width: 70, height: 41, sampling: factors[:], sequential: true, scans: []blankScan{{components: "123", last: 63}}}
		name := fmt.Sprintf("%x", factors)
		if accepted {
			requireBlank(t, f.encode(), 70, 41)
			continue
		}
		_, err := imaging.Inspect(f.encode(), imaging.DefaultLimits())
		var invalid *imaging.InvalidError
		require.ErrorAs(t, err, &invalid, name)
		require.ErrorContains(t, err, "the JPEG file cannot be read: unsupported JPEG feature: luma/chroma subsampling ratio")
	}
}

// Sound files that no decoder here reads are not called damaged.
func TestJPEGsThatAreNotRead(t *testing.T) {
	t.Parallel()
	for name, marker := range map[string]byte{"lossless": 0xc3, "arithmetic coding": 0xc9} {
		file := bytes.Replace(encodeJPEG(t, scene(20, 16), 80), []byte("\xff\xc0"), []byte{0xff, marker}, 1)
		_, err := imaging.Inspect(file, imaging.DefaultLimits())
		var invalid *imaging.InvalidError
		require.ErrorAs(t, err, &invalid, name)
		require.ErrorContains(t, err, "the JPEG file cannot be read: unsupported JPEG feature", name)
	}
}
