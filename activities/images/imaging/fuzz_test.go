package imaging_test

import (
	"encoding/binary"
	"errors"
	"image/color"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/images/imaging"
	"github.com/dendrascience/dendra-jobs/activities/images/imaging/imagingtest"
)

// fuzzLimits keep a fuzzed file from being slow.
func fuzzLimits() imaging.Limits {
	return imaging.Limits{MaxDecodeBytes: 4 << 20, MaxFileBytes: 1 << 20, MaxPixels: 1 << 18, MaxSide: 1 << 16, MaxScanBlocks: 1 << 16}
}

func FuzzReadMetadata(f *testing.F) {
	jpeg := encodeJPEG(f, scene(8, 8), 80)
	png := encodePNG(f, scene(8, 8))
	f.Add(0, withEXIF(jpeg, binary.BigEndian, 6))
	f.Add(0, withEXIF(jpeg, binary.LittleEndian, 9))
	f.Add(0, withSegment(jpeg, 0xe2, append([]byte("ICC_PROFILE\x00\x01\x01"), profile(displayP3, sRGBCurve())...)))
	f.Add(1, withChunk(png, "eXIf", exif(binary.LittleEndian, 3)))
	f.Add(1, withChunk(png, "iCCP", iccp(reversed())))
	f.Add(1, withChunk(png, "iCCP", iccp(profile(adobeRGB, gammaCurve(2.2)))))
	f.Add(2, append([]byte("RIFF\x00\x00\x00\x00WEBPEXIF\x40\x00\x00\x00"), exif(binary.BigEndian, 8)...))
	formats := []imaging.Format{imaging.JPEG, imaging.PNG, imaging.WebP, imaging.GIF}
	f.Fuzz(func(t *testing.T, format int, data []byte) {
		metadata := imaging.ReadMetadata(formats[uint(format)%uint(len(formats))], data)
		require.GreaterOrEqual(t, metadata.Orientation, imaging.Normal)
		require.LessOrEqual(t, metadata.Orientation, imaging.Rotate270)
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(encodeJPEG(f, scene(20, 14), 80), 8, true)
	f.Add(encodeJPEG(f, scene(20, 14), 80)[:300], 8, false)
	f.Add(withEXIF(encodeJPEG(f, scene(21, 15), 80), binary.BigEndian, 7), 5, true)
	f.Add(encodePNG(f, scene(20, 14)), 100, false)
	f.Add(withChunk(encodePNG(f, flat(color.NRGBA{R: 9, A: 77})), "iCCP", iccp(profile(displayP3, sRGBCurve()))), 3, false)
	f.Add(cmykJPEG(), 16, true)
	f.Add(webpSample(f), 4, true)
	f.Add(imagingtest.Bomb()[:200], 4, true)
	f.Add([]byte("GIF89a\x02\x00\x02\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x02\x00\x02\x00\x00\x02\x02\x84\x0a\x00;"), 2, false)
	f.Fuzz(func(t *testing.T, data []byte, side int, square bool) {
		target := imaging.Target{Side: 1 + int(uint(side)%300), Square: square}
		picture, err := imaging.Decode(t.Context(), data, fuzzLimits(), target)
		if err != nil {
			var invalid *imaging.InvalidError
			var limit *imaging.LimitError
			require.True(t, errors.As(err, &invalid) || errors.As(err, &limit), "%v", err)
			return
		}
		info, err := imaging.Inspect(data, fuzzLimits())
		require.NoError(t, err)
		wantW, wantH := target.Size(info.Width, info.Height)
		w, h := picture.Size()
		require.Equal(t, []int{wantW, wantH}, []int{w, h})
		small := picture.Resize((w+1)/2, (h+1)/2)
		_, err = small.JPEG(82)
		require.NoError(t, err)
		_, err = small.PNG()
		require.NoError(t, err)
	})
}
